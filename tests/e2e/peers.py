#!/usr/bin/python3
"""Experiments in which other loaders take part: what every variant delivered
against NumPy, variants that are wrong, Pythons without PyTorch, interrupts, and
the page. No time is looked at."""
import atexit
import glob
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
PYTHON = "/usr/bin/python3"
try:
    import numpy as np
    import torch
    TORCH = torch.__version__
    del torch
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
# the address sanitizer has to be loaded first, and Python is not made with it
OWN = not os.environ.get("SANITIZE")


# Importing PyTorch takes longer than any of the runs. So it is done once, by
# a process that forks for each Python the command starts, with its files.
SERVER = """
import os, signal, socket, sys
import numpy, torch, torch.utils.data
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("ready", flush=True)
while True:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    c, _ = s.accept()
    said, fds, *_ = socket.recv_fds(c, 1 << 20, 3)
    while not said.endswith(b"\\0"):
        said += c.recv(1 << 20)
    if not os.fork():
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        s.close()
        for i, fd in enumerate(fds):
            os.dup2(fd, i)
            os.close(fd)
        where, tmp, code = said[:-1].decode().split("\\0", 2)
        os.environ["TMPDIR"] = tmp
        os.chdir(where)
        exec(compile(code, "peers.py", "exec"), {"__name__": "__main__"})
        os._exit(0)
    for fd in fds:
        os.close(fd)
    c.close()
"""
CLIENT = """#!{python} -S
import os, socket, sys
c = socket.socket(socket.AF_UNIX)
c.connect({where!r})
text = "\\0".join((os.getcwd(), os.environ["TMPDIR"], sys.argv[2])) + "\\0"
socket.send_fds(c, [b"\\0"[:0] + text[:1].encode()], [0, 1, 2])
c.sendall(text[1:].encode())
c.recv(1)
"""


def served():
    """A Python that has PyTorch imported already."""
    if not hasattr(served, "path"):
        folder = tempfile.mkdtemp(prefix="pen-e2e.")
        server = subprocess.Popen([PYTHON, "-c", SERVER, f"{folder}/s"],
                                  stdout=subprocess.PIPE)
        atexit.register(shutil.rmtree, folder, True)
        atexit.register(server.kill)
        server.stdout.readline()
        served.path = f"{folder}/python"
        with open(served.path, "w", encoding="utf-8") as f:
            f.write(CLIENT.format(python=PYTHON, where=f"{folder}/s"))
        os.chmod(served.path, stat.S_IRWXU)
    return served.path


def run(tmp, *args, code=0, **env):
    if "--python" not in args and not env:
        args = [*args, "--python", served()]
    p = subprocess.run([PENSTOCK, "bench", *args], cwd=tmp, text=True,
                       capture_output=True, timeout=600,
                       stdin=subprocess.DEVNULL,
                       env=dict(os.environ, TMPDIR=tmp, **env))
    check(p.returncode == code, f"{' '.join(args)}: exit {p.returncode}, not "
          f"{code}: {p.stderr.strip()[-300:]} {p.stdout[-300:]}")
    check(not glob.glob(f"{tmp}/penstock-bench.*"), "data is left behind")
    return p


