"""Runs commands with failing calls (the shim, tests/faults/shim.c) and judges
what they leave behind. Used by tests/e2e/faults.py, disk_full.py, kills.py."""
import errno
import filecmp
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

SOURCE = os.environ.get("SOURCE") or os.path.abspath(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.environ.get("BUILD") or os.path.join(SOURCE, "build/dev")
PENSTOCK = os.environ.get("PENSTOCK") or os.path.join(BUILD,
                                                      "src/cli/penstock")
SHIM = os.path.join(BUILD, "tests/libfaults.so")
ASAN = "address" in os.environ.get("SANITIZE", "")
BAD_MEMORY = 97     # exit code of a sanitizer's report

KINDS = ("any", "malloc", "mmap", "open", "stat", "read", "write", "fsync",
         "rename", "size", "close", "mkdir", "unlink", "uring", "socket",
         "thread")
ERRNO = {"malloc": errno.ENOMEM, "mmap": errno.ENOMEM, "open": errno.EMFILE,
         "size": errno.ENOSPC, "mkdir": errno.ENOSPC, "thread": errno.EAGAIN,
         "socket": errno.ECONNRESET, "any": 0}
STATE = struct.Struct(f"{len(KINDS)}Q2Q")
TEMPORARY = re.compile(r"(\.tmp|\.old|\.rows)$")
# An error names its object, says what is wrong and ends with a number.
MESSAGE = re.compile(r"^penstock: .+: .+ \[P\d+\]$", re.M)


class Counts(dict):
    """Calls of each kind, with .fired and .written."""
    def __init__(self, data):
        values = STATE.unpack(data)
        super().__init__(zip(KINDS, values))
        self.fired, self.written = values[len(KINDS):]


class Result:
    def __init__(self, code, out, err, counts):
        self.code, self.out, self.err, self.counts = code, out, err, counts


def preload():
    libs = [SHIM]
    if ASAN:
        libs.insert(0, subprocess.run(
            ["gcc", "-print-file-name=libasan.so"], check=True, text=True,
            capture_output=True).stdout.strip())
    return ":".join(libs)


LIBS = None


def start(args, cwd, state, ranks=1, **faults):
    """Starts a command under the shim, in a session of its own."""
    global LIBS
    LIBS = LIBS or preload()
    with open(state, "wb") as f:
        f.write(bytes(4096))
    env = {**os.environ, "FAULT_STATE": state, "LD_PRELOAD": LIBS,
           "XDG_CACHE_HOME": os.path.join(cwd, "cache"),
           "TMPDIR": cwd, "NO_COLOR": "1",
           "ASAN_OPTIONS": f"exitcode={BAD_MEMORY}:allocator_may_return_null=1",
           **{k: str(v) for k, v in faults.items() if v is not None}}
    args = [a.replace("@", os.path.basename(cwd)) for a in args]
    command = [PENSTOCK, *args]
    if ranks > 1:   # the launcher itself does not fail
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n",
                   str(ranks), "env", f"LD_PRELOAD={LIBS}", *command]
        del env["LD_PRELOAD"]
        # MPI keeps memory until the end; it is not ours to free
        env["ASAN_OPTIONS"] += ":detect_leaks=0"
    return subprocess.Popen(command, cwd=cwd, env=env, text=True,
                            errors="replace", stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True)


def run(args, cwd, ranks=1, timeout=120, **faults):
    """Runs a command under the shim; code None: it did not end."""
    state = cwd + ".state"
    p = start(args, cwd, state, ranks, **faults)
    code = None
    try:
        out, err = p.communicate(timeout=timeout)
        code = p.returncode
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
    with open(state, "rb") as f:
        counts = Counts(f.read(STATE.size))
    os.unlink(state)
    return Result(code, out, err, counts)


def files(top):
    """Paths of all files below, without the cache of indexes."""
    found = []
    for folder, dirs, names in os.walk(top):
        if folder == top and "cache" in dirs:
            dirs.remove("cache")
        found += [os.path.relpath(os.path.join(folder, n), top) for n in names]
    return sorted(found)


def temporaries(top):
    found = []
    for folder, dirs, names in os.walk(top):
        found += [os.path.relpath(os.path.join(folder, n), top)
                  for n in dirs + names if TEMPORARY.search(n)]
    return found


def torn(path):
    """A document with figures of its own differs in every run; is it whole?"""
    if path.endswith((".jsonl", ".log")):
        return False    # appended to; readers skip an incomplete last line
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    if path.endswith((".json", ".pfw")):
        try:
            json.loads(text)
        except ValueError:
            return True
        return False
    return not text.endswith("</html>\n" if path.endswith(".html") else "\n")


