"""Stored figures of works, and their comparison with a new run.

    {"works": {WORK: {"date", "machine", "threads", "load", "others",
                      "figures": {CONTENDER: {"unit", "median", "low", "high",
                                              "runs", "values"}},
                      "ratios": {"OURS / THEIRS": [one per repeat]}}}}

`values` has one value per repeat, null if a slow contender was skipped. `ratios`
are how many times as good ours is as theirs, within a repeat; for a contender
with several worker counts, the best of the repeat counts. Only ratios are
compared, because rates of a shared machine change within an hour, and memory,
which does not. `load` is the load average before the work, `others` the share of
all CPUs that other programs used during it.
"""
import datetime
import json
import os
import platform
import re
import resource
import statistics
import tempfile

from tools import run_json

COSTS = "ns", "us", "ms", "s", "bytes", "MB"  # units where less is better
SPACE = {"bytes": 1, "MB": 1e6}
BUSY = 0.2  # share of the CPUs used by others, as in `penstock bench`
LEAST = 10  # percent; ratios change by less from one hour to the next


def counterpart(contender):
    """The figure of ours to compare a contender with: one thread with one thread,
    CPU time with CPU time."""
    if contender.startswith("later_"):
        return "later_penstock"
    for end in ("_1t", "_cpu", "_memory", "_sync", "_load"):
        if contender.endswith(end):
            return "penstock" + end
    return "penstock"


def family(contender):
    """The name without the number of workers."""
    return re.sub(r"_w\d+(x\d+)?$", "", contender)


def pairs(found, wanted):
    """The pairs (ours, theirs) to compare in found, contender -> (unit, values). A
    figure of ours without a counterpart is compared with the first of theirs,
    only to detect changes."""
    def alike(a, b):
        return b in found and found[a][0] == found[b][0]

    theirs = [k for k in found if k in wanted or
              not k.startswith(("penstock", "later_"))]
    out = [(counterpart(k), k) for k in theirs if alike(k, counterpart(k))]
    met = {me for me, _ in out}
    for me in found:
        if me.startswith("penstock") and me not in met and \
                me not in wanted and found[me][0] not in SPACE:
            out += [(me, k) for k in theirs if alike(k, me)][:1]
    return out


def ratios(found, wanted):
    """"OURS / THEIRS" -> ratios, one per repeat."""
    out = {}
    for me, peer in pairs(found, wanted):
        unit, values = found[peer]
        of = out.setdefault(f"{me} / {family(peer)}", [None] * len(values))
        for i, (mine, theirs) in enumerate(zip(found[me][1], values)):
            if mine and theirs:
                r = theirs / mine if unit in COSTS else mine / theirs
                of[i] = r if of[i] is None else min(of[i], r)
    return {pair: [r for r in of if r is not None] for pair, of in out.items()}


def short(value):
    """Rounds to six digits, more than any clock provides."""
    return None if value is None else float(f"{value:.6g}")


