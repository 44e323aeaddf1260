"""A dictionary in memory that processes and ranks share."""
import atexit
import pickle as _pickle
import time
import weakref
from ast import literal_eval
from collections.abc import MutableMapping

from . import _ranks
from ._penstock import Dict as _Dict

_open = weakref.WeakSet()
_ABSENT = object()
_GROUP = 1024           # values read at a time
_TUPLE = "\0tuple"     # starts the text of a tuple


def _plain(key):
    """A key for the library: a tuple as text."""
    if not isinstance(key, tuple):
        return key

    def check(items):
        for item in items:
            if isinstance(item, tuple):
                check(item)
            elif type(item) not in (int, float, str, bytes, bool):
                raise TypeError("a tuple as key has ints, floats, str, bytes "
                                f"and tuples, not {type(item).__name__}")
    check(key)
    return _TUPLE + repr(key)


def _plain_all(keys):
    if isinstance(keys, (list, tuple)) and any(
            isinstance(k, tuple) for k in keys):
        return [_plain(k) for k in keys]
    return keys


def _from_plain(key):
    if isinstance(key, str) and key.startswith(_TUPLE):
        return literal_eval(key[len(_TUPLE):])
    return key


def _setting(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


class DDict(MutableMapping):
    """A mapping whose values are in memory that processes share.

    Keys are non-negative ints, str or bytes ("a" and b"a" are the same key), or
    tuples of ints, floats, str, bytes and tuples.
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
        self._d.put(_plain(key), self._bytes(value))

    def __getitem__(self, key):
        value = self._d.get(_plain(key))
        if value is None:
            raise KeyError(key)
        return _pickle.loads(value) if self._pickle else value

    def __delitem__(self, key):
        if self._d.pop(_plain(key)) is None:
            raise KeyError(key)

    def __contains__(self, key):
        return self._d.contains(_plain(key))

    def __len__(self):
        return self._d.len()

    def __iter__(self):
        return map(_from_plain, self._d.keys(-1))

    def items(self):
        """Iterate over (key, value), read in groups. Keys that are removed
        meanwhile are left out."""
        keys = list(self)
        for i in range(0, len(keys), _GROUP):
            some = keys[i:i + _GROUP]
            for key, value in zip(some, self.get_many(some)):
                if value is not None:
                    yield key, value if self._pickle else bytes(value)

    def values(self):
        """Iterate over the values, as `items` does."""
        return (value for _, value in self.items())

    def filter(self, prefix=None, where=None):
        """Iterate over the (key, value) that match.

        Parameters
        ----------
        prefix : str or bytes, optional
            Keys that are text or bytes and start with it.
        where : callable, optional
            Called with key and value; true for those to keep.
        """
        raw = prefix.encode() if isinstance(prefix, str) else prefix
        keys = [k for k in self if raw is None or (
            isinstance(k, (str, bytes)) and
            (k.encode() if isinstance(k, str) else k).startswith(raw))]
        for i in range(0, len(keys), _GROUP):
            some = keys[i:i + _GROUP]
            for key, value in zip(some, self.get_many(some)):
                if value is None:
                    continue
                value = value if self._pickle else bytes(value)
                if where is None or where(key, value):
                    yield key, value

    def copy(self, name=None, **settings):
        """A new dictionary with the same content; `settings` as for `DDict`.
        Over ranks it is collective, and every rank copies its shard."""
        settings.setdefault("ranks", self.ranks > 1)
        to = DDict(name, pickle=self._pickle, **settings)
        to._loads = dict(self._loads)
        keys = self.local_keys()
        for i in range(0, len(keys), _GROUP):
            some = keys[i:i + _GROUP]
            there = [(k, v) for k, v in zip(some, self._d.ask(
                _plain_all(some)).values()) if v is not None]
            to._d.put_many(_plain_all([k for k, _ in there]),
                           [v for _, v in there])
        to.barrier()
        return to

    def fetch_add(self, key, n=1):
        """Add to a counter in one step, and return its value before.

        The value is an integer of 8 bytes; a missing key counts as 0.

        Examples
        --------
        >>> with penstock.DDict(memory="64MB") as d:
        ...     d.fetch_add("steps", 5), d.fetch_add("steps", -2)
        (0, 5)
        """
        return self._d.fetch_add(_plain(key), n)

    def wait_for(self, key, timeout=None):
        """Wait until a key exists, at most `timeout` seconds, and return its
        value.

        Raises
        ------
        TimeoutError
            It does not exist yet.
        """
        plain = _plain(key)
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            # in pieces, so that Ctrl-C works
            left = 0.1 if end is None else min(end - time.monotonic(), 0.1)
            if self._d.wait_for(plain, max(int(left * 1e9), 0)):
                value = self.get(key, _ABSENT)
                if value is not _ABSENT:
                    return value
            elif end is not None and time.monotonic() >= end:
                raise TimeoutError(f"no key {key!r} within {timeout} s")

    def owner(self, key):
        """Number of the shard that holds a key, or would."""
        return self._d.owner(_plain(key))

    def compact(self):
        """Free the memory of removed values that nobody reads any more, and
        return what is not needed to the system."""
        self._d.compact()

    def pop(self, key, default=_ABSENT):
        """Remove a key and return its value, or `default` if it is missing."""
        value = self._d.pop(_plain(key))
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
        self._d.put_many(_plain_all(keys), [self._bytes(v) for v in values])

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
        self._d.ask(_plain_all(keys)).into(out)
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
        return Asked(self._d.ask(_plain_all(keys)), self._pickle)

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
        value = Asked(self._d.ask([_plain(key)]), False).values(dtype)[0]
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
        return [_from_plain(k) for k in self._d.keys(self.rank)]

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
    key = _plain(key)
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
