#!/usr/bin/python3
"""The shim sees every call that the commands make: strace sees the same, by
kind and file. What it cannot see is listed here, with the reason.

    tests/e2e/faults_seen.py [SCENE...]"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "faults"))
from faults import PENSTOCK, SHIM  # noqa: E402
from scenes import inputs, scenes  # noqa: E402

CALLS = {
    "open": "open openat creat memfd_create",
    "stat": "stat fstat lstat newfstatat statx statfs fstatfs access "
            "faccessat faccessat2",     # readlink: realpath() is seen
    "read": "read pread64 readv preadv getdents64",
    "write": "write pwrite64 writev pwritev",
    "fsync": "fsync fdatasync syncfs",
    "rename": "rename renameat renameat2",
    "size": "truncate ftruncate fallocate",
    "close": "close",
    "mkdir": "mkdir mkdirat",
    "unlink": "unlink unlinkat rmdir",
    "socket": "socket socketpair connect bind listen accept accept4 sendto "
              "recvfrom sendmsg recvmsg",
}
KIND = {call: kind for kind, calls in CALLS.items() for call in calls.split()}
# Scenes that together use every kind of call.
USED = ("load_uring", "load_h5ad", "load_tier", "gen_npy", "gen_hdf5",
        "gen_h5ad", "gen_zarr", "convert_packed", "run", "checkpoint",
        "report", "sweep", "ddict_save", "verify", "vocab")
# (kinds, path, reason) of calls from within libc and the loader.
UNSEEN = (
    ("write stat", r"^(pipe|/dev/(null|pts|tty))",
     "stdio writes stdout and stderr from within libc"),
    ("open stat read close", r"^/(proc|sys|etc|usr|lib|dev)(/|$)",
     "libc reads these from within: number of CPUs, locale, libraries"),
    ("stat read close", r"/$",
     "opendir() and readdir() are seen; what they call is not"),
    ("open read write close stat socket unlink", r"^(anon_inode|socket|pipe)",
     "libraries create these from within: event counters, io_uring"),
    ("open close stat unlink", r"^/dev/shm/",
     "shm_open() and shm_unlink() are seen; their path is not"),
    ("open", r"/penstock-ddict$", "memfd_create() is seen, without a path"),
    ("open", r"/stderr$", "posix_spawn() opens it for the new process"),
    ("open read stat close", r"\.so[.0-9]*$", "the loader opens libraries"),
)


def full(folder, path):
    path = re.sub(r"^(\./)+", "", path)
    return path if path.startswith("/") else f"{folder}/{path}"


def path_of(call, args):
    """The file of a call: its descriptor's, or the path it names."""
    m = re.match(r"AT_FDCWD<(.*?)>, \"(.*?)\"", args) or \
        re.match(r"\d+<(.*?)>, \"(.*?)\"", args)
    if m and call.endswith(("at", "at2", "statx")) and m[2]:
        return full(m[1], m[2])
    m = re.match(r"-?\d+<(.*?)>(\(deleted\))?(, |\)| <|$)", args)
    if m:
        return m[1]
    m = re.match(r"\"(.*?)\"", args)
    return full(os.getcwd(), m[1]) if m else ""


def clean(path):
    """Directories end in a slash, so that they are recognised."""
    path = os.path.normpath(path.replace(" (deleted)", "")) if path else ""
    path = re.sub(r"-\w{6}\.tmp$", "-XXXXXX.tmp", path)    # of mkostemps()
    return path + "/" if os.path.isdir(path) else path


def traced(path):
    """Counter of (kind, path) from strace, between start and end of the
    shim."""
    counts, on = collections.Counter(), set()
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            m = re.match(r"(\d+) +(\w+)\((.*)", line)
            if not m:
                continue
            if "/faults-start" in line:
                on.add(True)
            elif "/faults-end" in line:
                on.clear()
            elif on and m[2] in KIND and not path_of(m[2], m[3]).endswith(
                    (".log", ".state")):    # the shim's own
                counts[KIND[m[2]], clean(path_of(m[2], m[3]))] += 1
    return counts


def logged(path):
    counts = collections.Counter()
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            kind, _, name = line.rstrip("\n").partition(" ")
            counts[kind, clean(name)] += 1
    return counts


def reason(kind, path):
    for kinds, pattern, why in UNSEEN:
        if kind in kinds.split() and re.search(pattern, path):
            return why
    return None


def compare(scene, totals):
    cwd = scene.folder()
    state = cwd + ".state"
    with open(state, "wb") as f:
        f.write(bytes(4096))
    os.chdir(cwd)
    subprocess.run(
        ["strace", "-f", "-y", "-qq", "-s", "4096", "-o", cwd + ".strace",
         "-e", "trace=" + ",".join("?" + c for c in KIND),
         "-E", f"LD_PRELOAD={SHIM}", "-E", f"FAULT_STATE={state}",
         "-E", f"FAULT_LOG={cwd}.log", "-E", f"XDG_CACHE_HOME={cwd}/cache",
         PENSTOCK, *scene.args], check=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    seen, there = logged(cwd + ".log"), traced(cwd + ".strace")
    bad = []
    for (kind, path), n in sorted(there.items()):
        lacking = n - seen[kind, path]
        totals[kind][0] += n
        why = reason(kind, path) if lacking > 0 else None
        if lacking > 0 and not why:
            bad.append(f"{kind} {path}: strace sees {n}, the shim "
                       f"{seen[kind, path]}")
        elif lacking > 0:
            totals[kind][1] += lacking
    return bad


def main():
    p = argparse.ArgumentParser()
    p.add_argument("scene", nargs="*")
    a = p.parse_args()
    top = os.path.realpath(tempfile.mkdtemp(prefix="pen-seen."))
    totals = collections.defaultdict(lambda: [0, 0])
    bad = 0
    try:
        inputs(top)
        for scene in scenes(a.scene or USED):
            if not a.scene and scene.name not in USED:
                continue
            scene.prepare(top)
            for b in compare(scene, totals):
                bad += 1
                print(f"FAILED: {scene.name}: {b}", file=sys.stderr)
    finally:
        os.chdir("/")
        shutil.rmtree(top, ignore_errors=True)
    for kind, (n, unseen) in sorted(totals.items()):
        print(f"{kind:8}{n:8} calls, {unseen:6} from within libc")
    if not totals["write"][0] or not totals["open"][0]:
        sys.exit("strace saw nothing")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
