#!/usr/bin/python3
"""Compares penstock with the limits of the machine and with other loaders. The
contenders are interleaved within every repeat, so that other load on the machine
affects all of them. Prints medians, and writes bench.json.

    bench/run.py [--runs N] [--seconds S] [--threads T] [WORK...]
    bench/run.py --against [WORK...]  # exit 1 if worse than the stored figures
    bench/run.py --keep [WORK...]     # store the figures, update the tables
    bench/run.py --from bench.json --keep    # the same for an earlier run
"""
import argparse
import os
import statistics
import sys
import time

import data
import figures
import table
from contenders import contenders
from tools import SOURCE, Missing, Tools
from works import WORKS

SHARPEST = 1.1  # penstock above this share of a limit: the limit is too slow


def say(text):
    print(text, file=sys.stderr, flush=True)


def number(value, unit):
    """Three or four significant digits."""
    if unit == "samples/s":
        for scale, letter in ((1e6, " M"), (1e3, " k")):
            if value >= scale:
                return f"{value / scale:.2f}{letter}"
        return f"{value:.1f}  "
    return f"{value:.4g}  "


def measure(name, args, tools):
    """All contenders of a work: name -> (unit, values), one per repeat."""
    work = WORKS[name]
    path = None
    if work.data:
        path = data.ready(work.data, args.data, tools.limits_path, say)
    try:
        fields, warm, peers = contenders(tools, name, work, path)
    except Missing as e:
        say(f"{name}: {e}")
        return {}
    out = {key: (unit, []) for key, (_, unit) in fields.items()}
    out_of_race = set()
    names = list(fields)
    took, spent = {}, {}  # seconds per contender, now and before this repeat
    for i in range(args.runs):
        say(f"{name}: repeat {i + 1} of {args.runs}")
        if warm:
            warm()
        for key in names:
            out[key][1].append(None)
            if key in out_of_race:
                continue
            base = key.removeprefix("later_")
            if base in work.peers and \
                    spent.get(base, 0) * (i + 1) > work.peer_seconds * i:
                continue
            start = time.monotonic()
            try:
                out[key][1][i] = fields[key][0]()
            except Missing as e:
                say(f"{name}: without {key}: {e}")
                out_of_race.add(key)
            except KeyError:  # depends on another contender that failed
                out_of_race.add(key)
            took[key] = took.get(key, 0) + time.monotonic() - start
        spent = dict(took)
    if peers:
        peers.close()
    return {k: v for k, v in out.items() if set(v[1]) - {None}}


def verdicts(work, entry):
    """(verdict, figure, value, target) for every target of a work, and for a
    limit that was exceeded."""
    for key, sign, want in work.wanted:
        if sign == "<" and key in entry["figures"]:
            f = entry["figures"][key]
            yield ("ok   " if f["median"] < want else "SHORT", key,
                   f"{f['median']:.4g} {f['unit']}", f"< {want:g}")
        pair = f"{figures.counterpart(key)} / {key}"
        if sign == ">" and entry["ratios"].get(pair):
            r = statistics.median(entry["ratios"][pair])
            yield ("ok   " if r >= want else "SHORT", pair, f"{r:.2f}",
                   f">= {want:g}")
    # on a busy machine, only if the CPU time shows it, too
    cpu = entry["ratios"].get("penstock_cpu / limit_cpu")
    sure = entry["others"] < figures.BUSY or \
        cpu and statistics.median(cpu) > SHARPEST
    r = statistics.median(entry["ratios"].get("penstock / limit") or [0])
    if sure and r > SHARPEST:
        yield ("BLUNT", "penstock / limit", f"{r:.2f}",
               f"<= {SHARPEST}: the limit is too slow")


def show(name, work, entry):
    print(f"\n{name}")
    print(f"  {'':24}{'median':>10} {'low':>10} {'high':>10}  "
          f"{'unit':<10}{'penstock / it':>14}")
    for key, f in entry["figures"].items():
        line = f"  {key:24}"
        for part in ("median", "low", "high"):
            line += f"{number(f[part], f['unit']):>10} "
        line += f" {f['unit']:<10}"
        mine = entry["figures"].get(figures.counterpart(key))
        if mine and f is not mine and f["unit"] == mine["unit"] and \
                "penstock" not in key:
            line += f"{mine['median'] / f['median']:>14.2f}"
        print(line.rstrip())
    for said, what, value, wanted in verdicts(work, entry):
        print(f"  {said} {what}: {value} (wanted {wanted})")
    sys.stdout.flush()


def arguments():
    env = os.environ
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("works", nargs="*", metavar="WORK",
                   help="; ".join(WORKS) + "; or a prefix of several")
    p.add_argument("--build", default=os.path.join(SOURCE, "build/release"))
    p.add_argument("--data", default=env.get(
        "PENSTOCK_BENCH_DIR", os.path.join(SOURCE, "build/bench-data")))
    p.add_argument("--runs", type=int,
                   default=int(env.get("PENSTOCK_BENCH_RUNS", 5)))
    p.add_argument("--seconds", type=float, default=0.7,
                   help="minimum time of one measurement")
    p.add_argument("--threads", type=int,
                   default=len(os.sched_getaffinity(0)))
    p.add_argument("--peer-cells", type=int, default=40_000,
                   help="cells, of 200,000, to measure slow loaders with")
    p.add_argument("-o", "--output",
                   default=os.path.join(SOURCE, "bench.json"))
    p.add_argument("--from", dest="source", metavar="FILE",
                   help="do not measure; read the output of an earlier run")
    p.add_argument("--kept", metavar="FILE", default=table.KEPT,
                   help="the stored figures (%(default)s)")
    p.add_argument("--against", action="store_true",
                   help="compare with the stored figures; exit 1 if worse")
    p.add_argument("--keep", action="store_true",
                   help="store the figures and update tables in the docs")
    args = p.parse_args()
    for name in args.works:
        if not any(w.startswith(name) for w in WORKS):
            p.error(f"unknown work '{name}'; choose from {', '.join(WORKS)}")
    args.works = [w for w in WORKS if not args.works or w in args.works or
                  any(w.startswith(name) for name in args.works
                      if name not in WORKS)]
    return args


def measure_all(args):
    """Measures the works: name -> stored entry."""
    tools = Tools(args.build, args.seconds, args.threads, say,
                  args.peer_cells)
    if not os.path.exists(tools.limits_path):
        sys.exit(f"{tools.limits_path}: not found; run: make build")
    all_works = {}
    for name in args.works:
        others = figures.Others()
        try:
            found = measure(name, args, tools)
        except RuntimeError as e:
            say(f"{name}: {e}")
            continue
        if not found:
            continue
        entry = figures.entry(found, WORKS[name], args.threads, others)
        if entry["others"] >= figures.BUSY:
            say(f"{name}: the machine is busy (other programs used "
                f"{100 * entry['others']:.0f} % of its CPUs): expect low and "
                "uneven figures")
        show(name, WORKS[name], entry)
        all_works[name] = entry
        # after every work, so that an interrupted run keeps its figures
        figures.write(args.output, all_works, WORKS)
    if all_works:
        say(f"\nwrote {args.output}")
    return all_works


def main():
    args = arguments()
    if args.source:
        found = {n: w for n, w in figures.read(args.source).items()
                 if n in args.works}
    else:
        found = measure_all(args)
    if not found:
        return 1
    worse = 0
    if args.against:
        worse = figures.compare(
            os.path.join(args.build, "src/cli/penstock"),
            figures.read(args.kept), found)
    if args.keep:
        figures.write(args.kept, {**figures.read(args.kept), **found}, WORKS)
        table.main([])
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
