#!/usr/bin/python3
"""Measures penstock beside what the machine can do at best and beside other
loaders, in one run: contenders take turns within every repeat, so that a slow
minute of the machine hits all of them. Prints medians, and writes bench.json.

    bench/run.py [--runs N] [--seconds S] [--threads T] [WORK...]
    bench/run.py --against [WORK...]  # what is worse than what is kept? exit 1
    bench/run.py --keep [WORK...]     # keep what was found, tables and all
    bench/run.py --from bench.json --keep    # the same, of an earlier run
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
from tools import Missing, Tools
from works import WORKS

SHARPEST = 1.1  # a limit that is passed by more is none
SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def say(text):
    print(text, file=sys.stderr, flush=True)


def number(value, unit):
    """Three or four digits that count."""
    if unit == "samples/s":
        for scale, letter in ((1e6, " M"), (1e3, " k")):
            if value >= scale:
                return f"{value / scale:.2f}{letter}"
        return f"{value:.1f}  "
    return f"{value:.4g}  "


def measure(name, args, tools):
    """All contenders of a work: name -> (unit, values), a value a repeat."""
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
    took, spent = {}, {}  # seconds of a contender, now and a repeat before
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
            except KeyError:  # comes of another one, which failed
                out_of_race.add(key)
            took[key] = took.get(key, 0) + time.monotonic() - start
        spent = dict(took)
    if peers:
        peers.close()
    return {k: v for k, v in out.items() if set(v[1]) - {None}}


def verdicts(work, entry):
    """(said, what, value, wanted) for every target of a work, and for every
    limit that was passed."""
    for who, sign, want in work.wanted:
        if sign == "<" and who in entry["figures"]:
            f = entry["figures"][who]
            yield ("ok   " if f["median"] < want else "SHORT", who,
                   f"{f['median']:.4g} {f['unit']}", f"< {want:g}")
        pair = f"{figures.counterpart(who)} / {who}"
        if sign == ">" and entry["ratios"].get(pair):
            r = statistics.median(entry["ratios"][pair])
            yield ("ok   " if r >= want else "SHORT", pair, f"{r:.2f}",
                   f">= {want:g}")
    # on a busy machine its CPU time has to say so, too
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
    for who, f in entry["figures"].items():
        line = f"  {who:24}"
        for key in ("median", "low", "high"):
            line += f"{number(f[key], f['unit']):>10} "
        line += f" {f['unit']:<10}"
        mine = entry["figures"].get(figures.counterpart(who))
        if mine and f is not mine and f["unit"] == mine["unit"] and \
                "penstock" not in who:
            line += f"{mine['median'] / f['median']:>14.2f}"
        print(line.rstrip())
    for said, what, value, wanted in verdicts(work, entry):
        print(f"  {said} {what}: {value} (wanted {wanted})")
    sys.stdout.flush()


def arguments():
    env = os.environ
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("works", nargs="*", metavar="WORK",
                   help="; ".join(WORKS) + "; or what several begin with")
    p.add_argument("--build", default=os.path.join(SOURCE, "build/release"))
    p.add_argument("--data", default=env.get(
        "PENSTOCK_BENCH_DIR", os.path.join(SOURCE, "build/bench-data")))
    p.add_argument("--runs", type=int,
                   default=int(env.get("PENSTOCK_BENCH_RUNS", 5)))
    p.add_argument("--seconds", type=float, default=0.7,
                   help="least time of one measurement")
    p.add_argument("--threads", type=int,
                   default=len(os.sched_getaffinity(0)))
    p.add_argument("--peer-cells", type=int, default=40_000,
                   help="cells that a slow loader delivers, of 200,000")
    p.add_argument("-o", "--output",
                   default=os.path.join(SOURCE, "bench.json"))
    p.add_argument("--from", dest="source", metavar="FILE",
                   help="measure nothing: what an earlier run wrote")
    p.add_argument("--kept", metavar="FILE", default=table.KEPT,
                   help="what is kept (%(default)s)")
    p.add_argument("--against", action="store_true",
                   help="say what is worse than what is kept; exit 1 then")
    p.add_argument("--keep", action="store_true",
                   help="put it into what is kept, and tables into the docs")
    args = p.parse_args()
    for name in args.works:
        if not any(w.startswith(name) for w in WORKS):
            p.error(f"no work '{name}'; there are: {', '.join(WORKS)}")
    args.works = [w for w in WORKS if not args.works or w in args.works or
                  any(w.startswith(name) for name in args.works
                      if name not in WORKS)]
    return args


def measure_all(args):
    """Work -> what is written of it."""
    tools = Tools(args.build, args.seconds, args.threads, say,
                  args.peer_cells)
    if not os.path.exists(tools.limits_path):
        sys.exit(f"{tools.limits_path} is not there; run: make build")
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
            say(f"{name}: the machine is busy (others had "
                f"{100 * entry['others']:.0f} % of its CPUs): expect low and "
                "uneven figures")
        show(name, WORKS[name], entry)
        all_works[name] = entry
        # after every work: a long run that is stopped has not been in vain
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