def same_cells(a, b):
    """Without memory to compress with, a writer of cells stores them plainly:
    other bytes, the same content."""
    if not a.endswith((".pen", ".zarr", ".h5ad")):
        return False
    for path in a, b:
        out = path + ".check.h5ad"
        p = subprocess.run([PENSTOCK, "convert", path, out, "--force"],
                           capture_output=True, check=False, timeout=120)
        if p.returncode:
            return False
    same = filecmp.cmp(a + ".check.h5ad", b + ".check.h5ad", shallow=False)
    os.unlink(a + ".check.h5ad")
    return same


class Scene:
    """A command, its files (equal in every run, or `varies`: documents with
    times), and the figures of its JSON output that are equal in every run."""
    def __init__(self, name, *args, before=(), varies=(), figures=(),
                 writes=True, unsynced=(), ranks=1):
        self.name, self.args, self.ranks = name, args, ranks
        self.before = before        # commands that prepare its folder
        self.varies, self.figures = varies, figures
        self.writes = writes
        self.unsynced = unsynced    # files that are not promised to be durable

    def prepare(self, top):
        """Runs it without faults: what has to be there, and the counts."""
        self.top = os.path.join(top, self.name)
        os.mkdir(self.top)
        self.fresh = os.path.join(self.top, "fresh")
        os.mkdir(self.fresh)
        for args in self.before:
            r = run(args, self.fresh)
            if r.code:
                raise OSError(f"{self.name}: {args}: {r.err}")
        shutil.rmtree(os.path.join(self.fresh, "cache"), ignore_errors=True)
        self.good = self.folder()
        r = run(self.args, self.good, self.ranks)
        if r.code:
            raise OSError(f"{self.name}: exit {r.code}: {r.err}")
        self.counts, self.out = r.counts, self.told(r.out)
        self.files = files(self.good)
        return self

    def folder(self):
        cwd = tempfile.mkdtemp(dir=self.top)
        shutil.copytree(self.fresh, cwd, dirs_exist_ok=True)
        return cwd

    def told(self, out):
        if not self.figures:
            return None
        try:
            doc = json.loads(out)
        except ValueError:
            return "not JSON"
        return [doc[k] for k in self.figures]

    def differing(self, cwd, name):
        if any(re.search(v, name) for v in self.varies):
            return torn(os.path.join(cwd, name))
        return not filecmp.cmp(os.path.join(cwd, name),
                               os.path.join(self.good, name), shallow=False)

    def old(self, cwd, name):
        """Is the file as it was before the command?"""
        fresh = os.path.join(self.fresh, name)
        return os.path.exists(fresh) and filecmp.cmp(
            os.path.join(cwd, name), fresh, shallow=False)

    def left(self, cwd):
        """What is torn under a final name, and which files are missing."""
        now = [n for n in files(cwd) if not temporary(n)]
        bad = [n for n in now if n in self.files and
               self.differing(cwd, n) and not self.old(cwd, n)]
        tops = {n.split(os.sep)[0] for n in bad}
        if tops and all(same_cells(os.path.join(cwd, t),
                                   os.path.join(self.good, t)) for t in tops):
            bad = []
        bad += [n for n in now if n not in self.files and
                not self.old(cwd, n)]
        lacking = [n for n in self.files if n not in now or
                   (self.old(cwd, n) and self.differing(cwd, n))]
        return bad, lacking

    def judge(self, r, cwd, may_leave=False, killed=False):
        """What is wrong with a run: a list."""
        wrong = []
        if r.code is None:
            return ["does not end"]
        if r.code == BAD_MEMORY or "runtime error:" in r.err:
            return [f"sanitizer: {r.err[:3000]}"]
        if r.code < 0 and not killed:
            return [f"killed by {signal.Signals(-r.code).name}"]
        bad, lacking = self.left(cwd)
        if bad:
            wrong.append(f"torn or unexpected: {bad[:4]}")
        if not r.code:
            if lacking:
                wrong.append(f"exit 0, but without {lacking[:4]}")
            if self.told(r.out) != self.out:
                wrong.append(f"exit 0, but says {self.told(r.out)}")
        elif not killed and not MESSAGE.search(r.err) and \
                not (self.args[0] == "verify" and r.out):
            wrong.append(f"exit {r.code} with the message {r.err[-300:]!r}")
        rest = temporaries(cwd)
        if rest and not may_leave and not killed:
            wrong.append(f"left {rest[:4]}")
        return wrong


def temporary(name):
    return any(TEMPORARY.search(part) for part in name.split(os.sep))


def sample(count, most, turn):
    """At most so many of 1..count, spread evenly; other ones in other turns."""
    if most is None or count <= most:
        return list(range(1, count + 1))
    step = count / most
    return [1 + int((i + turn * 0.618 % 1) * step) for i in range(most)]


def in_parallel(fn, items):
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or 2)) as pool:
        return list(pool.map(fn, items))
