#!/usr/bin/python3
"""Measures penstock beside what the machine can do at best and beside other
loaders, in one run: contenders take turns within every repeat, so that a slow
minute of the machine hits all of them. Prints medians, and writes bench.json.

    bench/run.py [--runs N] [--seconds S] [--threads T] [WORK...]
"""
import argparse
import json
import os
import platform
import statistics
import sys
import time

import data
from contenders import contenders
from tools import Missing, Tools
from works import WORKS

COSTS = "ns", "us", "ms", "s", "bytes", "MB"  # units of which less is better
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
    """All contenders of a work: name -> (unit, values)."""
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
            if key in out_of_race:
                continue
            base = key.removeprefix("later_")
            if base in work.peers and \
                    spent.get(base, 0) * (i + 1) > work.peer_seconds * i:
                continue
            start = time.monotonic()
            try:
                out[key][1].append(fields[key][0]())
            except Missing as e:
                say(f"{name}: without {key}: {e}")
                out_of_race.add(key)
            except KeyError:  # comes of another one, which failed
                out_of_race.add(key)
            took[key] = took.get(key, 0) + time.monotonic() - start
        spent = dict(took)
    if peers:
        peers.close()
    return {k: v for k, v in out.items() if v[1]}


def rows_of(name, found):
    return [{"work": name, "contender": key, "unit": unit,
             "median": statistics.median(v), "low": min(v), "high": max(v),
             "runs": len(v)} for key, (unit, v) in found.items()]


def counterpart(contender):
    """What of ours a contender is compared with: one thread with one thread,
    CPU time with CPU time."""
    if contender.startswith("later_"):
        return "later_penstock"
    for end in ("_1t", "_cpu", "_memory", "_sync", "_load"):
        if contender.endswith(end):
            return "penstock" + end
    return "penstock"


def verdicts(work, rows):
    """(what, value, wanted, ok) for every target of a work."""
    median = {r["contender"]: r["median"] for r in rows}
    for who, sign, want in work.wanted:
        if sign == "<":
            if who in median:
                unit = next(r["unit"] for r in rows if r["contender"] == who)
                yield (who, f"{median[who]:.4g} {unit}",
                       f"< {want:g} {unit}", median[who] < want)
            continue
        me = counterpart(who)
        theirs = {k: v for k, v in median.items()
                  if k == who or k.startswith(who + "_w")}
        if theirs and me in median:
            unit = next(r["unit"] for r in rows if r["contender"] == me)
            best = (min if unit in COSTS else max)(theirs, key=theirs.get)
            pair = [me, best]
            ratio = median[me] / theirs[best]
            if unit in COSTS:
                pair.reverse()
                ratio = 1 / ratio
            yield (" / ".join(pair), f"{ratio:.2f}", f">= {want:g}",
                   ratio >= want)


def show(name, work, rows):
    print(f"\n{name}")
    print(f"  {'':24}{'median':>10} {'low':>10} {'high':>10}  "
          f"{'unit':<10}{'penstock / it':>14}")
    mine_of = {r["contender"]: r for r in rows}
    for r in rows:
        mine = mine_of.get(counterpart(r["contender"]))
        line = f"  {r['contender']:24}"
        for key in ("median", "low", "high"):
            line += f"{number(r[key], r['unit']):>10} "
        line += f" {r['unit']:<10}"
        if mine and r is not mine and r["unit"] == mine["unit"] and \
                "penstock" not in r["contender"]:
            line += f"{mine['median'] / r['median']:>14.2f}"
        print(line.rstrip())
    for what, value, wanted, ok in verdicts(work, rows):
        print(f"  {'ok   ' if ok else 'SHORT'} {what}: {value} "
              f"(wanted {wanted})")
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
    args = p.parse_args()
    for name in args.works:
        if not any(w.startswith(name) for w in WORKS):
            p.error(f"no work '{name}'; there are: {', '.join(WORKS)}")
    args.works = [w for w in WORKS if not args.works or w in args.works or
                  any(w.startswith(name) for name in args.works
                      if name not in WORKS)]
    return args


def main():
    args = arguments()
    tools = Tools(args.build, args.seconds, args.threads, say,
                  args.peer_cells)
    if not os.path.exists(tools.limits_path):
        sys.exit(f"{tools.limits_path} is not there; run: make build")
    load, cpus = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cpus / 2:
        say(f"the machine is busy (load {load:.1f} on {cpus} CPUs): "
            "expect low and uneven figures")
    all_rows = []
    for name in args.works:
        try:
            found = measure(name, args, tools)
        except RuntimeError as e:
            say(f"{name}: {e}")
            continue
        rows = rows_of(name, found)
        show(name, WORKS[name], rows)
        all_rows += rows
        # after every work: a long run that is stopped has not been in vain
        with open(args.output, "w", encoding="utf-8") as f:
            json.dump({"machine": platform.platform(),
                       "threads": args.threads, "rows": all_rows}, f,
                      indent=1)
            f.write("\n")
    say(f"\nwrote {args.output}")
    return 0 if all_rows else 1


if __name__ == "__main__":
    sys.exit(main())
