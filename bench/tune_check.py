#!/usr/bin/python3
"""Checks the recommendation of `penstock tune` on three kinds of data: runs every
setting that tune would try, lets tune search the same grid, and then compares its
choice with the best of all settings in interleaved runs. The result is the ratio
of their median rates: 1 is as good as trying everything, the target is 0.9.

    bench/tune_check.py [--dir DIR] [--penstock EXE] [--quick] [KIND...]

Takes about five minutes on an idle machine; --quick only tests the script. Data
is generated once under DIR and kept.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

from tools import PENSTOCK, SOURCE, call

WANTED = 0.9

# name: settings of `penstock gen`, path under DIR, settings of the runs
KINDS = {
    "rows": (["samples={rows}", "shape=256", "dtype=float32"], "rows.npy",
             ["batch_size=256", "shuffle=true"]),
    "files": (["files={files}", "samples=1", "shape=64x64", "dtype=float32"],
              "files", ["batch_size=64", "shuffle=true"]),
    "cells": (["samples={cells}", "genes=2000", "format.compression=gzip"],
              "cells.h5ad", ["batch_size=256", "sampler=block"]),
}
SIZES = {"rows": 200000, "files": 4000, "cells": 30000}
QUICK = {"rows": 20000, "files": 400, "cells": 3000}


class Times:
    """Passes over the grid, and seconds per setting, of tune, per final run."""

    def __init__(self, quick):
        self.passes = 1 if quick else 2
        self.cell = 0.05 if quick else 0.25
        self.tune = 4 if quick else 40
        self.last = 0.2 if quick else 1.5
        self.repeats = 5


def say(text):
    print(text, flush=True)


class Check:
    """One kind of data, and the command to check."""

    def __init__(self, args, name):
        self.exe = args.penstock
        self.times = Times(args.quick)
        self.name = name
        sizes = QUICK if args.quick else SIZES
        self.make, path, self.settings = KINDS[name]
        self.make = [m.format(**sizes) for m in self.make]
        self.path = os.path.join(args.dir, "quick" if args.quick else "full",
                                 path)

    def prepare(self):
        if not os.path.exists(self.path):
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            call(self.exe, "gen", self.path, *self.make)
        self.rate((), 2 * self.times.last)      # fills the page cache

    def rate(self, settings, seconds):
        """Samples per second with these settings; None: they do not work."""
        p = subprocess.run([self.exe, "load", self.path, *self.settings,
                            *settings, "epochs=0", "--seconds", f"{seconds}",
                            "--json", "--quiet"], capture_output=True,
                           text=True, check=False)
        return None if p.returncode else json.loads(p.stdout)["samples_per_s"]

    def grid(self):
        """Every setting that tune tries, as a tuple of strings."""
        out = call(self.exe, "tune", self.path, *self.settings, "--dry-run",
                   "--json")
        return [tuple(c) for c in json.loads(out)["candidates"]]

    def exhaustive(self, grid):
        """Runs the entire grid in varying order: {cell: [rate]}."""
        found = {}
        for turn in range(self.times.passes):
            for cell in random.Random(turn).sample(grid, len(grid)):
                rate = self.rate(cell, self.times.cell)
                if rate is not None:
                    found.setdefault(cell, []).append(rate)
        return found

    def duel(self, a, b):
        """Rates of both, interleaved in alternating order."""
        got = {a: [], b: []}
        for turn in range(self.times.repeats):
            for words in ((a, b), (b, a))[turn % 2]:
                got[words].append(self.rate(words, self.times.last))
        return got[a], got[b]


def named(words):
    return " ".join(words) or "defaults"


def look_at(check):
    """The ratio for one kind of data."""
    start = time.monotonic()
    check.prepare()
    grid = check.grid()
    found = check.exhaustive(grid)
    if not found:
        sys.exit(f"{check.name}: no setting works")
    best = max(found, key=lambda c: statistics.median(found[c]))
    swept = time.monotonic() - start
    tuned = json.loads(call(check.exe, "tune", check.path, *check.settings,
                            "--seconds", f"{check.times.tune}", "--json",
                            "--quiet"))
    choice = tuple(tuned["recommended"])
    say(f"{check.name}: {len(grid)} settings, {len(grid) - len(found)} do not "
        f"work here; all took {swept:.0f} s, tune {tuned['seconds']:.0f} s of "
        f"{check.times.tune}")
    say(f"  best of all    {named(best)}")
    say(f"  tune's choice  {named(choice)}")
    if set(choice) == set(best):
        say("  ratio          1.00 (the same settings)")
        return 1.0
    a, b = check.duel(choice, best)
    if None in a or None in b:
        sys.exit(f"{check.name}: a setting that worked does not any more")
    ratio = statistics.median(a) / statistics.median(b)
    say(f"  samples/s      tune {statistics.median(a):.4g} "
        f"({min(a):.4g} .. {max(a):.4g}), best {statistics.median(b):.4g} "
        f"({min(b):.4g} .. {max(b):.4g})")
    say(f"  ratio          {ratio:.2f}"
        f"{'' if ratio >= WANTED else f'  BELOW {WANTED}'}")
    return ratio


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    p.add_argument("kinds", nargs="*", metavar="KIND",
                   help=f"{', '.join(KINDS)} (default: all)")
    p.add_argument("--dir", default=os.path.join(SOURCE, "build",
                                                 "tune-data"),
                   help="directory of the data (%(default)s)")
    p.add_argument("--penstock", default=PENSTOCK,
                   help="the command (%(default)s)")
    p.add_argument("--quick", action="store_true",
                   help="small data and short runs; the results mean nothing")
    args = p.parse_args()
    for name in args.kinds:
        if name not in KINDS:
            p.error(f"unknown kind '{name}'; choose from {', '.join(KINDS)}")
    if not os.access(args.penstock, os.X_OK):
        p.error(f"{args.penstock}: not found; build it or set --penstock")
    start = time.monotonic()
    ratios = {name: look_at(Check(args, name)) for name in args.kinds or KINDS}
    worst = min(ratios, key=ratios.get)
    say(f"worst: {worst}, {ratios[worst]:.2f} (target {WANTED}); "
        f"{time.monotonic() - start:.0f} s in all")
    return 0 if args.quick or ratios[worst] >= WANTED else 1


sys.exit(main())
