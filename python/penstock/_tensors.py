"""Arrays on disk, mapped into memory.

The files are plain .npy files, one per array, and a small JSON file, so any
program can read them. A new store gets its name in close(), so a store that
exists is complete.
"""
import json
import mmap
import os
import threading
import weakref

import numpy

from . import _penstock
from ._penstock import DataError, SettingError

ABOUT = "store.json"
FORMAT = "penstock-tensors"
HEADER = 4096       # aligns the data, and can be rewritten in place
SHARED = 1 << 18    # from this size, several threads copy
PIECE = 1 << 24     # bytes per write
_INT64 = numpy.dtype("i8")


def _flat(tree, prefix=""):
    """{"a": {"b": x}} as {"a/b": x}."""
    out = {}
    for key, value in tree.items():
        if not isinstance(key, str):
            raise SettingError(f"keys must be strings, not {key!r}")
        if isinstance(value, dict):
            out.update(_flat(value, prefix + key + "/"))
        else:
            out[prefix + key] = value
    return out


def _nested(flat):
    """{"a/b": x} as {"a": {"b": x}}."""
    out = {}
    for key, value in flat.items():
        *above, last = key.split("/")
        at = out
        for name in above:
            at = at.setdefault(name, {})
        at[last] = value
    return out


def _check_key(key):
    for part in key.split("/"):
        if not part or part.startswith(".") or "\0" in part:
            raise SettingError(f"'{key}' cannot be the name of an array")
    return key


def _header(shape, dtype):
    """The header of an .npy file, padded to HEADER bytes."""
    about = numpy.lib.format.dtype_to_descr(dtype)
    text = (f"{{'descr': {about!r}, 'fortran_order': False, "
            f"'shape': {tuple(shape)!r}, }}").encode("latin1")
    magic = b"\x93NUMPY\x01\x00"
    room = HEADER - len(magic) - 2
    if len(text) >= room:
        raise SettingError("an array has too many axes")
    return magic + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n"


class _File:
    """One array: an .npy file with space for some rows."""

    def __init__(self, path, row, dtype, rows, mode):
        self.path = path
        self.row = tuple(row)
        self.dtype = dtype
        self.writes = mode != "r"
        self.bytes = dtype.itemsize * int(numpy.prod(self.row, dtype="i8"))
        flags = {"r": os.O_RDONLY, "r+": os.O_RDWR,
                 "w": os.O_RDWR | os.O_CREAT | os.O_EXCL}[mode]
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o666)
        self.rows = 0
        self.array = None
        # rows from here on have no pages yet: faulting them in one by one
        # costs several times as much as writing them
        self.fresh = 0 if mode == "w" else rows
        if mode == "w":
            self.reserve(rows)
        else:
            self.map(rows)

    def reserve(self, rows):
        """Allocate disk space, so that a full disk is an error, not a signal."""
        size = HEADER + rows * self.bytes
        try:
            os.posix_fallocate(self.fd, 0, size)
        except OSError as e:
            if e.errno not in (95, 22):     # not supported here
                raise
            os.ftruncate(self.fd, size)
        self.map(rows)

    def map(self, rows):
        size = HEADER + rows * self.bytes
        if os.fstat(self.fd).st_size < size:
            raise DataError(f"{self.path}: shorter than {ABOUT} specifies")
        access = mmap.ACCESS_WRITE if self.writes else mmap.ACCESS_READ
        memory = mmap.mmap(self.fd, size, access=access)
        self.array = numpy.frombuffer(
            memory, self.dtype, rows * self.bytes // self.dtype.itemsize
            if self.bytes else 0, HEADER).reshape((rows,) + self.row)
        self.rows = rows

    def put(self, start, value):
        """Write rows that have no pages yet."""
        at, left = HEADER + start * self.bytes, memoryview(value).cast("B")
        while left:
            n = os.pwrite(self.fd, left[:PIECE], at)
            at, left = at + n, left[n:]

    def settle(self, rows, sync):
        """Write the number of rows to the header."""
        os.pwrite(self.fd, _header((rows,) + self.row, self.dtype), 0)
        if sync:
            os.fsync(self.fd)

    def cut(self, rows):
        """Truncate the file. Views of removed rows must not be accessed, so
        this is done only when the store is closed."""
        if rows < self.rows:
            os.ftruncate(self.fd, HEADER + rows * self.bytes)

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1
        self.array = None   # views keep their mapping


