"""Samples by index, for PyTorch's own DataLoader and for exploring data."""
import threading

from . import _options, _penstock
from ._loader import _live


class Samples(list):
    """Samples of one request; `batch` is the batch that contains them."""
    __slots__ = ("batch",)


def rows_of(batch, how="numpy"):
    """A dict of arrays for each sample of a batch; views of its memory."""
    out = Samples({} for _ in range(batch.nsamples))
    out.batch = batch
    for name, array in batch.items():
        if isinstance(array, _penstock.Ragged):
            rows = [getattr(r, how)() for r in array]
        elif array.offsets is not None:     # packed: several per row
            flat = getattr(array, how)().reshape(-1)
            rows = [flat[at:at + n] for at, (n,) in zip(
                array.offsets.tolist(), array.shapes.tolist())]
        elif array.shapes is not None:
            rows = getattr(array, how)()
            rows = [row[tuple(slice(m - n, m) if array.before else slice(n)
                              for n, m in zip(shape, row.shape))]
                    for row, shape in zip(rows, array.shapes.tolist())]
        else:
            rows = getattr(array, how)()
        for sample, row in zip(out, rows):
            sample[name] = row
    return out


def numbers_of(ids, length):
    """Sample numbers for the engine; negative ones count from the end. Lists,
    arrays and tensors are converted by one call in C."""
    from array import array
    try:
        if hasattr(ids, "tolist"):
            ids = ids.tolist()
        wanted = array("q", ids)
    except (TypeError, OverflowError):
        raise IndexError("sample numbers must be integers") from None
    if wanted and min(wanted) < 0:
        if min(wanted) < -length:
            raise IndexError(f"index {min(wanted)} is out of range for "
                             f"{length} samples")
        wanted = array("q", [i + length if i < 0 else i for i in wanted])
    return wanted


class Dataset:
    """Samples by index.

    ``ds[i]`` is a dict of NumPy arrays; ``ds[list]``, ``ds[slice]`` and
    ``ds[mask]`` are batches. A data set can be pickled, and forked processes
    open it again. Several threads may use it; calls are served one at a time,
    each by all loader threads.

    Parameters
    ----------
    path : path, list of paths, DDict or iterable of samples
        As in `Loader`.
    **settings
        Settings of `Loader` that do not concern the order.

    Examples
    --------
    >>> ds = penstock.Dataset(data / "x.npy")
    >>> len(ds), ds[3]["x"].shape
    (1000, (8,))
    >>> ds[[7, 0, 7]]["x"].shape         # one batch
    (3, 8)
    """

    def __init__(self, path=(), **settings):
        self._paths = _options.paths_of(path)
        self._settings = dict(settings)
        self._reset()
        _options.warn(self._open(1))    # report errors here
        _live.add(self)

    def _reset(self):
        self._engine = None
        self._most = 0      # the engine's batch size
        self._forks = _penstock.forks()
        self._lock = threading.Lock()

    def __getstate__(self):
        return self._paths, self._settings

    def __setstate__(self, state):
        self._paths, self._settings = state
        self._reset()

    def _open(self, n):
        """An engine for batches of n samples."""
        if self._forks != _penstock.forks():
            self._reset()   # the parent's engine has no threads here
        if self._engine is None or n > self._most:
            most = 1 << (n - 1).bit_length()
            settings = {"prefetch": 2, **self._settings, "batch_size": most}
            engine = _options.engine(self._paths, settings, True)
            if self._engine is not None:
                self._engine.close()
            self._engine, self._most = engine, most
            self._len = engine.state()["length"]
        return self._engine

    @property
    def paths(self):
        """The paths of the data set."""
        return list(self._paths)

    @property
    def settings(self):
        """The settings it was opened with."""
        return dict(self._settings)

    @property
    def fields(self):
        """List of (name, dtype, shape of a sample, layout); -1: varies."""
        return self._open(1).fields

    @property
    def format(self):
        """Name of the format."""
        return self._open(1).format

    def path_of(self, sample):
        """Path of the file that contains a sample."""
        return self._open(1).object_name(sample)

    def __len__(self):
        self._open(1)
        return self._len

    def fetch(self, ids):
        """Load samples as one batch.

        Parameters
        ----------
        ids : sequence, array or tensor of int
            Sample numbers, in the order of the rows; negative ones count from
            the end.

        Returns
        -------
        Batch

        Examples
        --------
        >>> penstock.Dataset(data / "x.npy").fetch([5, -1]).ids.tolist()
        [5, 999]
        """
        n = len(ids)
        if not n:
            raise IndexError("the list of samples is empty")
        wanted = numbers_of(ids, len(self))
        if self._forks != _penstock.forks():
            self._reset()
        with self._lock:
            engine = self._open(n)
            try:
                engine.ask(wanted)
                return engine.next()
            except IndexError:
                raise
            except BaseException:
                # a batch may be in flight: the next call must not get it
                self._engine = None
                engine.close()
                raise

    def __getitem__(self, i):
        if isinstance(i, slice):
            return self.fetch(range(*i.indices(len(self))))
        if hasattr(i, "dtype") and str(i.dtype).endswith("bool"):
            if len(i) != len(self):
                raise IndexError(f"a mask of length {len(i)} for {len(self)} "
                                 "samples")
            return self.fetch(i.nonzero()[0] if not hasattr(i, "numpy")
                              else i.nonzero().flatten())
        if hasattr(i, "__len__"):
            return self.fetch(i)
        return rows_of(self.fetch([int(i)]))[0]

    def __getitems__(self, ids):
        """Called by PyTorch's DataLoader to load a batch."""
        return rows_of(self.fetch(ids))

    def __iter__(self):
        for i in range(0, len(self), 64):
            yield from rows_of(self.fetch(range(i, min(i + 64, len(self)))))

    def close(self):
        """End all threads. Batches and arrays stay valid."""
        if self._engine is not None and self._forks == _penstock.forks():
            self._engine.close()
        self._engine = None

    def __repr__(self):
        return f"<penstock.Dataset {len(self)} samples of {self.format}>"
