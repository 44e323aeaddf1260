"""A loader for single cells, with the terms of that field."""
import os

from . import _options
from ._loader import Loader
from ._penstock import SettingError


def _filter(wanted):
    """{"tissue": ["lung", "liver"], "sex": "male"} in the engine's syntax."""
    if isinstance(wanted, str):
        return wanted
    parts = []
    for column, values in wanted.items():
        if isinstance(values, (str, int, float, bool)):
            values = [values]
        values = [str(v) for v in values]
        for v in (column, *values):
            if any(c in v for c in "|&"):
                raise SettingError(f"obs_filter: '{v}' contains | or &, which "
                                   "separate values")
        parts.append(f"{column}:{'|'.join(values)}")
    return "&".join(parts)


def _genes(wanted):
    """A number (the first N), names, or the engine's syntax."""
    if isinstance(wanted, str):
        return wanted
    if isinstance(wanted, os.PathLike):
        return "@" + os.fspath(wanted)
    if isinstance(wanted, int):
        return f"first:{wanted}"
    return _options.lines_file(wanted)


def _matrix(layer, use_raw):
    if layer and use_raw:
        raise _options.refused("P003", "layer= and use_raw= cannot be combined")
    if use_raw:
        return "raw"
    return f"layers/{layer}" if layer else None


class CellLoader(Loader):
    """Load cells from AnnData files (h5ad, zarr, packed) as batches.

    Parameters
    ----------
    path : path or list of paths
        Files, directories or globs; several files are one data set.
    batch_size : int, optional
        Cells per batch (64).
    shuffle : bool or str, optional
        True for a global shuffle; "block", "census", "scdataset" or
        "annbatch" for a block shuffle, which is faster with compressed files.
    obs : str or list of str, optional
        Columns of obs to deliver as fields. Categories become codes;
        `classes` has their names.
    layer : str, optional
        A layer instead of X.
    use_raw : bool
        Use raw.X.
    genes, var_names : list of str, path, int or str, optional
        Names, a file of names, the first N genes, or "var:COLUMN".
    obs_filter : dict or str, optional
        Only matching cells: ``{"tissue": ["lung"], ...}``.
    **settings
        `output`: "dense" or "csr" (see `Batch.csr`, `Batch.scipy`;
        ``batch.torch()["X"]`` is then a sparse tensor). `join`: "inner" or
        "outer", for files with different genes. `source`: True adds the field
        "source", the file of a cell. `normalize`: scale every cell to this
        sum. `log1p`: take log(1 + x). All others are those of `Loader`.

    Examples
    --------
    >>> loader = penstock.CellLoader(cells, batch_size=64, obs=["cell_type"])
    >>> batch = next(iter(loader))
    >>> batch["X"].shape, batch["cell_type"].dtype
    ((64, 50), 'int32')
    >>> loader.classes["cell_type"]
    ['B cell', 'T cell']
    """

    def __init__(self, path, batch_size=None, shuffle=None, *, obs=None,
                 layer=None, use_raw=False, genes=None, var_names=None,
                 obs_filter=None, **settings):
        if genes is not None and var_names is not None:
            raise _options.refused("P003", "genes= and var_names= have the same "
                                   "meaning; set one of them")
        genes = var_names if genes is None else genes
        more = {"obs": [obs] if isinstance(obs, str) else obs,
                "matrix": _matrix(layer, use_raw),
                "genes": None if genes is None else _genes(genes),
                "filter": None if obs_filter is None else _filter(obs_filter)}
        for key, value in more.items():
            if value is not None:
                if key in settings:
                    raise _options.refused("P003", f"{key}= is set twice")
                settings["format_" + key] = value
        paths = _options.paths_of(path)
        if settings.get("format") is None and _options.format_of(
                paths[0] if paths else "") is None:
            settings["format"] = "h5ad"
        if batch_size is None and not settings.get("batch_tokens"):
            batch_size = 64
        super().__init__(paths, batch_size, shuffle, **settings)

    @property
    def classes(self):
        """The names of codes, ``{field: [name of code 0, of code 1, ...]}``."""
        out = {}
        for name, *_ in self.fields:
            labels = self.labels(name)
            if labels is not None:
                out[name] = labels
        return out

    @property
    def ngenes(self):
        """Number of columns of the matrix."""
        about = self.about()
        return int(about.get("genes taken") or about["genes"])
