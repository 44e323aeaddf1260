"""A drop-in for torch.utils.data.DataLoader, with threads of the engine instead
of worker processes.

Examples
--------
>>> from penstock.torch import DataLoader
>>> loader = DataLoader(data / "x.npy", batch_size=256, shuffle=True)
>>> for batch in loader:
...     x = batch["x"]
>>> type(x), tuple(x.shape)
(<class 'torch.Tensor'>, (232, 8))
"""
import warnings
from collections.abc import Mapping
from functools import partial
from itertools import islice

import torch

from . import _options, _penstock, _ranks
from ._dataset import Dataset, Samples, numbers_of, rows_of
from ._loader import Loader

__all__ = ["DataLoader", "collate"]

_warned = set()


def _ignored(name, why):
    if name not in _warned:
        _warned.add(name)
        warnings.warn(f"penstock: {name}= is ignored: {why}", stacklevel=3)


def collate(samples):
    """A collate_fn for PyTorch's own DataLoader over a `penstock.Dataset`.

    Samples that were fetched together are already a batch; it is returned as
    tensors without a copy.

    Parameters
    ----------
    samples : list
        What DataLoader passes.

    Returns
    -------
    dict of str to torch.Tensor

    Examples
    --------
    >>> import torch
    >>> from penstock.torch import collate
    >>> loader = torch.utils.data.DataLoader(
    ...     penstock.Dataset(data / "x.npy"), 100, collate_fn=collate)
    >>> next(iter(loader))["x"].shape
    torch.Size([100, 8])
    """
    if isinstance(samples, Samples):
        return samples.batch.torch()
    return torch.utils.data.default_collate(samples)


