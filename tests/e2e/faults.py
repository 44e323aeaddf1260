#!/usr/bin/python3
"""Every call fails in turn: memory, files, directories, threads, sockets,
io_uring, once and from then on. A command that fails says so by its exit code
and a message that names the object; it leaves nothing torn under a final name
and no temporary file. A command that succeeds has the same result as without
the failure.

    tests/e2e/faults.py [--most N | --all] [--kind KIND] [SCENE...]

--most limits the calls of one kind that fail in a scene (default 1); --all
fails every one. Under the address sanitizer, a third of the kinds, without
memory: its allocator does not fail."""
import argparse
import errno
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "faults"))
from faults import (ASAN, ERRNO, KINDS, PENSTOCK, in_parallel, run,  # noqa: E402
                    sample)
from scenes import inputs, scenes  # noqa: E402

# Failures that the caller must not notice.
UNSEEN = (("read", "short", 0), ("write", "short", 0), ("uring", "short", 0),
          ("read", "once", errno.EINTR), ("write", "once", errno.EINTR))


def cases(scene, turn, most, kinds):
    """(kind, n, how, errno) of a scene."""
    for at, kind in enumerate(KINDS[1:]):
        if kind not in kinds:
            continue
        if ASAN and (kind in ("malloc", "mmap") or (at + turn) % 3):
            continue    # its own allocator; a third of the others
        if scene.ranks > 1 and kind != "socket":
            continue    # most calls are those of MPI
        sys_ = ERRNO.get(kind, errno.EIO)
        count = scene.counts[kind]
        for i, how in enumerate(("once", "on")):
            for n in sample(count, most, turn + i):
                yield kind, n, how, sys_
    for kind, how, sys_ in UNSEEN:
        if kind in kinds and scene.ranks == 1 and not ASAN:
            for n in sample(scene.counts[kind], most, turn + 2):
                yield kind, n, how, sys_


def unseen(kind, how, sys_):
    return (kind, how, sys_) in UNSEEN


def attempt(scene, case):
    """Runs a scene with one failure: the case, its exit code, what is wrong."""
    kind, n, how, sys_ = case
    cwd = scene.folder()
    r = run(scene.args, cwd, scene.ranks, FAULT=f"{kind} {n} {how} {sys_}")
    # a directory cannot be removed without opening and reading it
    wrong = scene.judge(r, cwd, may_leave=kind == "unlink" or
                        (how == "on" and kind in ("open", "read")))
    if r.counts.fired and not wrong:
        if unseen(kind, how, sys_) and r.code:
            wrong = [f"exit {r.code}: {r.err.strip()[-300:]}"]
        if kind == "fsync" and not r.code:
            wrong = ["exit 0, though a sync failed"]
    shutil.rmtree(cwd, ignore_errors=True)
    return case, r, wrong


def try_scene(scene, turn, most, kinds, table):
    bad = 0
    for case, r, wrong in in_parallel(lambda c: attempt(scene, c),
                                      cases(scene, turn, most, kinds)):
        row = table.setdefault((scene.name, case[0]), [0, 0, 0, 0])
        row[0 if not r.counts.fired else 1 if r.code else 2] += 1
        for w in wrong:
            row[3] += 1
            bad += 1
            kind, n, how, sys_ = case
            print(f"FAILED: FAULT='{kind} {n} {how} {sys_}' penstock "
                  f"{' '.join(scene.args)} ({scene.name}): {w}",
                  file=sys.stderr, flush=True)
    return bad


def show(table):
    """kind x (failed with an exit code, same result, wrong)"""
    print(f"{'call':10}{'not reached':>12}{'exit code':>12}{'same result':>12}"
          f"{'wrong':>8}")
    for kind in KINDS[1:]:
        rows = [r for (_, k), r in table.items() if k == kind]
        if rows:
            none, said, same, bad = map(sum, zip(*rows))
            print(f"{kind:10}{none:12}{said:12}{same:12}{bad:8}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--most", type=int, default=1)
    p.add_argument("--all", action="store_true")
    p.add_argument("--kind", action="append")
    p.add_argument("--keep", action="store_true")
    p.add_argument("scene", nargs="*")
    a = p.parse_args()
    top = tempfile.mkdtemp(prefix="pen-faults.")
    table, bad, tried = {}, 0, scenes(a.scene)
    try:
        inputs(top)
        for turn, scene in enumerate(tried):
            scene.prepare(top)
            bad += try_scene(scene, turn, None if a.all else a.most,
                             a.kind or KINDS, table)
    finally:
        if not a.keep:
            shutil.rmtree(top, ignore_errors=True)
    show(table)
    total = sum(sum(r[:3]) for r in table.values())
    print(f"{total} runs of {PENSTOCK} in {len(tried)} scenes, {bad} wrong")
    if not total or not any(r[1] for r in table.values()):
        sys.exit("nothing failed: the shim is not loaded")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
