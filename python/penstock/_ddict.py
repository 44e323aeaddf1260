"""A dictionary of samples in the memory of many processes."""
import atexit
import pickle as _pickle
import weakref
from collections.abc import MutableMapping

from . import _ranks
from ._penstock import Dict as _Dict

_open = weakref.WeakSet()
_ABSENT = object()


def _setting(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


class DDict(MutableMapping):
    """A mapping whose values are bytes in memory that processes share.

    >>> with penstock.DDict(memory="64MB") as d:
    ...     d[7] = b"seven"
    ...     d["x"] = numpy.arange(3)
    ...     d.view("x", dtype="i8").tolist()
    [0, 1, 2]

    Keys are ints from 0, str, or bytes ("a" and b"a" are the same key).
    Values are bytes or anything with a buffer, as NumPy arrays, and read back
    as bytes; with pickle=True they are any objects.

    name=...: processes of this machine that give the same name share it;
    without one, this process and those it forks do. Started by mpirun or srun
    and without a name, all ranks share it: then every rank opens and closes
    it, persists and meets in barrier(). ranks=False: not so.

    Further settings: memory=, width=, spread=, keys=, transport=, restore=,
    ... as `penstock ddict bench --help` lists them.
    """

    def __init__(self, name=None, *, ranks=None, pickle=False, **settings):
        if ranks is None:
            ranks = name is None and _ranks.find()[1] > 1
        if name is not None:
            settings["name"] = name
        self._pickle = pickle
        self._d = _Dict([f"{k}={_setting(v)}" for k, v in settings.items()
                         if v is not None], bool(ranks))
        _open.add(self)

    # --- a mapping ---

    def __setitem__(self, key, value):
        self._d.put(key, self._bytes(value))

    def __getitem__(self, key):
        value = self._d.get(key)
        if value is None:
            raise KeyError(key)
        return _pickle.loads(value) if self._pickle else value

    def __delitem__(self, key):
        if self._d.pop(key) is None:
            raise KeyError(key)

    def __contains__(self, key):
        return self._d.contains(key)

    def __len__(self):
        return self._d.len()

    def __iter__(self):
        return iter(self._d.keys(-1))

    def pop(self, key, default=_ABSENT):
        value = self._d.pop(key)
        if value is not None:
            return _pickle.loads(value) if self._pickle else value
        if default is _ABSENT:
            raise KeyError(key)
        return default

    def clear(self):
        self._d.clear()

    # --- many at once ---

    def put_many(self, keys, values):
        """Puts values[i] under keys[i]; keys may be an array of ints."""
        self._d.put_many(keys, [self._bytes(v) for v in values])

    def get_many(self, keys, dtype=None):
        """A list of values, None where there is none: views that copy
        nothing, of bytes, or arrays of dtype; with pickle=True objects."""
        return self.ask(keys).values(dtype)

    def gather(self, keys, out):
        """Copies values of one size into out, one after another, and returns
        it: rows of an array, for instance."""
        self._d.ask(keys).into(out)
        return out

    def ask(self, keys):
        """Asks for values and returns at once: .values(dtype) or .into(out)
        wait for them. The next batches can so be on their way."""
        return Asked(self._d.ask(keys), self._pickle)

    def view(self, key, dtype=None):
        """The value where it lies, read-only: a memoryview, or a NumPy array
        of dtype. It stays as it is while somebody has it."""
        value = Asked(self._d.ask([key]), False).values(dtype)[0]
        if value is None:
            raise KeyError(key)
        return value

    # --- the whole ---

    def freeze(self):
        """From now on nobody writes."""
        self._d.freeze()

    def persist(self, path):
        """Saves it; DDict(restore=path) maps it. All ranks call it."""
        self._d.persist(path)

    def barrier(self):
        """Waits until all ranks are here."""
        self._d.barrier()

    def stats(self):
        """One dict a shard: host, total_bytes, used_bytes, keys, ..."""
        return [self._d.stats(i) for i in range(self._d.about()[1])]

    def local_keys(self):
        """Keys of the shard that this process holds."""
        return self._d.keys(self.rank)

    @property
    def transport(self):
        """How others are reached, and why so."""
        return self._d.about()[0]

    @property
    def rank(self):
        return self._d.about()[2]

    @property
    def ranks(self):
        return self._d.about()[3]

    def close(self):
        """BufferError while views of values are in use."""
        self._d.close()
        _open.discard(self)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other

    def _bytes(self, value):
        if self._pickle:
            return _pickle.dumps(value, protocol=_pickle.HIGHEST_PROTOCOL)
        if isinstance(value, str):
            raise TypeError("a value is bytes or has a buffer, and a str is "
                            "neither: encode it, or open with pickle=True")
        try:
            view = memoryview(value)
        except TypeError:
            raise TypeError(
                f"a value is bytes or has a buffer, and {type(value).__name__} "
                "has none: open with pickle=True") from None
        return value if view.c_contiguous else view.tobytes()


class Asked:
    """Values that are on their way."""

    def __init__(self, got, pickle):
        self._got = got
        self._pickle = pickle

    def values(self, dtype=None):
        values = self._got.values()
        if self._pickle:
            return [None if v is None else _pickle.loads(v) for v in values]
        if dtype is None:
            return values
        from numpy import frombuffer
        return [None if v is None else frombuffer(v, dtype) for v in values]

    def into(self, out):
        self._got.into(out)
        return out


@atexit.register
def _close_all():
    for d in list(_open):
        try:
            d.close()
        except BufferError:  # views are in use until the very end
            pass
