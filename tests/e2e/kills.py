#!/usr/bin/python3
"""Kills and power loss. Every writer is killed (SIGKILL) at random calls:
nothing torn has a final name, and the next run succeeds and cleans up. Then a
recorded run is replayed up to what was synced only: what a command that syncs
reported as written is there, whole; and nothing gets a final name before its
bytes are synced.

    tests/e2e/kills.py [--kills N] [--seed N] [SCENE...]

The moments are calls that the shim counts, drawn with a seed: between two of
them, nothing changes on the disk."""
import argparse
import os
import random
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "faults"))
from faults import in_parallel, run, temporary  # noqa: E402
from replay import Disk  # noqa: E402
from scenes import inputs, scenes  # noqa: E402


def wrong_with(scene, what):
    print(f"FAILED: penstock {' '.join(scene.args)} ({scene.name}): {what}",
          file=sys.stderr, flush=True)


def again(scene):
    """The command that is run after a kill."""
    force = scene.args[0] in ("gen", "convert") and "--force" not in scene.args
    return (*scene.args, "--force") if force else scene.args


def kill(scene, n):
    """Kills it at call n, and runs it again; what is wrong."""
    cwd = scene.folder()
    r = run(scene.args, cwd, FAULT=f"any {n} kill 0")
    killed = r.counts.fired > 0
    wrong = [f"killed at call {n}: {w}"
             for w in scene.judge(r, cwd, killed=killed)]
    if not wrong:
        # saving the next index cleans the cache; the next run may need none
        shutil.rmtree(os.path.join(cwd, "cache"), ignore_errors=True)
        r = run(again(scene), cwd)
        wrong = [f"run again after a kill at call {n}: {w}"
                 for w in ([r.err.strip()[-300:]] if r.code else
                           scene.judge(r, cwd))]
    shutil.rmtree(cwd, ignore_errors=True)
    return killed, wrong


def kills(scene, count, rng):
    bad = killed = 0
    moments = [rng.randint(1, scene.counts["any"]) for _ in range(count)]
    for was, wrong in in_parallel(lambda n: kill(scene, n), moments):
        killed += was
        bad += len(wrong)
        for w in wrong:
            wrong_with(scene, w)
    return killed, bad


def power(scene):
    """Replays a run up to what was synced; what is wrong."""
    cwd = scene.folder()
    trace = cwd + ".trace"
    disk = Disk(os.path.realpath(cwd))
    r = run(scene.args, cwd, FAULT_TRACE=trace)
    with open(trace, "rb") as f:
        disk.replay(f.read())
    wrong = [f"power loss: {n} has its final name before its bytes are synced"
             for n in disk.early if not temporary(n) and
             not n.startswith(("cache/", *scene.unsynced))]
    if r.code:
        wrong.append(f"exit {r.code}: {r.err}")
    there = disk.durable()
    for name in scene.files:
        with open(os.path.join(cwd, name), "rb") as f:
            whole = f.read()
        if not name.startswith(tuple(scene.unsynced)) and \
                there.get(name) != whole:
            wrong.append(f"power loss: {name}: " + (
                "is not there" if name not in there else
                f"{len(there[name])} of {len(whole)} bytes, or other ones"))
    os.unlink(trace)
    shutil.rmtree(cwd, ignore_errors=True)
    return wrong


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kills", type=int, default=2)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("scene", nargs="*")
    a = p.parse_args()
    rng = random.Random(a.seed)
    top = tempfile.mkdtemp(prefix="pen-kills.")
    bad = killed = replayed = 0
    try:
        inputs(top)
        for scene in scenes(a.scene):
            if not scene.writes:
                continue
            scene.prepare(top)
            some, wrong = kills(scene, a.kills, rng)
            killed, bad = killed + some, bad + wrong
            for w in power(scene):
                bad += 1
                wrong_with(scene, w)
            replayed += 1
            print(f"{scene.name}: {some} kills, {wrong} wrong", flush=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(f"{killed} kills, {replayed} power losses, {bad} wrong")
    sys.exit(1 if bad or not killed else 0)


if __name__ == "__main__":
    main()
