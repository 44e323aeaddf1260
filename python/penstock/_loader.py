"""The loader: epochs, resuming and hooks on top of the engine."""
import atexit
import weakref

from . import _options, _penstock, _ranks
from ._penstock import SettingError

_live = weakref.WeakSet()


@atexit.register
def _close_all():
    """End all threads before the interpreter shuts down."""
    for loader in list(_live):
        loader.close()


def _hook(value):
    """The function for collate= or transform=, which may be given by name."""
    if value is None or callable(value):
        return value
    if value in ("numpy", "torch"):
        return getattr(_penstock.Batch, value)
    raise SettingError(f"'{value}' is not a function, 'numpy' or 'torch'")


class Loader:
    """Load a data set as batches; one iteration is one epoch.

    Every `iter` starts the next epoch, also if the previous one was not
    finished. A loader cannot be used in a forked child; use a `Dataset` there.

    Parameters
    ----------
    path : path or list of paths
        Files, directories, globs or ``@list`` files.
    batch_size : int, optional
        Samples per batch on this rank (32). With `batch_tokens` an upper
        bound (default: none); with `pack` the number of rows.
    shuffle : bool or str, optional
        True for a global shuffle, or the name of a sampler such as "block".
    seed : int, optional
        The order is a function of seed and epoch.
    epochs : int
        Number of epochs; 0 for no limit.
    rank, world : int, optional
        This process and the number of processes that share each global
        batch. Default: from torch.distributed, torchrun, MPI or Slurm.
    transform : callable, "numpy" or "torch", optional
        Called with each batch in a background thread, ahead of the consumer;
        the iteration yields its results, in order.
    collate : callable, "numpy" or "torch", optional
        The same, but called in the iterating thread.
    ahead : int
        Results of `transform` that may be ready in advance.
    **settings
        Any setting of ``penstock load --help`` (`threads`, `prefetch`,
        `memory`, `fields`, `on_error`, `batch_tokens`, ...) and any option of
        the chosen format, store and sampler. A prefix resolves a name that
        two of them have: ``sampler_chunk=64``. `subset`, `weights`, `labels`
        and `lengths` accept arrays or files, `subset` also a slice. `dtype`
        converts the largest field. `decode` is a dict ``{field: decoder}``.

    Raises
    ------
    SettingError
        A setting is unknown or invalid; the message suggests the nearest.
    DataError
        The data is damaged or not supported.
    OSError
        A file cannot be read.

    Examples
    --------
    >>> loader = penstock.Loader(data / "x.npy", batch_size=256, shuffle=True)
    >>> len(loader)
    4
    >>> for batch in loader:
    ...     x = numpy.asarray(batch["x"])     # no copy
    >>> x.shape
    (232, 8)
    """

    _empty = False      # may an epoch have no batch at all?

    def __init__(self, path=(), batch_size=None, shuffle=None, *, seed=None,
                 epochs=0, rank=None, world=None, transform=None, collate=None,
                 ahead=2, **settings):
        paths = _options.paths_of(path)
        rank, world = _ranks.settle(rank, world)
        settings.update(batch_size=batch_size, shuffle=shuffle, seed=seed,
                        epochs=epochs, rank=rank, world=world)
        only = settings.get("fields")
        self._only = [only] if isinstance(only, str) else only
        self._transform = _hook(transform)
        self._collate = _hook(collate)
        if ahead < 1:
            raise SettingError("ahead: must be at least 1")
        self._depth = ahead
        self._thread = None     # runs transform in this epoch
        self._run = 0           # number of the current iteration
        self._forks = _penstock.forks()
        self._begun = False     # it has yielded a batch and not ended
        self._at = None         # with a transform: the consumer's position
        self._engine = _penstock.Engine(
            paths, _options.settle(paths, settings))
        _options.warn(self._engine)
        drops = settings.get("drop_last") or settings.get("tail") == "drop"
        if drops and not self._empty and not len(self):
            raise SettingError(
                "batch_size: the samples do not fill a batch, and drop_last "
                "drops incomplete batches; lower batch_size= or omit "
                "drop_last=")
        if any(name.endswith("_indices") for name, *_ in self._engine.fields):
            about = self._engine.about()
            self._engine.ncols = int(about.get("genes taken") or
                                     about.get("genes") or 0)
        self.batch_size = 32 if batch_size is None else batch_size
        self.rank, self.world = rank, world
        _live.add(self)

    # -- iterating --

    def __len__(self):
        """Number of batches per epoch.

        With `batch_tokens` or `pack` it differs between epochs: the result is
        that of the current epoch, or of the next one between epochs.
        """
        return self._engine.nbatches

    def __iter__(self):
        self._join()
        epoch, position = self._position()
        if self._begun:
            epoch, position = epoch + 1, 0
        self._restore(epoch, position)
        self._begun = False
        self._run += 1
        if self._transform:
            self._at = epoch, position
            return self._iterate_ahead(self._run)
        return self._iterate(self._run)

    def _check(self, run):
        if self._forks != _penstock.forks():
            self._engine.state()    # raises: not usable in a child
        if run != self._run:
            raise RuntimeError("another iteration over this loader has started"
                               "; open two loaders to iterate concurrently")

    def _iterate(self, run):
        take, collate = self._engine.next, self._collate
        while True:
            if run != self._run:
                self._check(run)
            batch = take()
            if batch is None:
                self._begun = False
                return
            self._begun = True
            if collate is not None:
                batch = collate(batch)
            yield batch
            batch = None    # release the memory for the next batch

    def _iterate_ahead(self, run):
        from ._ahead import Ahead, DONE
        thread = self._thread = Ahead(self._engine.next, self._transform,
                                      self._depth)
        collate = self._collate
        try:
            while True:
                self._check(run)
                kind, out, at = thread.next()
                if kind == DONE:
                    self._begun = False
                    self._at = None
                    return
                self._begun = True
                self._at = at
                if collate is not None:
                    out = collate(out)
                yield out
                out = None
        finally:
            thread.stop()

    def _join(self):
        if self._thread:
            self._thread.join()
            self._thread = None

    # -- position --

    def _position(self):
        if self._at is not None:
            return self._at
        state = self._engine.state()
        return state["epoch"], state["position"]

    def _restore(self, epoch, position):
        if epoch >= 2**64:
            raise SettingError("epoch: must be below 2**64")
        s = self._engine.state()
        self._at = None
        if (s["epoch"], s["position"]) == (epoch, position):
            return
        self._engine.restore(s["version"], s["seed"], epoch, position,
                             s["length"], s["order"])

    @property
    def epoch(self):
        """The current epoch, or the next one between epochs."""
        return self._position()[0]

    def set_epoch(self, epoch):
        """Make the next iteration this epoch.

        Parameters
        ----------
        epoch : int
            Epochs are numbered from 0.

        Examples
        --------
        >>> loader.set_epoch(7)
        >>> next(iter(loader)).epoch
        7
        """
        if epoch < 0:
            raise SettingError("epoch: must not be negative")
        self._join()
        self._run += 1
        self._begun = False
        self._restore(epoch, 0)

    def state_dict(self):
        """The position after the last batch that was received.

        Returns
        -------
        dict of str to int
            Plain numbers, to save with the model.

        Examples
        --------
        >>> batches = iter(loader)
        >>> first = next(batches)
        >>> state = loader.state_dict()
        >>> rest = [b.ids.tolist() for b in batches]
        >>> loader.load_state_dict(state)
        >>> [b.ids.tolist() for b in loader] == rest
        True
        """
        state = self._engine.state()
        state["epoch"], state["position"] = self._position()
        return state

    def load_state_dict(self, state):
        """Continue from a saved position.

        The number of ranks, the batch size and the threads may differ from
        those of the loader that saved it. Data, seed and sampler must be the
        same.

        Parameters
        ----------
        state : mapping
            A result of `state_dict`.

        Raises
        ------
        SettingError
            The state does not belong to this data, seed or order.
        """
        try:
            values = [int(state[k]) for k in (
                "version", "seed", "epoch", "position", "length", "order")]
        except (KeyError, TypeError, ValueError):
            values = [-1]
        if not all(0 <= v < 2**64 for v in values):
            raise _options.refused("P112", "state: not the state of a loader")
        self._join()
        self._engine.restore(*values)
        self._run += 1
        self._begun = False
        self._at = None

    # -- properties --

    @property
    def fields(self):
        """List of (name, dtype, shape of a sample, layout); -1: varies."""
        return [f for f in self._engine.fields
                if self._only is None or f[0] in self._only]

    @property
    def nsamples(self):
        """Number of samples in the data set."""
        return self._engine.nsamples

    @property
    def format(self):
        """Name of the format."""
        return self._engine.format

    @property
    def store(self):
        """Name of the store that reads the bytes."""
        return self._engine.store

    def labels(self, field):
        """Names of the codes of a field.

        Returns
        -------
        list of str or None
            The name of code 0, of code 1, ...; None if the field has no
            codes.

        Raises
        ------
        KeyError
            There is no such field.
        """
        for i, (name, *_) in enumerate(self._engine.fields):
            if name == field:
                return self._engine.labels(i)
        raise KeyError(field)

    def about(self):
        """Facts about the data, as ``penstock inspect`` prints them.

        Returns
        -------
        dict of str to str
        """
        return self._engine.about()

    def path_of(self, sample):
        """Path of the file that contains a sample.

        Examples
        --------
        >>> loader.path_of(3)
        'x.npy'
        """
        return self._engine.object_name(sample)

    def stats(self):
        """Counters since the loader was opened.

        Returns
        -------
        dict of str to float
            Counts, bytes, seconds (of threads: summed) and percentiles of the
            wait for a batch.

        Examples
        --------
        >>> loader.stats()["nbatches"] >= 0
        True
        """
        out = self._engine.stats()
        for p in (50, 90, 99, 100):
            out[f"wait_p{p}_s"] = self._engine.wait_percentile(p)
        return out

    def skipped(self):
        """List of (sample, file, reason) that `on_error` skipped or replaced."""
        return self._engine.skipped()

    # -- closing --

    def close(self):
        """End all threads. Batches and arrays stay valid."""
        if self._thread:
            self._thread.stop()
        self._engine.close()

    @property
    def closed(self):
        """True after `close`."""
        return self._engine.closed

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __repr__(self):
        if self.closed:
            return "<penstock.Loader, closed>"
        return (f"<penstock.Loader {self.nsamples} samples of {self.format}, "
                f"{len(self)} batches of {self.batch_size}>")
