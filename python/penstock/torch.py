"""In the place of torch.utils.data.DataLoader: the same arguments, threads of
the engine instead of worker processes.

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
    """collate_fn for PyTorch's own DataLoader over a penstock.Dataset: what
    was fetched together is a batch already."""
    if isinstance(samples, Samples):
        return samples.batch.torch()
    return torch.utils.data.default_collate(samples)


class _Order:
    """Stands where a sampler does: set_epoch() is what is called on it."""

    def __init__(self, loader):
        self._loader = loader

    def set_epoch(self, epoch):
        self._loader.set_epoch(epoch)

    def __len__(self):
        """Samples of this rank, as PyTorch's samplers have it."""
        loader = self._loader
        return -(-loader._engine.state()["length"] // loader.world)


class _Batches(Loader):
    """An epoch without a batch is none of PyTorch's errors."""
    _empty = True


def _check_sizes(batch_size, batch_sampler, drop_last, timeout):
    """What PyTorch refuses, too."""
    if batch_sampler is not None:
        return
    if batch_size is None:
        if drop_last:
            raise ValueError("batch_size=None takes samples one by one: "
                             "drop_last has no meaning then")
    elif isinstance(batch_size, bool) or not hasattr(batch_size, "__index__") \
            or batch_size < 1:
        raise ValueError(f"batch_size is a whole number from 1 on, not "
                         f"{batch_size!r}")
    if timeout < 0:
        raise ValueError("timeout is not below 0")


def _draw(generator, rank, world):
    """A seed out of PyTorch's generator, as its own samplers take theirs: it
    moves the generator on, so loaders differ from one another. Ranks need one
    order: all take what rank 0 drew. Ranks that PyTorch does not connect take
    0, as its DistributedSampler does."""
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
    """Batches of given indices, fetched ahead, in the order given."""

    def __init__(self, dataset, depth, threads):
        self._dataset = dataset
        self._depth = depth
        self._threads = threads
        self._engine = None
        self._most = 0
        self._under_way = 0     # batches asked for and not taken
        self._run = 0           # number of the iteration that may go on

    def _open(self, n):
        ds = self._dataset
        if self._engine is None or n > self._most:
            self._drop()
            self._most = 1 << (n - 1).bit_length()
            settings = {"threads": self._threads, **ds.settings,
                        "prefetch": self._depth, "batch_size": self._most}
            self._engine = _penstock.Engine(
                ds.paths, _options.settle(ds.paths, settings), True)
        return self._engine

    def _check(self, run):
        if run == self._run:
            return
        if self._engine is None:
            raise ValueError("the loader was closed")
        raise RuntimeError("another iteration over this loader was begun; "
                           "open two loaders to iterate twice at a time")

    def _next(self, run):
        self._check(run)
        self._under_way -= 1
        return self._engine.next()

    def iterate(self, groups):
        """A batch for each list of indices."""
        length = len(self._dataset)
        self._run += 1
        run = self._run
        if self._under_way:     # of an iteration that was left and not ended
            self._drop()
        try:
            for ids in groups:
                wanted = numbers_of(ids, length)
                if not wanted:
                    raise IndexError("an empty batch was asked for")
                while self._under_way and len(wanted) > self._most:
                    yield self._next(run)   # of the smaller engine
                self._check(run)
                self._open(len(wanted)).ask(wanted)
                self._under_way += 1
                if self._under_way > self._depth:
                    yield self._next(run)
            self._check(run)
            while self._under_way:
                yield self._next(run)
        finally:
            # left early: what was asked for is not wanted
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
    """torch.utils.data.DataLoader's arguments; yields dicts of tensors that
    look into the engine's memory, without a copy.

    dataset      a path, several, or a penstock.Dataset
    num_workers  threads; 0: as many as CPUs
    batch_size   None: samples one by one
    sampler      indices in the order to load, batch_sampler lists of them;
                 without them the engine has its own order (shuffle=), shared
                 out among ranks
    seed         of that order; else one is drawn from generator, or from
                 PyTorch's own (torch.manual_seed() counts), once a loader
    collate_fn   called with a list of samples (dicts of tensors)
    tuples       True: a tuple of tensors instead of a dict
    Other keyword arguments are settings of penstock.Loader.
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
                ("worker_init_fn", worker_init_fn, "there are no workers"),
                ("multiprocessing_context", multiprocessing_context,
                 "there are no processes"),
                ("persistent_workers", persistent_workers,
                 "threads stay over epochs anyway"),
                ("timeout", timeout, "nothing can get stuck between processes"),
                ("in_order", not in_order, "batches come in order")):
            if value:
                _ignored(name, why)
        if isinstance(dataset, torch.utils.data.Dataset):
            raise TypeError("penstock.torch.DataLoader reads files: give it a "
                            "path or a penstock.Dataset; Python data sets are "
                            "for torch.utils.data.DataLoader")
        if batch_sampler is not None and (
                batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("batch_sampler excludes batch_size, shuffle, "
                             "sampler and drop_last")
        if sampler is not None and shuffle:
            raise ValueError("sampler excludes shuffle")
        _check_sizes(batch_size, batch_sampler, drop_last, timeout)
        if batch_sampler is not None:
            batch_size = None   # as PyTorch says it
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
        self._skip = 0      # batches to leave out after load_state_dict()
        self._given = 0     # batches of this epoch the user has got
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
            size = None     # nobody said: as many as fit
        shuffle = bool(shuffle) if shuffle in (None, True, False) else shuffle
        self._make = partial(_Batches, paths, size, shuffle, rank=rank,
                             world=world, drop_last=self.drop_last or None,
                             **settings)
        self._loader = self._make(seed=seed % 2**63)
        if self.drop_last and not len(self._loader):
            warnings.warn("penstock: the samples do not fill a batch, and "
                          "drop_last=True drops what does not fill one: "
                          "there are no batches", stacklevel=3)
        self.sampler = _Order(self._loader)

    @property
    def dataset(self):
        """The data set by index; opened when it is asked for."""
        if self._dataset is None:
            self._dataset = Dataset(self._paths, **self._kept)
        return self._dataset

    # -- iterating --

    def _groups(self):
        """Lists of indices, as the samplers give them."""
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
        """What is made of a batch."""
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

    # -- where it stands --

    def set_epoch(self, epoch):
        """The next iteration is this epoch."""
        if self._loader is not None:
            self._loader.set_epoch(epoch)
            return
        for s in (self.sampler, self.batch_sampler,
                  getattr(self.batch_sampler, "sampler", None)):
            if hasattr(s, "set_epoch"):
                s.set_epoch(epoch)

    def state_dict(self):
        """Where you are, after the last batch you got. Without a sampler it
        holds the seed."""
        if self._loader is not None:
            return self._loader.state_dict()
        return {"batches": self._given}

    def load_state_dict(self, state):
        """Goes on from there, in the order of the state. With a sampler of your own: its next iteration
        has to be the one that was left, whose first batches are passed over
        without being read."""
        if self._loader is None:
            self._skip = self._given = int(state["batches"])
            return
        seed = state.get("seed") if isinstance(state, Mapping) else None
        if not self._drawn or seed in (
                None, self._loader.state_dict()["seed"]):
            self._loader.load_state_dict(state)
            return
        other = self._make(seed=seed)   # the order that was left, not this one's
        try:
            other.load_state_dict(state)
        except BaseException:
            other.close()
            raise
        self._loader.close()
        self._loader = self.sampler._loader = other

    def stats(self):
        engine = self._loader or self._asked._engine
        return engine.stats() if engine else {}

    def close(self):
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
