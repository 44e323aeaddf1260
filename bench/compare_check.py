#!/usr/bin/python3
"""Checks the error rates of `penstock compare`. Compares pairs of equal runs many
times: at most one in twenty may be reported as different. Then compares runs
whose reads take a tenth longer (fault store), which must be reported.

    bench/compare_check.py [--penstock EXE] [--tries N] [--dir DIR]

Takes about five minutes; other load on the machine is part of the test.
"""
import argparse
import json
import os
import sys
import tempfile

from tools import PENSTOCK, call

SLOW = ["store=fault", "store.under=posix"]
# settings of both sides, interleaved runs of each, and whether they differ
KINDS = {
    "rows in memory": (["epochs=40", "batch_size=256"],
                       ["epochs=40", "batch_size=256"], 1, False),
    "reads of 4 ms": (SLOW + ["epochs=20", "store.delay=4ms"],
                      SLOW + ["epochs=20", "store.delay=4ms"], 1, False),
    "reads of 4 and 4.4 ms": (SLOW + ["epochs=3", "store.delay=4ms"],
                              SLOW + ["epochs=3", "store.delay=4400us"], 7,
                              True),
}


def differs(exe, data, folder, sides, runs):
    """Whether the throughput is reported as different."""
    for n in range(runs):
        for i, settings in enumerate(sides):
            path = os.path.join(folder, str(i), str(n))
            os.makedirs(path, exist_ok=True)
            with open(f"{path}/result.json", "w", encoding="utf-8") as f:
                f.write(call(exe, "load", data, "shuffle=true", *settings,
                             "--json", "--quiet"))
    found = json.loads(call(exe, "compare", f"{folder}/0", f"{folder}/1",
                            "--json"))
    return next(f["differs"] for f in found["comparisons"][0]["figures"]
                if f["figure"] == "throughput")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n",
                                                          maxsplit=1)[0])
    p.add_argument("--penstock", default=PENSTOCK)
    p.add_argument("--tries", type=int, default=20)
    p.add_argument("--dir", help="parent of the temporary directory")
    args = p.parse_args()
    wrong = False
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        rows, files = f"{folder}/rows.npy", f"{folder}/files"
        call(args.penstock, "gen", rows, "samples=200000", "shape=256",
             "dtype=float32")
        call(args.penstock, "gen", files, "files=64", "samples=1",
             "shape=1024", "dtype=float32")
        for name, (a, b, runs, wanted) in KINDS.items():
            data = rows if name.startswith("rows") else files
            n = sum(differs(args.penstock, data, f"{folder}/{name}", (a, b),
                            runs) for _ in range(args.tries))
            right = n >= 0.95 * args.tries if wanted else \
                n <= 0.05 * args.tries
            wrong = wrong or not right
            print(f"{'ok   ' if right else 'WRONG'} {name}: different in {n} "
                  f"of {args.tries}", flush=True)
    sys.exit(wrong)


main()
