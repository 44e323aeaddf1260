"""A dictionary in memory that processes and ranks share."""
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
    """A mapping whose values are in memory that processes share.

    Keys are non-negative ints, str or bytes ("a" and b"a" are the same key).
    Values are bytes or objects with a buffer, such as NumPy arrays, and are
    returned as bytes; with `pickle` they are any objects.

    Parameters
    ----------
    name : str, optional
        Processes of this machine that pass the same name share the
        dictionary. Without a name, this process and those it forks share it.
    ranks : bool, optional
        Share it with all ranks of the job. Default: True under mpirun or srun
        if there is no name. Then opening, closing, `persist` and `barrier`
        are collective: every rank calls them.
    pickle : bool
        Store any Python objects, pickled.
    **settings
        `memory`, `width`, `spread`, `keys`, `transport`, `restore`, ...:
        see ``penstock ddict bench --help``.

    Raises
    ------
    MemoryError
        By a put: the memory budget is used up.

    Examples
    --------
    >>> with penstock.DDict(memory="64MB") as d:
    ...     d[7] = b"seven"
    ...     d["x"] = numpy.arange(3)
    ...     d.view("x", dtype="i8").tolist()
    [0, 1, 2]
    """

    def __init__(self, name=None, *, ranks=None, pickle=False, **settings):
        if ranks is None:
            ranks = name is None and _ranks.find()[1] > 1
        if name is not None:
            settings["name"] = name
        self._pickle = pickle
        self._name = name
        self._loads = {}    # settings of a loader that reads it
        # how another process opens it
        self._again = None
        if not ranks and (name is not None or (
                settings.get("restore") and not settings.get("writable"))):
            self._again = {**settings, "pickle": pickle}
            if name is not None:
                self._again = {"name": name, "create": False, "pickle": pickle}
        self._d = _Dict([f"{k}={_setting(v)}" for k, v in settings.items()
                         if v is not None], bool(ranks))
        _open.add(self)

    def __reduce__(self):
        if self._again is None:
            raise TypeError(
                "this dictionary cannot be pickled: " +
                ("it belongs to the ranks of this job" if self.ranks > 1 else
                 "it has no name; open it as DDict(\"NAME\"), and other "
                 "processes of this machine find it"))
        return _reopen, (self._again, self._loads)

    @classmethod
    def from_iterable(cls, items, name=None, *, total=None, progress=None,
                      **settings):
        """A new dictionary with the items of an iterable.

        Keys are 0, 1, 2, ...; those of a mapping are kept. Under mpirun every
        rank iterates over all items and stores its part.

        Parameters
        ----------
        items : iterable or mapping
            Bytes, str, numbers, arrays, or dicts or tuples of numbers and
            arrays (several fields; those of a tuple are x, y, z, ...).
        name : str, optional
        total : int, optional
            Expected number of items, for the progress line.
        progress : bool, optional
            Print progress to stderr. Default: if that is a terminal.
        **settings
            As for `DDict`.

        Examples
        --------
        >>> d = penstock.DDict.from_iterable(numpy.eye(3), memory="64MB")
        >>> penstock.Loader(d, 3).fields
        [('x', 'float64', (3,), 'dense')]
        >>> d.close()       # doctest: +SKIP
        """
        from ._fill import fill
        return fill(cls(name, **settings), items, total, progress)

    # --- mapping ---

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
        """Remove a key and return its value, or `default` if it is missing."""
        value = self._d.pop(key)
        if value is not None:
            return _pickle.loads(value) if self._pickle else value
        if default is _ABSENT:
            raise KeyError(key)
        return default

    def clear(self):
        """Remove all keys."""
        self._d.clear()

    # --- several keys ---

    def put_many(self, keys, values):
        """Store ``values[i]`` under ``keys[i]``.

        Parameters
        ----------
        keys : sequence of keys, or array of int
        values : iterable
        """
        self._d.put_many(keys, [self._bytes(v) for v in values])

    def get_many(self, keys, dtype=None):
        """Read several values.

        Parameters
        ----------
        keys : sequence of keys, or array of int
        dtype : dtype, optional
            Return NumPy arrays of this type instead of memoryviews.

        Returns
        -------
        list
            Views without a copy (objects with `pickle`); None for a missing
            key.

        Examples
        --------
        >>> with penstock.DDict(memory="64MB") as d:
        ...     d.put_many([1, 2], [b"a", b"b"])
        ...     [bytes(v) for v in d.get_many([2, 1])]
        [b'b', b'a']
        """
        return self.ask(keys).values(dtype)

    def gather(self, keys, out):
        """Copy values of equal size into `out`, one after another.

        Parameters
        ----------
        keys : sequence of keys, or array of int
        out : writable buffer
            For example an array with one row per key.

        Returns
        -------
        out
        """
        self._d.ask(keys).into(out)
        return out

    def ask(self, keys):
        """Request values without waiting, to overlap requests with work.

        Returns
        -------
        Asked
            `Asked.values` or `Asked.into` waits for the values.

        Examples
        --------
        >>> with penstock.DDict(memory="64MB") as d:
        ...     d.put_many(range(3), numpy.eye(3))
        ...     d.ask([2, 0]).into(numpy.empty((2, 3)))
        array([[0., 0., 1.],
               [1., 0., 0.]])
        """
        return Asked(self._d.ask(keys), self._pickle)

    def view(self, key, dtype=None):
        """A read-only view of a value, without a copy.

        Returns
        -------
        memoryview, or array of `dtype`
            Its content does not change as long as the view exists.

        Raises
        ------
        KeyError
            There is no such key.
        """
        value = Asked(self._d.ask([key]), False).values(dtype)[0]
        if value is None:
            raise KeyError(key)
        return value

    # --- dictionary ---

    def freeze(self):
        """Make the dictionary read-only, for all processes."""
        self._d.freeze()

    def persist(self, path):
        """Save it to files that ``DDict(restore=path)`` maps. Collective."""
        self._d.persist(path)

    def barrier(self):
        """Wait until all ranks have called it. Collective."""
        self._d.barrier()

    def stats(self):
        """A list with one dict per shard: host, total_bytes, used_bytes, ..."""
        return [self._d.stats(i) for i in range(self._d.about()[1])]

    def local_keys(self):
        """List of the keys in the shard of this rank."""
        return self._d.keys(self.rank)

    @property
    def transport(self):
        """The transport between hosts, and why it was chosen."""
        return self._d.about()[0]

    @property
    def rank(self):
        """The number of this rank."""
        return self._d.about()[2]

    @property
    def ranks(self):
        """The number of ranks."""
        return self._d.about()[3]

    def close(self):
        """Close it. Collective over ranks.

        Raises
        ------
        BufferError
            Views of values are still in use.
        """
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
            raise TypeError("a value must support the buffer protocol; str does not: "
                            "encode it, or open with pickle=True")
        try:
            view = memoryview(value)
        except TypeError:
            raise TypeError(
                "a value must be bytes or have a buffer, not "
                f"{type(value).__name__}; open with pickle=True") from None
        return value if view.c_contiguous else view.tobytes()


