#!/usr/bin/python3
"""Checks the predictions of `penstock simulate`. Interleaves the measurements that
they are based on with real runs on 1, 2 and 4 ranks, and prints predicted /
measured.

    bench/simulate_check.py [--penstock FILE] [--seconds S] [--out FILE]

A set is all measurements and runs once; it is repeated while time is left. Both
numbers of a ratio belong to one set, so that other load on the machine affects
both. Nothing is fitted: the cores are those of the machine, everything else is
measured with one process (two for requests between ranks).
"""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

from tools import SOURCE, call

FILES, BATCH, THREADS, AHEAD, EPOCHS, RANKS = 192, 4, 2, 4, 3, (1, 2, 4)
DELAY = "10ms"
BYTES = 1 << 20     # of an npy sample


class Case:
    """A kind of job: data, compute time and settings of the loader."""

    def __init__(self, name, data, compute, loader=(), dict_of=None):
        self.name, self.data, self.compute = name, data, compute
        self.loader = list(loader)
        self.dict_of = dict_of    # None, "machine" or "ranks"


SLOW = ["store=fault", f"store.delay={DELAY}"]
CASES = [
    Case("decoding, all cores", "jpeg", 0.010),
    Case(f"reads of {DELAY}", "npy", 0.020, SLOW),
    Case("the same, cache=ddict", "npy", 0.004,
         [*SLOW, "cache=ddict"], "machine"),
    Case("cache=ddict, share=false", "npy", 0.004,
         [*SLOW, "cache=ddict", "cache.share=false"], "ranks"),
]


class Check:
    def __init__(self, penstock, folder):
        self.penstock, self.folder = penstock, folder
        self.cores = len(os.sched_getaffinity(0))

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, args, ranks=1):
        """The output of penstock on this many ranks."""
        command = [self.penstock, *args]
        if ranks > 1:
            command = ["mpirun", "--oversubscribe", "--allow-run-as-root",
                       "-n", str(ranks), *command]
        return call(*command, cwd=self.folder, timeout=120)

    def job(self, case):
        """The workload, with the settings of a case."""
        side = 512 if case.data == "jpeg" else 1024
        return ["job.yaml", f"dataset.format={case.data}",
                f"dataset.data_folder={case.data}",
                f"dataset.record_length_bytes={side * side}",
                f"train.computation_time={case.compute}"]

    def make_data(self):
        with open(self.path("job.yaml"), "w") as f:
            f.write(f"""
framework: pytorch
model: {{name: check}}
workflow: {{generate_data: false, train: true}}
dataset:
  num_files_train: {FILES}
  num_samples_per_file: 1
reader:
  data_loader: pytorch
  batch_size: {BATCH}
  read_threads: {THREADS}
  prefetch_size: {AHEAD}
  file_shuffle: seed
  sample_shuffle: seed
train: {{epochs: {EPOCHS}}}
""")
        for case in CASES[:2]:
            self.call(["run", *self.job(case), "workflow.generate_data=true",
                       "workflow.train=false", "--quiet"])

    # --- measurements for the model ---

    def load(self, name, data, loader):
        self.call(["load", f"{data}/train", f"batch_size={BATCH}",
                   f"threads={THREADS}", f"prefetch={AHEAD}", "epochs=2",
                   "sampler=shuffle", *loader, "--quiet", "-o", name])
        with open(self.path(name)) as f:
            return json.load(f)

    def dictionary(self, name, ranks, *settings):
        text = self.call(["ddict", "bench", f"size={BYTES}", "values=128",
                          f"batch={BATCH}", "time=150ms", *settings, "--json"],
                         ranks)
        with open(self.path(name), "w") as f:
            f.write(text)
        return json.loads(text)

    def measure(self):
        """Writes the files for --from; returns the other parameters."""
        self.load("load_jpeg.json", "jpeg", [])
        slow = self.load("load_npy.json", "npy", SLOW)
        self.dictionary("here.json", 1)
        self.dictionary("wire.json", 2, "share=false")
        both = self.dictionary("copy.json", self.cores)
        copies = both["ways"][0]["values_per_second"] * BYTES
        return {"latency": (slow["stage_ns"]["open"] +
                             slow["stage_ns"]["read"]) /
                slow["nreads"] / 1e9,
                "copy": int(copies)}

    def predict(self, case, ranks, known):
        separate = case.dict_of == "ranks"
        args = ["simulate", *self.job(case), f"samples={FILES}",
                f"epochs={EPOCHS}", "network=none", f"copy={known['copy']}",
                "--from", f"load_{case.data}.json", "--json"]
        if separate:
            # each rank is a node with its share of this machine
            args += [f"nodes={ranks}", "ranks=1",
                     f"cores={self.cores / ranks:g}"]
        else:
            args += ["nodes=1", f"ranks={ranks}", f"cores={self.cores}"]
        if case.loader:
            args.append(f"storage=1TB/s,{int(known['latency'] * 1e9)}ns")
        else:
            args.append("storage=none")
        if case.dict_of:
            args += ["cache=ddict", "--from", "here.json", "--from",
                     "wire.json"]
        row, = json.loads(self.call(args))["rows"]
        return {"first": row["first"]["seconds"],
                "later": row["later"]["seconds"],
                "busy": 100 * row["later"]["utilisation"]}

    # --- real runs ---

    def run(self, case, ranks):
        out = self.path("out")
        shutil.rmtree(out, ignore_errors=True)
        self.call(["run", *self.job(case), "output.folder=out", "--quiet",
                   *[f"loader.{s}" for s in case.loader]], ranks)
        with open(os.path.join(out, "result.json")) as f:
            epochs = json.load(f)["epochs"]
        later = epochs[1:]
        return {"first": epochs[0]["seconds"],
                "later": statistics.mean(e["seconds"] for e in later),
                "busy": statistics.mean(e["au"] for e in later)}

    def one_set(self):
        known = self.measure()
        rows = {}
        for case in CASES:
            for ranks in RANKS:
                rows[case.name, ranks] = (self.predict(case, ranks, known),
                                          self.run(case, ranks))
        return {"known": known, "rows": rows}


