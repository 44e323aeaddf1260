"""Values of every type as every other one, by NumPy's astype.

Only what fits: outside an integer's range NumPy does what the CPU does, and
that is for the test to say. A record is: name of the type (16 bytes), name of
the other one (16), count (8), values, the same values as the other type.
"""
import struct
import sys

import numpy as np

INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
        "uint64"]
FLOATS = ["float16", "float32", "float64"]


def integers(t, rng):
    i = np.iinfo(t)
    near = [2**k + d for k in range(64) for d in (-2, -1, 0, 1, 2)]
    near += [2**k + 2**(k - 24) + d for k in range(25, 64) for d in (-1, 0, 1)]
    near += [i.min, i.max, i.min + 1, i.max - 1]
    near = [s * v for v in near for s in (1, -1) if i.min <= s * v <= i.max]
    some = rng.integers(i.min, i.max, 500, dtype=t, endpoint=True)
    return np.concatenate([np.array(near, dtype=t), some])


def floats(t, rng):
    if t == "float16":
        return np.arange(65536, dtype=np.uint32).astype(np.uint16).view(t)
    half = np.arange(0x7c01, dtype=np.uint16).view(np.float16)
    half = half.astype(np.float64)
    half[-1] = 65536
    tie = (half[1:] + half[:-1]) / 2
    v = np.concatenate([half, tie, tie * (1 + 2.0**-23), tie * (1 - 2.0**-23),
                        tie * (1 + 2.0**-50), tie * (1 - 2.0**-50),
                        rng.normal(0, 1e3, 500), rng.normal(0, 1e18, 500),
                        10.0**rng.uniform(-320, 308, 500),
                        [np.inf, np.nan, 5e-324, 2.0**-149, 2.0**-150,
                         2.0**63, 2.0**64, 2.0**31 - 0.5, 255.9, 0.5]])
    with np.errstate(all="ignore"):
        return np.concatenate([v, -v]).astype(t)


def fits(v, t):
    if t not in INTS:
        return v
    i = np.iinfo(t)
    with np.errstate(all="ignore"):
        keep = [x for x in v.tolist()
                if x == x and abs(x) != float("inf")
                and i.min <= int(x) <= i.max]
    return np.array(keep, dtype=v.dtype)


def main(path):
    rng = np.random.default_rng(1)
    with open(path, "wb") as f:
        for a in ["bool"] + INTS + FLOATS:
            if a == "bool":
                all_of = np.array([False, True, True])
            else:
                all_of = integers(a, rng) if a in INTS else floats(a, rng)
            for b in ["bool"] + INTS + FLOATS:
                v = fits(all_of, b)
                with np.errstate(all="ignore"):
                    w = v.astype(b)
                f.write(struct.pack("<16s16sQ", a.encode(), b.encode(),
                                    len(v)))
                f.write(v.tobytes() + w.tobytes())


main(sys.argv[1])