class Others:
    """The share of the machine that other programs use during a work."""

    def __init__(self):
        self.load = os.getloadavg()[0]
        self.start = self.now()

    @staticmethod
    def now():
        with open("/proc/stat", encoding="ascii") as f:
            t = [int(x) / os.sysconf("SC_CLK_TCK")
                 for x in f.readline().split()[1:9]]
        own = sum(u.ru_utime + u.ru_stime for u in map(
            resource.getrusage,
            (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
        return t[0] + t[1] + t[2] + t[7] - own, sum(t)

    def share(self):
        """Includes time that a host gives to other virtual machines."""
        busy, every = (b - a for a, b in zip(self.start, self.now()))
        return max(0, busy / every) if every else 0


def machine():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (f"{model[1] if model else platform.machine()}, "
            f"{os.cpu_count()} CPUs, {memory / 1e9:.0f} GB, "
            f"Linux {platform.release().split('-')[0]}")


def entry(found, work, threads, others):
    """The stored entry of a work."""
    return {"date": datetime.date.today().isoformat(), "machine": machine(),
            "threads": threads, "load": round(others.load, 2),
            "others": round(others.share(), 3),
            "figures": {name: summary(unit, values)
                        for name, (unit, values) in found.items()},
            "ratios": {pair: list(map(short, v)) for pair, v in ratios(
                found, [name for name, sign, _ in work.wanted
                        if sign == ">"]).items()}}


def summary(unit, values):
    v = [x for x in values if x is not None]
    return {"unit": unit, "median": short(statistics.median(v)),
            "low": short(min(v)), "high": short(max(v)), "runs": len(v),
            "values": list(map(short, values))}


def read(path):
    """The works in a file; empty if the file does not exist."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as f:
        return json.load(f)["works"]


def write(path, works, order):
    """Writes one line per contender, for readable diffs."""
    def lines(table):
        return ",\n".join(f"   {json.dumps(k)}: {json.dumps(v)}"
                          for k, v in table.items())

    parts = []
    for name in filter(works.get, order):
        w = works[name]
        head = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}"
                         for k, v in w.items() if not isinstance(v, dict))
        parts.append(f" {json.dumps(name)}: {{\n  {head},\n"
                     f'  "figures": {{\n{lines(w["figures"])}\n  }},\n'
                     f'  "ratios": {{\n{lines(w["ratios"])}\n  }}\n }}')
    text = '{"works": {\n' + ",\n".join(parts) + "\n}}\n"
    with open(path + ".part", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path + ".part", path)


def rows(works):
    """Rows in the format of `penstock bench`, for `penstock compare`."""
    for name, work in works.items():
        for pair, values in work["ratios"].items():
            for v in values:
                yield {"setup": f"{name} {pair}", "samples_per_s": v}
        for mine, f in work["figures"].items():
            if f["unit"] in SPACE and mine.startswith("penstock"):
                for v in filter(None, f["values"]):
                    yield {"setup": f"{name} {mine}",
                           "own_memory_bytes": v * SPACE[f["unit"]]}


def compare(penstock, kept, now):
    """Prints a verdict per work; returns how many are worse."""
    print(f"\ncompared with the stored figures (changes beyond noise and of "
          f"{LEAST} % or more count)")
    for name in now:
        if name not in kept:
            print(f"  {'new':7} {name}: no stored figures")
    both = [{n: w for n, w in works.items() if n in kept and n in now}
            for works in (kept, now)]
    if not both[0]:
        return 0
    with tempfile.TemporaryDirectory(prefix="bench.") as top:
        paths = [os.path.join(top, n) for n in ("kept.jsonl", "now.jsonl")]
        for path, works in zip(paths, both):
            with open(path, "w", encoding="utf-8") as f:
                for row in rows(works):
                    print(json.dumps({"schema": "penstock.bench/1", **row}),
                          file=f)
        found = run_json([penstock, "compare", *paths, "--least", str(LEAST),
                          "--json"])["comparisons"][0]["figures"]
    return show(found, kept, now)


def show(found, kept, now):
    worse = 0
    for name in now:
        mine = [f for f in found if f["figure"].split(" ")[0] == name]
        for f in mine:
            f["said"] = ("alike" if not f["differs"] and "low" in f else
                         "unknown" if not f["differs"] else
                         "better" if f["better"] else "WORSE")
        if not mine:
            continue
        said = {f["said"] for f in mine}
        verdict = next(s for s in ("WORSE", "better", "alike", "unknown")
                       if s in said)
        worse += verdict == "WORSE"
        busy = [when for when, works in (("then", kept), ("now", now))
                if works[name]["others"] >= BUSY]
        print(f"  {verdict:7} {name}" + (
            f" (a busy machine {' and '.join(busy)})" if busy else ""))
        for f in filter(lambda f: f["differs"], mine):
            print(f"          {f['said']}: {line(f)}")
    print(f"  {worse} worse of {len(now)}")
    return worse


def line(f):
    """The line of a figure that changed."""
    name, what = f["figure"].split(" ", 1)[1].split(": ")
    scale, unit = (1e6, " MB") if what == "memory" else (1, "")
    return (f"{name} {f['from'] / scale:.3g} -> {f['to'] / scale:.3g}{unit} "
            f"({100 * f['change']:+.0f} %, "
            f"{100 * f['low']:+.0f} .. {100 * f['high']:+.0f} %)")