def spread(values, form):
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{form % middle} ({form % low}-{form % high})"


def show(sets):
    print(f"\n{'':25} {'ranks':>5} {'epoch':>6} {'measured, s':>21} "
          f"{'predicted, s':>21} {'predicted/measured':>19}  busy, %: "
          "measured, predicted")
    ratios = []
    for (name, ranks) in sets[0]["rows"]:
        pairs = [s["rows"][name, ranks] for s in sets]
        for part in ("first", "later"):
            if part == "first" and "ddict" not in name:
                continue
            said = [p[part] for p, _ in pairs]
            was = [m[part] for _, m in pairs]
            ratio = [a / b for a, b in zip(said, was)]
            busy = ""
            if part == "later":
                ratios += ratio
                busy = "  ".join(f"{statistics.median(v):5.1f}" for v in (
                    [m["busy"] for _, m in pairs],
                    [p["busy"] for p, _ in pairs]))
            print(f"{name:25} {ranks:5} {part:>6} {spread(was, '%.3f'):>21} "
                  f"{spread(said, '%.3f'):>21} {spread(ratio, '%.2f'):>19}  "
                  f"{busy}")
    off = sorted(max(r, 1 / r) for r in ratios)
    print(f"\nlater epochs, {len(off)} predictions: off by a factor of "
          f"{statistics.median(off):.2f} in the median, "
          f"{off[-1]:.2f} at worst")


def command():
    """The command of the release or the dev build, or that in PATH."""
    built = [os.path.join(SOURCE, "build", kind, "src/cli/penstock")
             for kind in ("release", "dev")]
    return next(filter(os.path.exists, built), "penstock")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--penstock", default=command(),
                    help="the command (%(default)s)")
    ap.add_argument("--seconds", type=float, default=150,
                    help="start no set that would end later (150)")
    ap.add_argument("--out", help="all numbers, as JSON")
    args = ap.parse_args()
    folder = tempfile.mkdtemp(prefix="penstock_check.")
    os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
    start, took, sets = time.monotonic(), 0, []
    try:
        found = shutil.which(args.penstock)
        if not found:
            sys.exit(f"{args.penstock}: not found; set --penstock FILE")
        check = Check(os.path.abspath(found), folder)
        print(f"{check.cores} cores, load average {os.getloadavg()[0]:.1f} at "
              "the start", flush=True)
        check.make_data()
        while not sets or time.monotonic() + took < start + args.seconds:
            began = time.monotonic()
            sets.append(check.one_set())
            took = time.monotonic() - began
            print(f"set {len(sets)}: {took:.0f} s, load "
                  f"{os.getloadavg()[0]:.1f}, {sets[-1]['known']}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(sets)
    if args.out:
        with open(args.out, "w") as f:
            json.dump([{"known": s["known"],
                        "rows": [{"case": c, "ranks": r, "predicted": p,
                                  "measured": m}
                                 for (c, r), (p, m) in s["rows"].items()]}
                       for s in sets], f, indent=1)


if __name__ == "__main__":
    main()