class _Order:
    """Takes the place of a sampler, for code that calls its set_epoch()."""

    def __init__(self, loader):
        self._loader = loader

    def set_epoch(self, epoch):
        self._loader.set_epoch(epoch)

    def __len__(self):
        """Number of samples of this rank, as in PyTorch's samplers."""
        loader = self._loader
        return -(-loader._engine.state()["length"] // loader.world)


class _Batches(Loader):
    """An epoch without a batch is not an error in PyTorch."""
    _empty = True


def _check_sizes(batch_size, batch_sampler, drop_last, timeout):
    """Raise for values that PyTorch rejects, too."""
    if batch_sampler is not None:
        return
    if batch_size is None:
        if drop_last:
            raise ValueError("drop_last= cannot be combined with "
                             "batch_size=None, which yields single samples")
    elif isinstance(batch_size, bool) or not hasattr(batch_size, "__index__") \
            or batch_size < 1:
        raise ValueError("batch_size must be a positive integer, not "
                         f"{batch_size!r}")
    if timeout < 0:
        raise ValueError("timeout must not be negative")


def _draw(generator, rank, world):
    """Draw a seed from PyTorch's generator, as its own samplers do, so that
    loaders differ from one another. Ranks need one order: all use the draw of
    rank 0. Ranks that PyTorch does not connect use 0, as its
    DistributedSampler does."""
    dist = torch.distributed
    if world > 1 and not (
            dist.is_available() and dist.is_initialized() and
            (rank, world) == (dist.get_rank(), dist.get_world_size())):
        return 0
    seed = [int(torch.empty((), dtype=torch.int64).random_(
        generator=generator).item())]
    if world > 1:
        dist.broadcast_object_list(seed, 0)
    return seed[0]


class _Asked:
    """Batches of the given indices, prefetched in the given order."""

    def __init__(self, dataset, depth, threads):
        self._dataset = dataset
        self._depth = depth
        self._threads = threads
        self._engine = None
        self._most = 0
        self._under_way = 0     # batches in flight
        self._run = 0           # number of the current iteration

    def _open(self, n):
        ds = self._dataset
        if self._engine is None or n > self._most:
            self._drop()
            self._most = 1 << (n - 1).bit_length()
            settings = {"threads": self._threads, **ds.settings,
                        "prefetch": self._depth, "batch_size": self._most}
            self._engine = _options.engine(ds.paths, settings, True)
        return self._engine

    def _check(self, run):
        if run == self._run:
            return
        if self._engine is None:
            raise ValueError("the loader was closed")
        raise RuntimeError("another iteration over this loader has started; "
                           "open two loaders to iterate concurrently")

    def _next(self, run):
        self._check(run)
        self._under_way -= 1
        return self._engine.next()

    def iterate(self, groups):
        """Yield a batch for each list of indices."""
        length = len(self._dataset)
        self._run += 1
        run = self._run
        if self._under_way:     # of an abandoned iteration
            self._drop()
        try:
            for ids in groups:
                wanted = numbers_of(ids, length)
                if not wanted:
                    raise IndexError("the sampler yielded an empty batch")
                while self._under_way and len(wanted) > self._most:
                    yield self._next(run)   # from the smaller engine
                self._check(run)
                self._open(len(wanted)).ask(wanted)
                self._under_way += 1
                if self._under_way > self._depth:
                    yield self._next(run)
            self._check(run)
            while self._under_way:
                yield self._next(run)
        finally:
            # abandoned: drop what was requested
            if self._under_way and run == self._run:
                self._drop()

    def _drop(self):
        if self._engine is not None:
            self._engine.close()
        self._engine = None
        self._under_way = 0

    def close(self):
        self._run += 1
        self._drop()


class DataLoader:
    """Yield batches as dicts of tensors, without a copy.

    It takes the arguments of `torch.utils.data.DataLoader`. `worker_init_fn`,
    `multiprocessing_context`, `persistent_workers`, `timeout` and `in_order`
    have no effect and are ignored with a warning.

    Parameters
    ----------
    dataset : path, list of paths, DDict, penstock.Dataset or iterable
    batch_size : int or None
        None yields single samples.
    shuffle : bool or str, optional
        As in `penstock.Loader`; the engine's own order, divided among ranks.
    sampler, batch_sampler : iterable, optional
        Indices, or lists of indices, which are followed exactly and
        prefetched.
    num_workers : int
        Threads; 0 for one per CPU.
    collate_fn : callable, optional
        Called with a list of samples (dicts of tensors).
    generator : torch.Generator, optional
        The source of the seed, drawn once per loader, unless `seed` is set.
        Default: PyTorch's own generator, so torch.manual_seed() is respected.
    prefetch_factor : int, optional
        Batches to prefetch per worker.
    seed : int, optional
        Seed of the order.
    rank, world : int, optional
        As in `penstock.Loader`.
    tuples : bool
        Yield a tuple of tensors instead of a dict.
    **settings
        Settings of `penstock.Loader`.

    Examples
    --------
    >>> from penstock.torch import DataLoader
    >>> with DataLoader(data / "x.npy", 64, shuffle=True, tuples=True) as loader:
    ...     x, = next(iter(loader))
    >>> x.shape
    torch.Size([64, 8])
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None,
                 batch_sampler=None, num_workers=0, collate_fn=None,
                 pin_memory=False, drop_last=False, timeout=0,
                 worker_init_fn=None, multiprocessing_context=None,
                 generator=None, *, prefetch_factor=None,
                 persistent_workers=False, pin_memory_device="",
                 in_order=True, seed=None, rank=None, world=None,
                 tuples=False, **settings):
        for name, value, why in (
                ("worker_init_fn", worker_init_fn, "there are no worker processes"),
                ("multiprocessing_context", multiprocessing_context,
                 "there are no worker processes"),
                ("persistent_workers", persistent_workers,
                 "threads always persist across epochs"),
                ("timeout", timeout, "there are no worker processes to wait for"),
                ("in_order", not in_order, "batches always come in order")):
            if value:
                _ignored(name, why)
        if isinstance(dataset, torch.utils.data.Dataset):
            raise TypeError("penstock.torch.DataLoader reads files; pass a "
                            "path or a penstock.Dataset, or use "
                            "torch.utils.data.DataLoader for this data set")
        if batch_sampler is not None and (
                batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("batch_sampler= cannot be combined with "
                             "batch_size=, shuffle=, sampler= or drop_last=")
        if sampler is not None and shuffle:
            raise ValueError("sampler= cannot be combined with shuffle=")
        _check_sizes(batch_size, batch_sampler, drop_last, timeout)
        if batch_sampler is not None:
            batch_size = None   # as in PyTorch
        if isinstance(dataset, Dataset):
            settings = {**dataset.settings, **settings}
            self._dataset = dataset
            paths = dataset.paths
        else:
            paths = _options.paths_of(dataset)
            self._dataset = None
        self._paths = paths
        self._kept = {k: v for k, v in settings.items() if k not in (
            "prefetch", "sampler", "epoch_batches", "epochs", "batch_tokens",
            "pack", "too_long")}
        self.num_workers = num_workers
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.collate_fn = collate_fn
        self.generator = generator
        self.pin_memory = bool(pin_memory) and torch.cuda.is_available()
        self.prefetch_factor = prefetch_factor
        self.batch_sampler = batch_sampler
        self.timeout = timeout
        self._tuples = tuples
        self._single = batch_size is None and batch_sampler is None and \
            not (settings.get("batch_tokens") or settings.get("pack"))
        self._skip = 0      # batches to skip after load_state_dict()
        self._given = 0     # batches yielded in this epoch
        self._loader = self._asked = None
        ahead = (prefetch_factor or 0) * max(num_workers, 1)
        if sampler is None and batch_sampler is None:
            if ahead:
                settings.setdefault("prefetch", ahead)
            self._open_loader(paths, settings, shuffle, generator, seed, rank,
                              world)
            return
        self.sampler = sampler
        self._asked = _Asked(self.dataset, ahead or 4, num_workers)

    def _open_loader(self, paths, settings, shuffle, generator, seed, rank,
                     world):
        rank, world = _ranks.settle(rank, world)
        self._drawn = seed is None
        if self._drawn:
            seed = _draw(generator, rank, world)
        settings = {"threads": self.num_workers, **settings}
        size = 1 if self._single else self.batch_size
        if settings.get("batch_tokens") and size == 1:
            size = None     # not set: as many as fit
        shuffle = bool(shuffle) if shuffle in (None, True, False) else shuffle
        self._make = partial(_Batches, paths, size, shuffle, rank=rank,
                             world=world, drop_last=self.drop_last or None,
                             **settings)
        self._loader = self._make(seed=seed % 2**63)
        if self.drop_last and not len(self._loader):
            warnings.warn("penstock: no batches: the samples do not fill one, "
                          "and drop_last=True drops incomplete batches",
                          stacklevel=3)
        self.sampler = _Order(self._loader)

    @property
    def dataset(self):
        """The samples by index, as a `penstock.Dataset`; opened on first use."""
        if self._dataset is None:
            self._dataset = Dataset(self._paths, **self._kept)
        return self._dataset

    # -- iterating --

    def _groups(self):
        """Yield the lists of indices of the samplers."""
        if self.batch_sampler is not None:
            yield from self.batch_sampler
            return
        if self.batch_size is None:     # each is a sample or a list
            for i in self.sampler:
                yield i if hasattr(i, "__len__") else [i]
            return
        group = []
        for i in self.sampler:
            group.append(int(i))
            if len(group) == self.batch_size:
                yield group
                group = []
        if group and not self.drop_last:
            yield group

    def __iter__(self):
        if self._loader is not None:
            return self._finish(iter(self._loader))
        skip, self._skip = self._skip, 0
        self._given = skip
        return self._finish(self._asked.iterate(
            islice(self._groups(), skip, None)), skip)

    def _finish(self, batches, skip=0):
        """Convert batches to what the user gets."""
        single = self._single
        take = _penstock.Batch.torch
        collate_fn, pin, tuples = self.collate_fn, self.pin_memory, self._tuples
        counts = self._asked is not None
        for n, batch in enumerate(batches, skip + 1):
            if counts:
                self._given = n
            if collate_fn is not None:
                samples = rows_of(batch, "torch")
                out = collate_fn(samples[0] if single and len(samples) == 1
                                 else samples)
                samples = None
            elif single and batch.nsamples == 1:
                out = rows_of(batch, "torch")[0]
            else:
                out = take(batch)
            batch = None
            if pin:
                out = _pin(out)
            if tuples and isinstance(out, dict):
                out = tuple(out.values())
            yield out
            out = None
        if counts:
            self._given = 0

    def __len__(self):
        if self._loader is not None:
            return len(self._loader)
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        n = len(self.sampler)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else \
            -(-n // self.batch_size)

    # -- position --

    def set_epoch(self, epoch):
        """Make the next iteration this epoch (from 0)."""
        if self._loader is not None:
            self._loader.set_epoch(epoch)
            return
        for s in (self.sampler, self.batch_sampler,
                  getattr(self.batch_sampler, "sampler", None)):
            if hasattr(s, "set_epoch"):
                s.set_epoch(epoch)

    def state_dict(self):
        """The position after the last batch that was received.

        Without a sampler it includes the seed; with one it counts batches.
        """
        if self._loader is not None:
            return self._loader.state_dict()
        return {"batches": self._given}

    def load_state_dict(self, state):
        """Continue from a saved position, in the order of the state.

        With a sampler of your own, its next iteration must repeat the
        interrupted one; the batches already received are skipped without
        being read.
        """
        if self._loader is None:
            self._skip = self._given = int(state["batches"])
            return
        seed = state.get("seed") if isinstance(state, Mapping) else None
        if not self._drawn or seed in (
                None, self._loader.state_dict()["seed"]):
            self._loader.load_state_dict(state)
            return
        other = self._make(seed=seed)   # the order of the state
        try:
            other.load_state_dict(state)
        except BaseException:
            other.close()
            raise
        self._loader.close()
        self._loader = self.sampler._loader = other

    def stats(self):
        """Counters since the loader was opened; see `penstock.Loader.stats`."""
        engine = self._loader or self._asked._engine
        return engine.stats() if engine else {}

    def close(self):
        """End all threads. Tensors stay valid."""
        for x in (self._loader, self._asked):
            if x is not None:
                x.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def _pin(x):
    if isinstance(x, torch.Tensor):
        return x.pin_memory()
    if isinstance(x, dict):
        return {k: _pin(v) for k, v in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(_pin(v) for v in x))
    if isinstance(x, (list, tuple)):
        return type(x)(_pin(v) for v in x)
    return x
