#!/usr/bin/python3
"""The disk is full: every writer runs with a disk that takes N bytes, N in
steps of 4 KiB over the last megabyte of what it writes. It fails, says which
file did not fit, and leaves nothing. libhdf5, which ends the process when it
cannot allocate, runs with memory limits in steps, too.

    tests/e2e/disk_full.py [--most N | --all] [SCENE...]"""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "faults"))
from faults import (PENSTOCK, Scene, in_parallel, run,  # noqa: E402
                    sample, temporaries)
from scenes import inputs, writers  # noqa: E402

STEP = 4096
LAST = 1 << 20


def attempt(scene, room):
    cwd = scene.folder()
    r = run(scene.args, cwd, FAULT_BUDGET=room)
    wrong = scene.judge(r, cwd)
    if not wrong and r.counts.fired:
        # the cache of indexes is optional
        if not r.code and scene.writes_all:
            wrong = ["exit 0, though not everything fitted"]
        elif r.code and "no space left" not in r.err.lower():
            wrong = [f"does not say why: {r.err.strip()[-300:]}"]
    shutil.rmtree(cwd, ignore_errors=True)
    return room, r, wrong


def rooms(scene, most, turn):
    """Every size of the disk, from all but one byte downwards."""
    total = scene.counts.written
    every = [total - 1 - i for i in range(0, min(total, LAST), STEP)]
    return [every[n - 1] for n in sample(len(every), most, turn)]


def full(top, names, most):
    bad = tried = said = 0
    for turn, scene in enumerate(writers(names)):
        scene.prepare(top)
        scene.writes_all = not os.path.exists(
            os.path.join(scene.good, "cache"))
        for room, r, wrong in in_parallel(lambda n, s=scene: attempt(s, n),
                                          rooms(scene, most, turn)):
            tried += 1
            said += r.code not in (0, None)
            for w in wrong:
                bad += 1
                print(f"FAILED: FAULT_BUDGET={room} penstock "
                      f"{' '.join(scene.args)} ({scene.name}): {w}",
                      file=sys.stderr, flush=True)
    print(f"full disks: {tried} runs, {said} failed as they should, "
          f"{bad} wrong")
    return bad or not said


def limited(scene, kib):
    """A scene with so much address space: its exit code and message."""
    cwd = scene.folder()

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (kib << 10, kib << 10))
    p = subprocess.run([PENSTOCK, *scene.args], cwd=cwd, text=True,
                       capture_output=True, preexec_fn=limit, timeout=120,
                       env={**os.environ, "TMPDIR": cwd,
                            "XDG_CACHE_HOME": f"{cwd}/cache"})
    bad, lacking = scene.left(cwd)
    wrong = []
    if p.returncode < 0 or p.returncode in (127, 255):
        # the loader of programs may have failed: 127
        wrong = [f"exit {p.returncode}: {p.stderr[-300:]}"] \
            if p.returncode != 127 else []
    elif bad or temporaries(cwd) or (not p.returncode and lacking):
        wrong = [f"exit {p.returncode}: left {bad}, {temporaries(cwd)}, "
                 f"without {lacking}"]
    shutil.rmtree(cwd, ignore_errors=True)
    return kib, p.returncode, wrong


def memory(top, most):
    bad = tried = said = 0
    for turn, (name, *args) in enumerate((
            ("memory_h5ad", "x.h5ad", "samples=2000", "genes=500",
             "format.threads=1"),
            ("memory_gzip", "x.h5ad", "samples=2000", "genes=500",
             "format.threads=1", "format.compression=gzip"),
            ("memory_hdf5", "x.h5", "samples=2000", "shape=500"))):
        scene = Scene(name, "gen", *args).prepare(top)
        every = range(50000, 80000, 128)
        for kib, code, wrong in in_parallel(
                lambda n, s=scene: limited(s, n),
                [every[n - 1] for n in sample(len(every), most, turn)]):
            tried += 1
            said += code == 1
            for w in wrong:
                bad += 1
                print(f"FAILED: ulimit -v {kib}; penstock "
                      f"{' '.join(scene.args)}: {w}", file=sys.stderr,
                      flush=True)
    print(f"little memory: {tried} runs, {said} failed as they should, "
          f"{bad} wrong")
    return bad or not said


def output():
    """Standard output cannot be written."""
    bad = 0
    for args in (["formats"], ["formats", "--json"], ["config", "resnet50_a100"],
                 ["explain", "P101"], ["--help"]):
        with open("/dev/full", "w", encoding="utf-8") as out:
            p = subprocess.run([PENSTOCK, *args], stdout=out, text=True,
                               stderr=subprocess.PIPE, check=False)
        if not p.returncode or "standard output" not in p.stderr:
            bad += 1
            print(f"FAILED: penstock {' '.join(args)} >/dev/full: exit "
                  f"{p.returncode}: {p.stderr}", file=sys.stderr)
    return bad


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--most", type=int, default=2)
    p.add_argument("--all", action="store_true")
    p.add_argument("scene", nargs="*")
    a = p.parse_args()
    most = None if a.all else a.most
    top = tempfile.mkdtemp(prefix="pen-full.")
    try:
        inputs(top)
        bad = full(top, a.scene, most) or output()
        bad = memory(top, most and 8 * most) or bad
    finally:
        shutil.rmtree(top, ignore_errors=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