class Asked:
    """Requested values, returned by `DDict.ask`."""

    def __init__(self, got, pickle):
        self._got = got
        self._pickle = pickle

    def values(self, dtype=None):
        """Wait, and return the values as `DDict.get_many` does."""
        values = self._got.values()
        if self._pickle:
            return [None if v is None else _pickle.loads(v) for v in values]
        if dtype is None:
            return values
        from numpy import frombuffer
        return [None if v is None else frombuffer(v, dtype) for v in values]

    def into(self, out):
        """Wait, and copy the values into `out` as `DDict.gather` does."""
        self._got.into(out)
        return out


def _reopen(settings, loads):
    d = DDict(settings.pop("name", None), ranks=False, **settings)
    d._loads = loads
    return d


def key_text(key):
    """A key as a word of a file for ``keys=``."""
    if not isinstance(key, (str, bytes)):
        key = key.__index__()
        if key < 0:
            raise ValueError("an integer key must not be negative")
        return str(key)
    raw = key.encode() if isinstance(key, str) else key
    if raw.isdigit():
        return f"%{raw[0]:02X}" + raw[1:].decode()
    return "".join(chr(c) if 33 <= c < 127 and c not in b"%/," else f"%{c:02X}"
                   for c in raw) or "%"


@atexit.register
def _close_all():
    from ._loader import _close_all as close_loaders
    close_loaders()
    for d in list(_open):
        try:
            d.close()
        except BufferError:  # views are still in use
            pass
