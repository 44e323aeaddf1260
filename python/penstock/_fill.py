"""Fill a dictionary from any iterable."""
import io
import sys
import time

KEYS, BYTES = 1024, 16 << 20    # per put
NAMES = "xyzuvw"


def _npy(value):
    import numpy
    a = numpy.asarray(value)
    if a.dtype.hasobject:
        raise TypeError("an item must be bytes, str, a number, an array, or a "
                        "dict or tuple of those (a loader also takes paths); "
                        f"{type(value).__name__} would have to be pickled")
    return a


def encode(item):
    """(bytes, settings of the loader that reads them)"""
    if isinstance(item, (bytes, bytearray)):
        return item, {}
    if isinstance(item, str):
        return item.encode(), {"decode.x": "text"}
    import numpy
    out = io.BytesIO()
    if isinstance(item, (tuple, list)) and not all(
            isinstance(v, (int, float)) for v in item):
        if len(item) > len(NAMES):
            raise TypeError(f"a tuple of {len(item)} fields; pass a dict to "
                            "name them")
        item = dict(zip(NAMES, item))
    if isinstance(item, dict):
        numpy.savez(out, **{str(k): _npy(v) for k, v in item.items()})
        return out.getbuffer(), {"format": "npz", "format.samples": "file"}
    numpy.save(out, _npy(item), allow_pickle=False)
    return out.getbuffer(), {"decode.x": "npy"}


class _Progress:
    """A line on a terminal, five times a second."""

    def __init__(self, wanted, total):
        self._on = sys.stderr.isatty() if wanted is None else wanted
        self._total = f" of {total:,}" if total else ""
        self._since = self._shown = time.monotonic()

    def show(self, n, nbytes, last=False):
        now = time.monotonic()
        if not self._on or (now - self._shown < 0.2 and not last):
            return
        self._shown = now
        rate = n / max(now - self._since, 1e-9)
        print(f"\rpenstock: {n:,}{self._total} items, {nbytes / 1e6:,.1f} MB, "
              f"{rate:,.0f}/s", end="\n" if last else "", file=sys.stderr,
              flush=True)


def fill(d, items, total=None, progress=None):
    """Put all items into d, and return it."""
    mapping = hasattr(items, "keys") and hasattr(items, "items")
    if total is None and hasattr(items, "__len__"):
        total = len(items)
    rank, ranks = d.rank, d.ranks
    line = _Progress(progress if rank == 0 else False, total)
    loads, keys, values, size, count, sent = None, [], [], 0, 0, 0
    try:
        for count, (key, item) in enumerate(
                items.items() if mapping else enumerate(items), 1):
            if d._pickle:
                value, how = item, {}
            else:
                value, how = encode(item)
            if loads is None:
                loads = how
            elif loads != how:
                raise TypeError(f"item {count - 1} is of another kind than the "
                                f"first: {type(item).__name__}")
            if (count - 1) % ranks != rank:
                continue
            keys.append(key)
            values.append(value)
            size += 0 if d._pickle else len(value)
            if len(keys) == KEYS or size >= BYTES:
                d.put_many(keys, values)
                sent += size
                keys, values, size = [], [], 0
                line.show(count, sent * ranks)
        if keys:
            d.put_many(keys, values)
        line.show(count, (sent + size) * ranks, True)
        if ranks > 1:
            d.barrier()
    except BaseException:
        d.close()
        raise
    d._loads = loads or {}
    return d