def _read_header(path):
    with open(path, "rb") as f:
        try:
            version = numpy.lib.format.read_magic(f)
            if version != (1, 0):
                raise ValueError(f"version {version}")
            shape, fortran, dtype = \
                numpy.lib.format.read_array_header_1_0(f)
        except ValueError as e:
            raise DataError(f"{path}: not an array of this store: {e}") \
                from None
        if fortran or f.tell() != HEADER or not shape or dtype.hasobject:
            raise DataError(f"{path}: not an array of this store")
    return shape, dtype


def _discard(path):
    import shutil
    shutil.rmtree(path, ignore_errors=True)


class Column:
    """One array of a `TensorStore`.

    Slices are views; lists and masks are copies, made by several threads.
    `numpy.asarray` returns a view of the entire array.
    """

    def __init__(self, store, key):
        self._store = store
        self._key = key

    def __array__(self, dtype=None, copy=None):
        a = self._store._view(self._key)
        if dtype is not None and dtype != a.dtype:
            return a.astype(dtype)
        return a.copy() if copy else a

    @property
    def shape(self):
        """Shape, with the number of rows first."""
        return (len(self._store),) + self._store._files[self._key].row

    @property
    def dtype(self):
        """Element type."""
        return self._store._files[self._key].dtype

    def __len__(self):
        return len(self._store)

    def __getitem__(self, i):
        if _is_list(i):
            return self._store._gather([self._key], i, None)[self._key]
        return self._store._view(self._key)[i]

    def __setitem__(self, i, value):
        self._store._write(self._key, i, value)

    def __repr__(self):
        return f"<penstock.TensorStore column {self._key} {self.shape} " \
               f"{self.dtype}>"


def _is_list(i):
    return isinstance(i, list) or (hasattr(i, "__len__") and
                                   not isinstance(i, (str, tuple)))


