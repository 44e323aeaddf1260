"""The loader: epochs, resuming and hooks above the engine."""
import atexit
import weakref

from . import _options, _penstock, _ranks
from ._penstock import SettingError

_live = weakref.WeakSet()


@atexit.register
def _close_all():
    """Threads do not go on while the interpreter goes down."""
    for loader in list(_live):
        loader.close()


def _hook(value):
    """What collate= and transform= may be: a function, or its name."""
    if value is None or callable(value):
        return value
    if value in ("numpy", "torch"):
        return getattr(_penstock.Batch, value)
    raise SettingError(f"'{value}' is neither a function nor 'numpy' or "
                       "'torch'")


class Loader:
    """Loads a data set as batches, one epoch an iteration.

    >>> loader = penstock.Loader(data / "x.npy", batch_size=256, shuffle=True)
    >>> len(loader)
    4
    >>> for batch in loader:
    ...     x = numpy.asarray(batch["x"])     # no copy
    >>> x.shape
    (232, 8)

    path is a file, a directory, a glob or an @list, or several of them. All
    settings of `penstock load --help` are keyword arguments; so are the
    options of the chosen format, store and sampler. Where one name is an
    option of two of them, sampler_chunk=64 says which is meant.

    fields     only these fields
    dtype      convert the largest field (a format with an option dtype: that)
    subset, weights, labels, lengths
               arrays, or files of them; subset also a slice
    batch_tokens, pack
               batches by length: batch_size (32, but any number with
               batch_tokens) is the most samples, or the rows
    rank, world
               found (torch.distributed, torchrun, MPI, SLURM) when not given
    transform  called with each batch, ahead, in a thread: what it returns is
               what the iteration gives; at most `ahead` results wait
    collate    the same, but called in the thread that iterates; "numpy" or
               "torch": that method of the batch

    iter(loader) is one epoch, and the next one the next epoch. Leaving an
    epoch before its end and iterating again begins the next epoch.
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
            raise SettingError("ahead: at least 1 result has to wait")
        self._depth = ahead
        self._thread = None     # the transform's, of this epoch
        self._run = 0           # number of the iteration that may go on
        self._forks = _penstock.forks()
        self._begun = False     # ... has given a batch and not ended
        self._at = None         # with a transform: where the user is
        self._engine = _penstock.Engine(
            paths, _options.settle(paths, settings))
        _options.warn(self._engine)
        drops = settings.get("drop_last") or settings.get("tail") == "drop"
        if drops and not self._empty and not len(self):
            raise SettingError(
                "batch_size: the samples do not fill a batch, and drop_last "
                "drops what does not fill one: lower batch_size=, or leave "
                "drop_last= out")
        if any(name.endswith("_indices") for name, *_ in self._engine.fields):
            about = self._engine.about()
            self._engine.ncols = int(about.get("genes taken") or
                                     about.get("genes") or 0)
        self.batch_size = 32 if batch_size is None else batch_size
        self.rank, self.world = rank, world
        _live.add(self)

    # -- iterating --

    def __len__(self):
        """Batches in an epoch. With batch_tokens or pack, of the epoch that
        is under way or comes next, which takes going through its order."""
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
            self._engine.state()    # says that it is not usable here
        if run != self._run:
            raise RuntimeError("another iteration over this loader was begun; "
                               "open two loaders to iterate twice at a time")

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
            batch = None    # the memory is free for the next one

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

    # -- where it stands --

    def _position(self):
        if self._at is not None:
            return self._at
        state = self._engine.state()
        return state["epoch"], state["position"]

    def _restore(self, epoch, position):
        if epoch >= 2**64:
            raise SettingError("there are no such epochs")
        s = self._engine.state()
        self._at = None
        if (s["epoch"], s["position"]) == (epoch, position):
            return
        self._engine.restore(s["version"], s["seed"], epoch, position,
                             s["length"], s["order"])

    @property
    def epoch(self):
        """The epoch that is under way or comes next."""
        return self._position()[0]

    def set_epoch(self, epoch):
        """The next iteration is this epoch (from 0)."""
        if epoch < 0:
            raise SettingError("epochs are numbered from 0")
        self._join()
        self._run += 1
        self._begun = False
        self._restore(epoch, 0)

    def state_dict(self):
        """Where you are, after the last batch you got: plain numbers, to be
        saved with the model.

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
        """Goes on from there, also with another number of ranks, another
        batch size, or other threads than it was saved with. Data, seed and
        sampler have to be the same."""
        try:
            values = [int(state[k]) for k in (
                "version", "seed", "epoch", "position", "length", "order")]
        except (KeyError, TypeError, ValueError):
            values = [-1]
        if not all(0 <= v < 2**64 for v in values):
            raise SettingError("this is not the state of a loader")
        self._join()
        self._engine.restore(*values)
        self._run += 1
        self._begun = False
        self._at = None

    # -- what there is --

    @property
    def fields(self):
        """[(name, dtype, shape of a sample, layout)]; -1 where it varies."""
        return [f for f in self._engine.fields
                if self._only is None or f[0] in self._only]

    @property
    def nsamples(self):
        """Samples of the data set."""
        return self._engine.nsamples

    @property
    def format(self):
        return self._engine.format

    @property
    def store(self):
        return self._engine.store

    def labels(self, field):
        """What the codes of a field stand for, as a list of names; None when
        it has no codes."""
        for i, (name, *_) in enumerate(self._engine.fields):
            if name == field:
                return self._engine.labels(i)
        raise KeyError(field)

    def about(self):
        """What `penstock inspect` says of the data: {fact: value}."""
        return self._engine.about()

    def path_of(self, sample):
        """The file that holds a sample."""
        return self._engine.object_name(sample)

    def stats(self):
        """What happened so far: counts, bytes, seconds (of threads: summed),
        and percentiles of what next() waited."""
        out = self._engine.stats()
        for p in (50, 90, 99, 100):
            out[f"wait_p{p}_s"] = self._engine.wait_percentile(p)
        return out

    def skipped(self):
        """[(sample, file, why)] that on_error= left out or replaced."""
        return self._engine.skipped()

    # -- the end --

    def close(self):
        """Ends all threads. Batches and arrays stay valid."""
        if self._thread:
            self._thread.stop()
        self._engine.close()

    @property
    def closed(self):
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
