"""The programs that are measured: penstock, the limits, and the others that a
machine may have; one call runs one of them once."""
import json
import math
import os
import subprocess
import tempfile


class Missing(Exception):
    """A contender that cannot take part, and why."""


def run_json(command):
    """Runs a command that prints JSON on its standard output."""
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
        raise Missing(f"{os.path.basename(command[0])}: no JSON on its "
                      "output") from None


def fio_job(path, *settings):
    """What fio tells about a job on one file."""
    return run_json(["fio", "--name=bench", f"--filename={path}", *settings,
                     "--output-format=json"])["jobs"][0]


class Tools:
    """Where the programs are, and for how long and how wide to measure."""

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
        self.cpu = None  # of the last run: CPU time a sample, in ns
        self.epochs = {}  # command -> how many fill the time
        self.scratch = tempfile.TemporaryDirectory(prefix="bench.")

    def write_list(self, ranges):
        """A file of (offset, length, crc32, path), as pen_limits reads."""
        name = os.path.join(self.scratch.name, "list")
        with open(name, "w", encoding="utf-8") as f:
            for offset, length, crc, path in ranges:
                print(offset, length, f"{crc:x}", path, file=f)
        return name

    def warm(self, paths):
        """What brings whole files into the page cache."""
        listed = self.write_list((0, os.path.getsize(p), 0, p) for p in paths)
        return lambda: self.limits("warm", listed)

    def penstock(self, *args):
        return run_json([self.penstock_path, *args, "--json"])

    def limits(self, *args):
        return self.count_cpu(run_json([self.limits_path, *map(str, args)]))

    def count_cpu(self, r):
        """Of what a program printed, where it did."""
        self.cpu = None
        if r.get("samples") and "cpu_s" in r:
            self.cpu = r["cpu_s"] / r["samples"] * 1e9
        return r

    def load(self, nsamples, *settings, skip=1):
        """penstock load: the epochs after the first ones, which like
        everybody's first passes bring in the pages. Returns samples, seconds,
        batches."""
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
            raise Missing("penstock: epochs are missing")
        samples, seconds, cpu = (sum(e[key] for e in later) for key in
                                 ("samples", "seconds", "cpu_s"))
        self.count_cpu({"samples": samples, "cpu_s": cpu})
        return (samples, seconds,
                r["batches"] * (epochs - skip) / epochs)


def rate(r):
    return r["samples"] / r["seconds"]