class TensorStore:
    """Arrays of equal length on disk, mapped into memory.

    They are filled in place, by any number of threads, and read by index. Make
    one with `create` or `open`. A new store gets its name in `close` (or at
    the end of a ``with`` block without an exception); before, nothing exists
    under its name. A store opened with mode "r+" is changed in place.

    Examples
    --------
    >>> with penstock.TensorStore.create(
    ...         data / "replay", {"x": ((3, 4), "float32"),
    ...                           "next/x": ((3, 4), "float32"),
    ...                           "reward": ((), "float64")}, length=100) as ts:
    ...     ts["reward"][:] = numpy.arange(100)
    ...     ts[10:12] = {"x": numpy.ones((2, 3, 4))}
    >>> ts = penstock.TensorStore.open(data / "replay")
    >>> batch = ts[[11, 0, 99]]           # copied by several threads
    >>> batch["reward"], batch["next"]["x"].shape
    (array([11.,  0., 99.]), (3, 3, 4))
    >>> numpy.load(data / "replay" / "next" / "x.npy").shape
    (100, 3, 4)
    """

    def __init__(self, *unused):
        raise TypeError("use TensorStore.create() or TensorStore.open()")

    @classmethod
    def create(cls, path, arrays, length=0, *, overwrite=False):
        """Create a store.

        Parameters
        ----------
        path : path
            A directory that does not exist.
        arrays : dict
            ``{key: (shape of a row, dtype)}``. Keys may be nested, as dicts
            or with slashes.
        length : int
            Number of rows; new rows are zero.
        overwrite : bool
            Replace an existing store when this one is closed.

        Returns
        -------
        TensorStore

        Raises
        ------
        FileExistsError
            `path` exists and `overwrite` is False.
        """
        path = os.fspath(path)
        if os.path.lexists(path) and not overwrite:
            raise FileExistsError(f"{path}: already exists; remove it or pass "
                                  "overwrite=True")
        rows = {}
        for key, (shape, dtype) in _flat(arrays).items():
            shape = (shape,) if isinstance(shape, int) else tuple(shape)
            rows[_check_key(key)] = shape, numpy.dtype(dtype)
        if not rows:
            raise SettingError("a store needs at least one array")
        self = object.__new__(cls)
        self._start(path, "w", length)
        above, name = os.path.split(os.path.abspath(path))
        self._part = os.path.join(
            above, f".{name}.part-{os.getpid()}-{os.urandom(4).hex()}")
        os.mkdir(self._part)
        self._cleanup = weakref.finalize(self, _discard, self._part)
        try:
            for key, (shape, dtype) in rows.items():
                if dtype.hasobject:
                    raise SettingError(f"{key}: Python objects cannot be "
                                       "stored")
                file = os.path.join(self._part, key + ".npy")
                os.makedirs(os.path.dirname(file), exist_ok=True)
                self._files[key] = _File(file, shape, dtype, length, "w")
            self._simplify()
        except BaseException:
            self.discard()
            raise
        return self

    @classmethod
    def open(cls, path, mode="r"):
        """Open an existing store.

        Parameters
        ----------
        path : path
        mode : "r" or "r+"
            "r" to read, "r+" to change it in place.

        Returns
        -------
        TensorStore

        Raises
        ------
        DataError
            The files do not form a store.
        """
        if mode not in ("r", "r+"):
            raise SettingError(f"mode must be 'r' or 'r+', not '{mode}'")
        path = os.fspath(path)
        with open(os.path.join(path, ABOUT), encoding="utf-8") as f:
            try:
                about = json.load(f)
                keys, length = list(about["arrays"]), int(about["length"])
                known = about["format"] == FORMAT and about["version"] == 1
            except (ValueError, KeyError, TypeError):
                known = False
        if not known or length < 0 or not keys:
            raise DataError(f"{path}: {ABOUT} does not describe a store")
        self = object.__new__(cls)
        self._start(path, mode, length)
        try:
            for key in keys:
                file = os.path.join(path, _check_key(key) + ".npy")
                shape, dtype = _read_header(file)
                self._files[key] = _File(file, shape[1:], dtype, length, mode)
            self._simplify()
        except BaseException:
            self.close(_settle=False)
            raise
        return self

    def _start(self, path, mode, length):
        self._path = path
        self._mode = mode
        self._length = int(length)
        self._files = {}
        self._part = None
        self._cleanup = None
        self._lock = threading.Lock()
        self._open = True

    def _simplify(self):
        """Note whether no key is nested and all arrays have buffers."""
        self._simple = len(self._files) <= 64 and not any(
            "/" in key or f.dtype.kind in "mMV" or not f.bytes
            for key, f in self._files.items())

    # -- properties --

    def __len__(self):
        return self._length

    def keys(self):
        """List of the keys, nested ones with slashes."""
        return list(self._files)

    def __contains__(self, key):
        return key in self._files

    @property
    def path(self):
        """The directory of the store."""
        return self._path

    def __repr__(self):
        return f"<penstock.TensorStore {self._length} rows of " \
               f"{', '.join(self._files)}>"

    def _file(self, key):
        if not self._open:
            raise ValueError("the store is closed")
        return self._files[key]

    def _view(self, key):
        return self._file(key).array[:self._length]

    # -- reading --

    def __getitem__(self, i):
        """A key returns its array; a number, slice, list or mask returns these
        rows of all arrays, as a dict."""
        if isinstance(i, str):
            if i in self._files:
                return Column(self, i)
            below = {k[len(i) + 1:]: Column(self, k) for k in self._files
                     if k.startswith(i + "/")}
            if not below:
                raise KeyError(i)
            return _nested(below)
        if _is_list(i):
            return self.gather(i)
        return _nested({k: self._view(k)[i] for k in self._files})

    def gather(self, ids, out=None):
        """Copy rows of all arrays, with several threads.

        Parameters
        ----------
        ids : list, array or mask
            The rows.
        out : dict of arrays, optional
            Where to copy. By default, into memory that is reused once its
            arrays are unreferenced.

        Returns
        -------
        dict of arrays

        Examples
        --------
        >>> with penstock.TensorStore.create(data / "g", {"x": ((), "i4")},
        ...                                  length=4) as ts:
        ...     ts["x"][:] = [10, 11, 12, 13]
        ...     ts.gather([3, 1])["x"]
        array([13, 11], dtype=int32)
        """
        if out is not None and self._gather_at_once(ids, out):
            return out
        return _nested(self._gather(list(self._files), ids,
                                    None if out is None else _flat(out)))

    def _ids(self, ids):
        a = numpy.asarray(ids)
        if a.dtype == _INT64 and a.ndim == 1 and a.flags.c_contiguous:
            return a
        if a.dtype == bool:
            if a.shape != (self._length,):
                raise IndexError(f"a mask of shape {a.shape} for "
                                 f"{self._length} rows")
            a = a.nonzero()[0]
        if a.ndim != 1 or (a.dtype.kind not in "iu" and a.size):
            raise IndexError("row numbers must be a list of integers")
        return numpy.ascontiguousarray(a, "i8")

    def _gather_at_once(self, ids, out):
        """Fast path for loops: integer array, all arrays of a filled store,
        matching targets. False: not applicable."""
        if type(ids) is not numpy.ndarray or ids.dtype is not _INT64 or \
                not self._simple or not self._open or \
                out.keys() != self._files.keys():
            return False
        sources = [f.array for f in self._files.values()]
        return len(sources[0]) == self._length > 0 and \
            _penstock.gather_alike(sources, [out[k] for k in self._files], ids)

    def _gather(self, keys, ids, out):
        ids = self._ids(ids)
        n = len(ids)
        made = {}
        sources, targets = [], []
        for key in keys if out is None else out:
            file = self._file(key)
            source = file.array
            if len(source) != self._length:
                source = source[:self._length]
            if out is None:
                target = numpy.ndarray((n,) + file.row, file.dtype,
                                       _penstock.Memory(n * file.bytes))
            else:
                target = out[key]
                if target.dtype != source.dtype or \
                        target.shape != (n,) + source.shape[1:]:
                    raise ValueError(
                        f"out['{key}'] must be {source.dtype} "
                        f"{(n,) + source.shape[1:]}")
            made[key] = target
            if n and not self._length:
                raise IndexError("the store is empty")
            if not target.nbytes:
                continue
            if source.dtype.kind in "mMV":  # these have no buffers
                source = source.view("u1").reshape(len(source), -1)
                target = target.view("u1").reshape(n, -1)
            sources.append(source)
            targets.append(target)
        for i in range(0, len(sources), 64):
            _penstock.gather(sources[i:i + 64], targets[i:i + 64], ids)
        return made

    # -- writing --

    def _write(self, key, i, value):
        if self._mode == "r":
            raise ValueError("the store is read-only; open it with mode='r+' "
                             "to change it")
        file, to = self._file(key), self._view(key)
        if not isinstance(i, slice) or i.step not in (None, 1):
            to[i] = value
            return
        start, stop, _ = i.indices(len(to))
        to = to[start:stop]
        value = numpy.asarray(value)
        if value.shape != to.shape or value.dtype != to.dtype or \
                to.nbytes < SHARED or not value.flags.c_contiguous or \
                value.dtype.kind in "mMV":
            to[...] = value
        elif start >= file.fresh:
            file.fresh = stop
            file.put(start, value)
        else:
            file.fresh = max(file.fresh, stop)
            _penstock.gather([value], [to], None)

    def __setitem__(self, i, values):
        """Set rows of some or all arrays: ``ts[a:b] = {"x": ..., ...}``."""
        if isinstance(i, str):
            self._write(i, slice(None), values)
            return
        flat = _flat(values)
        for key in flat:
            if key not in self._files:
                raise KeyError(key)
        for key, value in flat.items():
            self._write(key, i, value)

    def reserve(self, n):
        """Add rows at the end, for concurrent writers.

        Parameters
        ----------
        n : int

        Returns
        -------
        int
            The number of the first new row. Threads that append concurrently
            synchronise only here, and then write their own rows.
        """
        if self._mode == "r":
            raise ValueError("the store is read-only")
        with self._lock:
            start, end = self._length, self._length + n
            for file in self._files.values():
                if end > file.rows:
                    least = max(1, (1 << 20) // max(file.bytes, 1))
                    file.reserve(max(end, 2 * file.rows, least))
            self._length = end
        return start

    def grow(self, length):
        """Add rows, which are zero, up to this length."""
        if length < self._length:
            raise ValueError("a store cannot shrink")
        self.reserve(length - self._length)

    def append(self, values):
        """Append rows.

        Parameters
        ----------
        values : dict
            ``{key: array of rows}`` with all keys of the store.

        Returns
        -------
        int
            The number of the first new row.
        """
        if self._mode == "r":
            raise ValueError("the store is read-only")
        flat = {k: numpy.asarray(v) for k, v in _flat(values).items()}
        if set(flat) != set(self._files):
            odd = sorted(set(flat) ^ set(self._files))
            raise KeyError("values must have exactly the keys of the store; "
                           f"missing or unknown: {', '.join(odd)}")
        lengths = {len(v) if v.ndim else -1 for v in flat.values()}
        if len(lengths) != 1 or -1 in lengths:
            raise ValueError("all arrays must have the same length")
        n = lengths.pop()
        start = self.reserve(n)
        for key, value in flat.items():
            self._write(key, slice(start, start + n), value)
        return start

    # -- closing --

    def flush(self, sync=False):
        """Write the current length to the files.

        Parameters
        ----------
        sync : bool
            Also sync the files, so that they survive a power failure.
        """
        if self._mode == "r":
            return
        where = self._part or self._path
        with self._lock:
            for file in self._files.values():
                file.settle(self._length, sync)
            about = {"format": FORMAT, "version": 1, "length": self._length,
                     "arrays": {k: {"dtype": f.dtype.str,
                                    "shape": list(f.row)}
                                for k, f in self._files.items()}}
            path = os.path.join(where, ABOUT)
            with open(path + ".part", "w", encoding="utf-8") as f:
                json.dump(about, f, indent=1)
                if sync:
                    f.flush()
                    os.fsync(f.fileno())
            os.replace(path + ".part", path)

    def close(self, sync=False, _settle=True):
        """Complete the store and give it its name; `sync` as in `flush`."""
        if not self._open:
            return
        if _settle:
            self.flush(sync)
        if self._mode != "r" and _settle:
            for file in self._files.values():
                file.cut(self._length)
        self._open = False
        for file in self._files.values():
            file.close()
        if self._part is None:
            return
        old = None
        if os.path.lexists(self._path):
            old = self._part + ".old"
            os.rename(self._path, old)
        os.rename(self._part, self._path)
        self._cleanup.detach()
        if old:
            _discard(old)

    def discard(self):
        """Drop a new store; nothing is left behind."""
        self._open = False
        for file in self._files.values():
            file.close()
        if self._cleanup:
            self._cleanup()

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        if kind is not None and self._part is not None:
            self.discard()
        else:
            self.close()
