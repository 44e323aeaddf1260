#!/usr/bin/python3
"""Does `penstock compare` keep still? The same thing is run twice, many times,
and compared: at most one of twenty may be told apart. Then runs whose reads
take a tenth longer, by the fault store, which have to be.

    bench/compare_check.py [--penstock EXE] [--tries N] [--dir DIR]

Some five minutes; other work on the machine is part of the question.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SLOW = ["store=fault", "store.under=posix"]
# settings of both sides, runs of each, in turns, and whether they differ
KINDS = {
    "rows in memory": (["epochs=40", "batch_size=256"],
                       ["epochs=40", "batch_size=256"], 1, False),
    "reads of 4 ms": (SLOW + ["epochs=20", "store.delay=4ms"],
                      SLOW + ["epochs=20", "store.delay=4ms"], 1, False),
    "reads of 4 and 4.4 ms": (SLOW + ["epochs=3", "store.delay=4ms"],
                              SLOW + ["epochs=3", "store.delay=4400us"], 7,
                              True),
}


def run(exe, *words):
    p = subprocess.run([exe, *words], capture_output=True, text=True,
                       check=False)
    if p.returncode:
        sys.exit(f"{' '.join(words)}: {p.stderr.strip()}")
    return p.stdout


def differs(exe, data, folder, sides, runs):
    """Is throughput told apart?"""
    for n in range(runs):
        for i, settings in enumerate(sides):
            path = os.path.join(folder, str(i), str(n))
            os.makedirs(path, exist_ok=True)
            with open(f"{path}/result.json", "w", encoding="utf-8") as f:
                f.write(run(exe, "load", data, "shuffle=true", *settings,
                            "--json", "--quiet"))
    found = json.loads(run(exe, "compare", f"{folder}/0", f"{folder}/1",
                           "--json"))
    return next(f["differs"] for f in found["comparisons"][0]["figures"]
                if f["figure"] == "throughput")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n",
                                                          maxsplit=1)[0])
    p.add_argument("--penstock", default=os.path.join(
        SOURCE, "build", "release", "src", "cli", "penstock"))
    p.add_argument("--tries", type=int, default=20)
    p.add_argument("--dir", help="where data is made (a temporary folder)")
    args = p.parse_args()
    wrong = False
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        rows, files = f"{folder}/rows.npy", f"{folder}/files"
        run(args.penstock, "gen", rows, "samples=200000", "shape=256",
            "dtype=float32")
        run(args.penstock, "gen", files, "files=64", "samples=1",
            "shape=1024", "dtype=float32")
        for name, (a, b, runs, wanted) in KINDS.items():
            data = rows if name.startswith("rows") else files
            n = sum(differs(args.penstock, data, f"{folder}/{name}", (a, b),
                            runs) for _ in range(args.tries))
            right = n >= 0.95 * args.tries if wanted else \
                n <= 0.05 * args.tries
            wrong = wrong or not right
            print(f"{'ok   ' if right else 'WRONG'} {name}: told apart in {n} "
                  f"of {args.tries}", flush=True)
    sys.exit(wrong)


main()