def rows(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def made(i, k):
    """What the data that is made has at a place, said once more."""
    m = (1 << 64) - 1
    if not k:
        return i % 4096
    z = (i * 0x9e3779b97f4a7c15 + k) & m
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & m
    z = (z ^ z >> 27) * 0x94d049bb133111eb & m
    return (z ^ z >> 31) & 3


def variants(got):
    return sorted({r["arm"] for r in got})


def expect(got, nrows, total, names, name):
    check(variants(got) == sorted(names), f"{name}: variants {variants(got)}")
    for r in got:
        check(not r["wrong"] and r["n_samples"] == nrows and
              r["content_sum"] == str(total),
              f"{name}: {r['arm']}: {r['n_samples']} {r['content_sum']}, not "
              f"{nrows} {total}")
        check(r["seconds"] > 0 and r["experiment"] == name, f"{name}: row")


def own(*names):
    return [n for n in names if OWN or "from Python" not in n and
            n != "TensorStore"]


def test_iterate(tmp):
    args = ["iterate", "--rows", "1000", "--columns", "16", "--batch", "64",
            "--workers", "0,1", "--repeats", "2", "--shuffle"]
    p = run(tmp, *args)
    n = 1000 // 64 * 64
    total = sum(made(i, k) for i in range(n) for k in range(16))
    names = own("penstock", "penstock from Python", "DataLoader",
                "DataLoader batched", "DataLoader mapping", "slicing")
    got = rows(f"{tmp}/iterate.jsonl")
    expect(got, n, total, names, "iterate")
    check(len(got) == 2 * (len(names) + 3), f"{len(got)} rows")
    half = len(got) // 2
    check([r["repeat"] for r in got] == [1] * half + [2] * half, "in turns")
    check("samples/s" in p.stdout and "rows 960" in p.stdout, p.stdout)
    check("no conclusion" in p.stdout and "times" not in p.stdout, p.stdout)
    # and nothing is run twice
    q = run(tmp, *args, "--resume")
    check(len(rows(f"{tmp}/iterate.jsonl")) == len(got), "--resume")
    check("rows 960" in q.stdout, "--resume has no table")


def test_steps(tmp):
    total = sum(made(i, k) for i in range(24) for k in range(8))
    few = ["--batch", "2", "--columns", "8", "--repeats", "1"]
    run(tmp, "overlap", "--steps", "12", "--load", "1", "--compute", "1", *few)
    got = rows(f"{tmp}/overlap.jsonl")
    expect(got, 24, total, ["penstock, overlapped", "penstock, not overlapped",
                            "DataLoader, overlapped",
                            "DataLoader, not overlapped"], "overlap")
    check(len(got) == 8 and len({r["load"] for r in got}) == 2, "two loads")
    run(tmp, "workers", "--steps", "12", "--load", "1", "--compute", "0,1",
        "--workers", "0,2", *few)
    got = rows(f"{tmp}/workers.jsonl")
    expect(got, 24, total, ["penstock", "DataLoader"], "workers")
    check(len(got) == 8 and all(r["wait_s"] <= r["step_s"] for r in got),
          "workers")
    total = 2 * sum(made(i, k) for i in range(16) for k in range(8))
    run(tmp, "headspace", "--steps", "16", "--compute", "0", "--workers", "1",
        *few)
    got = rows(f"{tmp}/headspace.jsonl")
    cached = [r for r in got if "cached" in r["arm"]]
    expect(cached, 32, total, ["penstock, cached", "DataLoader, cached"],
           "headspace")
    total = sum(made(i, k) for i in range(32) for k in range(8))
    expect([r for r in got if r not in cached], 32, total,
           ["penstock", "DataLoader"], "headspace")


def test_given(tmp):
    """Data of any type: its words are added up."""
    x = np.random.default_rng(3).standard_normal((50, 6))
    np.save(f"{tmp}/x.npy", x)
    total = int(x[:48].view("u4").sum(dtype="u8"))
    run(tmp, "overlap", "x.npy", "--compute", "0", "--batch", "8", "--repeats",
        "1")
    got = rows(f"{tmp}/overlap.jsonl")
    check(len(got) == 4 and got[0]["path"] == f"{tmp}/x.npy", "rows")
    for r in got:
        check(r["n_samples"] == 48 and r["content_sum"] == str(total) and
              not r["wrong"], f"{r['arm']}: {r['content_sum']}, not {total}")
    os.mkdir(f"{tmp}/d")
    np.save(f"{tmp}/d/x.npy", x)
    p = run(tmp, "headspace", "d", "--compute", "0", "--batch", "4",
            "--steps", "8", "--repeats", "1", "-o", "h.jsonl")
    check("Without PyTorch" in p.stdout, p.stdout)
    check(variants(rows(f"{tmp}/h.jsonl")) == ["penstock", "penstock, cached"],
          "a directory is not PyTorch's")


def test_others(tmp):
    run(tmp, "prealloc", "--length", "3,5", "--block", "1000", "--repeats", "1")
    names = own("penstock, fresh", "penstock, reused", "torch.cat",
                "np.concatenate", "preallocated", "reused", "TensorStore")
    got = rows(f"{tmp}/prealloc.jsonl")
    for n in (3, 5):
        expect([r for r in got if r["length"] == n], n,
               n * 249 + n * (n - 1) // 2, names, "prealloc")
    # of this one the command adds up all processes, so they have to be its
    run(tmp, "memory", "--rows", "512", "--columns", "8", "--batch", "64",
        "--workers", "2", "--repeats", "1", "--python", PYTHON)
    got = rows(f"{tmp}/memory.jsonl")
    expect(got, 512, sum(made(i, k) for i in range(512) for k in range(8)),
           own("penstock", "penstock from Python", "DataLoader array",
               "DataLoader mapped", "DataLoader list"), "memory")
    for r in got:
        check(1e5 < r["pss_peak_bytes"] < 8e9, f"{r['arm']}: memory")


def script(tmp, text):
    path = f"{tmp}/python"
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, stat.S_IRWXU)
    return path


def test_warm_up(tmp):
    """Every variant runs once before its repeats, and leaves no row of it; not
    where there is one run alone."""
    for repeats, runs in ((1, 1), (2, 3)):
        fake = script(tmp, f'tee {tmp}/asked{repeats} | "{served()}" "$@"\n')
        run(tmp, "iterate", "--rows", "256", "--columns", "4", "--batch",
            "64", "--workers", "0", "--repeats", str(repeats), "--python",
            fake, "-o", f"{repeats}.jsonl")
        got = [r for r in rows(f"{tmp}/{repeats}.jsonl")
               if r["language"] == "Python"]
        variants = len({r["arm"] for r in got})
        check(len(got) == variants * repeats, f"{len(got)} rows")
        with open(f"{tmp}/asked{repeats}", encoding="utf-8") as f:
            n = len(re.findall(r'"what": *"steps"', f.read()))
        check(n == variants * runs, f"{n} runs of {variants} variants, not {runs} each")


def test_wrong(tmp):
    """A variant that leaves a sample out, or adds to another sum, is named and
    has no figure."""
    for n, change in enumerate(('s/"samples": [0-9]*/"samples": 255/',
                                's/"content_sum": "./"content_sum": "9/')):
        fake = script(tmp, f'"{served()}" "$@" | sed -u \'{change}\'\n')
        p = run(tmp, "iterate", "--rows", "256", "--columns", "4", "--batch",
                "64", "--workers", "0", "--repeats", "1", "--python", fake,
                "-o", f"{n}.jsonl", code=3)
        got = rows(f"{tmp}/{n}.jsonl")
        for r in got:
            python = r["language"] == "Python"
            check(r["wrong"] == python, f"{r['arm']}: wrong {r['wrong']}")
            check(("samples_per_s" in r) != python and
                  ("seconds" in r) != python, f"{r['arm']}: has a rate")
        check(p.stdout.count("WRONG") == len(got) - 1, p.stdout)
    run(tmp, "iterate", "--rows", "256", "--batch", "64", "--python",
        script(tmp, "echo nonsense\n"), "-o", "n.jsonl")
    subprocess.run([PENSTOCK, "report", "0.jsonl"], cwd=tmp, check=True,
                   capture_output=True)
    with open(f"{tmp}/report.html", encoding="utf-8") as f:
        html = f.read()
    check("WRONG" in html and "did not deliver the expected" in html, "the page hides it")


def test_without(tmp):
    """No PyTorch, or no Python: said, and the rest is run."""
    os.mkdir(f"{tmp}/no")
    with open(f"{tmp}/no/torch.py", "w", encoding="utf-8") as f:
        f.write("raise ImportError('not here')\n")
    for more, env in (((), {"PYTHONPATH": f"{tmp}/no"}),
                      (("--python", f"{tmp}/none"), {})):
        p = run(tmp, "workers", "--steps", "4", "--load", "0", "--compute",
                "0", "--workers", "1", *more, **env)
        check("Without variants in Python" in p.stdout, p.stdout)
        check(variants(rows(f"{tmp}/workers.jsonl")) == ["penstock"], "variants")
    p = run(tmp, "workers", "--steps", "4", "--load", "0", "--compute", "0",
            "--workers", "1", "--json", "--python", f"{tmp}/none")
    check(all(json.loads(x)["arm"] == "penstock"
              for x in p.stdout.splitlines()), "--json has rows only")


def test_usage(tmp):
    for args in (["workers", "x.npy"], ["overlap", "batch_size=3"],
                 ["overlap", "--load", "x"], ["overlap", "--workers", "0"],
                 ["iterate", "--batch", "1000000"], ["iterate", "--rows", "3"],
                 ["prealloc", "--block", "3"], ["memory", "--rows", "1"],
                 ["workers", "--workers", "1,,2"]):
        p = run(tmp, *args, code=2)
        check(len(p.stderr.splitlines()) == 1, f"{args}: {p.stderr}")
    check(not glob.glob(f"{tmp}/*.jsonl"), "an empty file of rows")


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def below(pid):
    out = children(pid)
    for p in list(out):
        out += below(p)
    return out


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_interrupt(tmp):
    """Ctrl-C while workers of a DataLoader run: nothing stays."""
    p = subprocess.Popen(
        [PENSTOCK, "bench", "workers", "--steps", "100000", "--load", "1",
         "--compute", "0", "--workers", "2", "--repeats", "1", "-o", "i.jsonl",
         "prefetch=4"],
        cwd=tmp, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=dict(os.environ, TMPDIR=tmp))
    first = time.monotonic()
    while not below(p.pid) and time.monotonic() - first < 600:
        os.sched_yield()
    all_of = below(p.pid)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=600)
    check(p.returncode == 130, f"exit {p.returncode}")
    for pid in all_of:
        while not gone(pid) and time.monotonic() - first < 600:
            os.sched_yield()
        check(gone(pid), "a process is left")
    check(not glob.glob(f"{tmp}/penstock-bench.*"), "data is left behind")


def test_report(tmp):
    few = ["--batch", "2", "--columns", "8", "--repeats", "1", "--steps", "8"]
    run(tmp, "workers", "--load", "0", "--compute", "0", *few, "--workers", "1")
    run(tmp, "headspace", "--compute", "0", *few, "--workers", "1", "--repeats",
        "3")
    subprocess.run([PENSTOCK, "report", "workers.jsonl", "headspace.jsonl",
                    "--csv", "all.csv", "-o", "r.html"], cwd=tmp, check=True,
                   capture_output=True)
    with open(f"{tmp}/r.html", encoding="utf-8") as f:
        html = f.read()
    for want in ("Number of workers", "Headroom", "could save ",
                 "<svg", "DataLoader, cached", "right"):
        check(want in html, f"the page has no '{want}'")


main(globals())
