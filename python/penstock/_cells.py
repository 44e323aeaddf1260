"""Single cells: a loader with the words of that field."""
import os

from . import _options
from ._loader import Loader
from ._penstock import SettingError


def _filter(wanted):
    """{"tissue": ["lung", "liver"], "sex": "male"} as the engine has it."""
    if isinstance(wanted, str):
        return wanted
    parts = []
    for column, values in wanted.items():
        if isinstance(values, (str, int, float, bool)):
            values = [values]
        values = [str(v) for v in values]
        for v in (column, *values):
            if any(c in v for c in "|&"):
                raise SettingError(f"obs_filter: '{v}' has a | or & in it, "
                                   "which separate values")
        parts.append(f"{column}:{'|'.join(values)}")
    return "&".join(parts)


def _genes(wanted):
    """A number: the first so many; names; or as the engine has it."""
    if isinstance(wanted, str):
        return wanted
    if isinstance(wanted, os.PathLike):
        return "@" + os.fspath(wanted)
    if isinstance(wanted, int):
        return f"first:{wanted}"
    return _options.lines_file(wanted)


def _matrix(layer, use_raw):
    if layer and use_raw:
        raise SettingError("layer= and use_raw= exclude one another")
    if use_raw:
        return "raw"
    return f"layers/{layer}" if layer else None


class CellLoader(Loader):
    """Cells out of AnnData files (h5ad, zarr, packed), as batches.

    >>> loader = penstock.CellLoader(cells, batch_size=64, obs=["cell_type"])
    >>> batch = next(iter(loader))
    >>> batch["X"].shape, batch["cell_type"].dtype
    ((64, 50), 'int32')
    >>> loader.classes["cell_type"]
    ['B cell', 'T cell']

    obs         columns of obs, as fields; categories are codes, and
                loader.classes says what they stand for
    layer       a layer instead of X; use_raw=True: raw.X
    genes       names, a file of them, a number (the first so many), or
                "var:COLUMN"; also as var_names=
    obs_filter  {"tissue": ["lung"], ...}: only those cells
    join        "inner" or "outer": genes of files that differ
    source      True: a field `source`, which file a cell is of
    output      "dense"; or "csr": batch.csr(), batch.scipy(), and
                batch.torch()["X"] is a sparse tensor
    normalize, log1p
                scale every cell to this sum; log(1 + x)
    shuffle     True: fully; "census", "scdataset", "annbatch": as those do,
                in blocks, which is faster where files are compressed
    All other settings are those of Loader.
    """

    def __init__(self, path, batch_size=None, shuffle=None, *, obs=None,
                 layer=None, use_raw=False, genes=None, var_names=None,
                 obs_filter=None, **settings):
        if genes is not None and var_names is not None:
            raise SettingError("genes= and var_names= are the same")
        genes = var_names if genes is None else genes
        more = {"obs": [obs] if isinstance(obs, str) else obs,
                "matrix": _matrix(layer, use_raw),
                "genes": None if genes is None else _genes(genes),
                "filter": None if obs_filter is None else _filter(obs_filter)}
        for key, value in more.items():
            if value is not None:
                if key in settings:
                    raise SettingError(f"{key} is given twice")
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
        """{field: [name of code 0, of code 1, ...]}"""
        out = {}
        for name, *_ in self.fields:
            labels = self.labels(name)
            if labels is not None:
                out[name] = labels
        return out

    @property
    def ngenes(self):
        """Columns of the matrix."""
        about = self.about()
        return int(about.get("genes taken") or about["genes"])
