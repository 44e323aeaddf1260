"""The programs to measure: penstock, the limits, and other tools that may be
installed. One call runs one of them once."""
import json
import math
import os
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PENSTOCK = os.path.join(SOURCE, "build", "release", "src", "cli", "penstock")


class Missing(Exception):
    """A contender that cannot take part, and why."""


def call(*command, **more):
    """The output of a command; exits with its error message if it fails."""
    p = subprocess.run(command, capture_output=True, text=True, check=False,
                       **more)
    if p.returncode:
        sys.exit(f"{' '.join(command)}: exit {p.returncode}: "
                 f"{p.stderr.strip()}")
    return p.stdout


def timed(take, seconds, least=1):
    """Calls take(), which returns a number of samples, for at least so many
    seconds and times."""
    samples = count = 0
    start = time.perf_counter()
    while True:
        samples += take()
        count += 1
        took = time.perf_counter() - start
        if took >= seconds and count >= least:
            return {"samples": samples, "seconds": took}


def run_json(command):
    """Runs a command that prints JSON."""
    try:
        p = subprocess.run(command, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, check=False)
    except OSError as e:
        raise Missing(f"{command[0]}: {e.strerror}") from None
    if p.returncode:
        why = (p.stderr.strip() or f"exit code {p.returncode}").split("\n")[-1]
        raise Missing(f"{os.path.basename(command[0])}: {why}")
    try:
        return json.loads(p.stdout)
    except ValueError:
        raise Missing(f"{os.path.basename(command[0])}: the output is not "
                      "JSON") from None


def fio_job(path, *settings):
    """The result of a fio job on one file."""
    return run_json(["fio", "--name=bench", f"--filename={path}", *settings,
                     "--output-format=json"])["jobs"][0]


class Tools:
    """Paths of the programs, measuring time and number of threads."""

    def __init__(self, build, seconds, threads, say, peer_cells):
        self.build = build
        self.penstock_path = os.path.join(build, "src", "cli", "penstock")
        self.python_path = os.path.join(build, "python")
        self.limits_path = os.path.join(build, "bench", "pen_limits")
        self.shuffle_path = os.path.join(build, "bench", "pen_shuffle")
        self.seconds = seconds
        self.threads = threads
        self.say = say
        self.peer_cells = peer_cells
        self.cpu = None  # CPU time per sample of the last run, in ns
        self.epochs = {}  # settings -> number that fills the time
        self.scratch = tempfile.TemporaryDirectory(prefix="bench.")

    def write_list(self, ranges):
        """Writes (offset, length, crc32, path) lines for pen_limits."""
        name = os.path.join(self.scratch.name, "list")
        with open(name, "w", encoding="utf-8") as f:
            for offset, length, crc, path in ranges:
                print(offset, length, f"{crc:x}", path, file=f)
        return name

    def warm(self, paths):
        """A function that reads entire files into the page cache."""
        listed = self.write_list((0, os.path.getsize(p), 0, p) for p in paths)
        return lambda: self.limits("warm", listed)

    def penstock(self, *args):
        return run_json([self.penstock_path, *args, "--json"])

    def limits(self, *args):
        return self.count_cpu(run_json([self.limits_path, *map(str, args)]))

    def count_cpu(self, r):
        """Stores the CPU time per sample, if the program printed it."""
        self.cpu = None
        if r.get("samples") and "cpu_s" in r:
            self.cpu = r["cpu_s"] / r["samples"] * 1e9
        return r

    def load(self, nsamples, *settings, skip=1):
        """penstock load: samples, seconds and batches of the epochs after the
        first ones, which fault in the pages."""
        if settings not in self.epochs:
            steady = self.load_epochs(nsamples, settings, skip + 1, skip)
            self.epochs[settings] = skip + max(
                1, math.ceil(self.seconds / max(steady[1], 1e-6)))
        return self.load_epochs(nsamples, settings, self.epochs[settings],
                                skip)

    def load_epochs(self, nsamples, settings, epochs, skip):
        r = self.penstock("load", *settings, f"epochs={epochs}")
        if r["samples"] != nsamples * epochs:
            raise Missing(f"penstock: {r['samples']} samples, not "
                          f"{nsamples * epochs}")
        later = r["epochs"][skip:]
        if len(later) != epochs - skip:
            raise Missing("penstock: missing epochs")
        samples, seconds, cpu = (sum(e[key] for e in later) for key in
                                 ("samples", "seconds", "cpu_s"))
        self.count_cpu({"samples": samples, "cpu_s": cpu})
        return (samples, seconds,
                r["batches"] * (epochs - skip) / epochs)


def rate(r):
    return r["samples"] / r["seconds"]
