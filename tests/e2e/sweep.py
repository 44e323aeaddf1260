#!/usr/bin/python3
"""sweep and tune: every cell runs as often as asked, goes on after a crash,
and the answer is one of the settings that were tried."""
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]


def run(*args, code=0):
    p = subprocess.run([PENSTOCK, *args], capture_output=True, text=True,
                       timeout=600)
    check(p.returncode == code,
          f"{args}: exit {p.returncode}, not {code}: {p.stderr}{p.stdout}")
    return p.stderr if code else p.stdout


def rows(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def cells(path):
    return sorted((r["setup"], r["repeat"]) for r in rows(path))


def test_load(tmp):
    os.chdir(tmp)
    run("gen", "d", "files=100", "shape=32")
    want = sorted((f"threads={t} batch_size={b}", r) for t in (1, 2)
                  for b in (8, 32, 64) for r in (0, 1))
    out = run("sweep", "d", "threads=1,2", "batch_size=[8,32,64]", "seed=3",
              "--repeats", "2", "-o", "s.jsonl")
    check(cells("s.jsonl") == want, f"cells: {cells('s.jsonl')}")
    best = max(rows("s.jsonl"), key=lambda r: r["samples_per_s"])
    check("no conclusion is drawn" in out and best["samples_per_s"] > 0, out)
    check("threads=2 batch_size=32" in out and "Fastest" not in out, out)
    check(all(r["samples"] == 100 and r["set"]["threads"] in "12"
              for r in rows("s.jsonl")), "rows")
    run("report", "s.jsonl", "-o", "s.html")
    with open("s.html", encoding="utf-8") as f:
        page = f.read()
    check("Best rate by threads" in page and "Best rate by batch_size" in page,
          "curves in the page")
    # more values, and nothing twice
    out = run("sweep", "d", "threads=1,2", "batch_size=[8,32,64]", "seed=3",
        "--repeats", "3", "-o", "s.jsonl", "--resume")
    check(len(rows("s.jsonl")) == 18 and len(set(cells("s.jsonl"))) == 18,
          "resumed")
    check(re.search("Fastest(, equal within noise)?: ", out) and "18 runs" in out, out)
    check(all(r["others"]["seconds"] > 0 for r in rows("s.jsonl")), "others")
    one = json.loads(run("compare", "s.jsonl", "s.jsonl", "--json"))
    check(not any(f["differs"] for c in one["comparisons"]
                  for f in c["figures"]), "a sweep and itself")


def test_fixed(tmp):
    """Runs with other settings beside the grid are other runs."""
    os.chdir(tmp)
    run("gen", "d", "files=40", "shape=8")
    for n, seed in enumerate(("3", "4", "4")):
        out = run("sweep", "d", "threads=1,2", f"seed={seed}", "--repeats",
                  "1", "-o", "s.jsonl", "--resume")
        check(len(rows("s.jsonl")) == (2, 4, 4)[n], "resumed")
        check(out.count("threads=1\n") == 1, out)
    run("report", "s.jsonl", "-o", "s.html")
    with open("s.html", encoding="utf-8") as f:
        check(f.read().count("<p>2 settings, 2 runs.") == 2, "two sweeps")


def test_hostile(tmp):
    """Rows of others are shown as text, whatever they are named."""
    os.chdir(tmp)
    bad = '"><script>alert(1)</script>'
    with open("s.jsonl", "w", encoding="utf-8") as f:
        for v, rate in (("1", 1), ("2", 1e308), ("3", float("inf")),
                        ("4", None)):
            f.write(json.dumps({
                "experiment": "sweep", "path": bad, "host": bad,
                "setup": f"{bad}={v}", "set": {bad: v},
                "samples_per_s": rate}) + "\n")
    run("report", "s.jsonl", "-o", "s.html")
    with open("s.html", encoding="utf-8") as f:
        page = f.read()
    check("<script>alert" not in page and "Best rate by" in page, "markup")
    check(">nan<" not in page and ">inf<" not in page, "no numbers")
    check('"nan' not in page and '"-nan' not in page, "no coordinates")


def test_json(tmp):
    """A row a line, and no others."""
    os.chdir(tmp)
    run("gen", "d", "files=10", "shape=8")
    out = run("sweep", "d", "threads=1,2", "--repeats", "1", "--json")
    got = [json.loads(line) for line in out.splitlines()]
    check(got == rows("sweep.jsonl") and len(got) == 2, out)


def test_fractions(tmp):
    """Values that are no whole numbers keep their digits on the axis."""
    os.chdir(tmp)
    with open("s.jsonl", "w", encoding="utf-8") as f:
        for v in ("0.25", "0.5", "1.5"):
            f.write(json.dumps({
                "experiment": "sweep", "path": "d", "host": "h",
                "setup": f"x={v}", "set": {"x": v},
                "samples_per_s": 1.25 * float(v)}) + "\n")
    run("report", "s.jsonl", "-o", "s.html")
    with open("s.html", encoding="utf-8") as f:
        page = f.read()
    check(">0.25<" in page and ">0.5<" in page and ">1.5<" in page, "values")
    check(">1.88<" in page, "a rate of few a second")


def test_stopped(tmp):
    """A signal that comes to the sweep alone ends the run under way, too."""
    os.chdir(tmp)
    run("gen", "d", "files=50", "shape=8")
    for command in (["sweep", "--repeats", "1", "-o", "s.jsonl",
                     "threads=1,2"], ["tune", "--seconds", "1000"]):
        p = subprocess.Popen([PENSTOCK, *command, "d", "epochs=1000000",
                              "store=fault", "store.delay=1ms"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
        while p.poll() is None and not children(p.pid):
            pass
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=600)
        check(p.returncode == 128 + signal.SIGTERM,
              f"{command}: exit {p.returncode}: {err}")
        check(not os.path.exists("s.jsonl"), "a row of half a run")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return f.read().split()


def test_workload(tmp):
    os.chdir(tmp)
    run("sweep", "unet3d_small", "reader.read_threads=1,2", "train.epochs=1",
        "--repeats", "1", "-o", "s.jsonl", "--quiet")
    got = rows("s.jsonl")
    check(len(got) == 2 and all(0 < r["au"] <= 100 for r in got), f"{got}")


def test_killed(tmp):
    """A sweep that is killed leaves whole rows, and --resume the rest."""
    os.chdir(tmp)
    run("gen", "d", "files=100", "shape=32")
    args = ("sweep", "d", "threads=1,2,3,4", "epochs=2", "--repeats", "3",
            "-o", "s.jsonl")
    p = subprocess.Popen([PENSTOCK, *args], stdout=subprocess.DEVNULL)
    end = time.monotonic() + 600
    while time.monotonic() < end and p.poll() is None:
        if os.path.exists("s.jsonl") and len(rows("s.jsonl")) >= 3:
            p.send_signal(signal.SIGKILL)
            break
    p.wait(timeout=600)
    run(*args, "--resume")
    check(len(cells("s.jsonl")) == 12 == len(set(cells("s.jsonl"))),
          f"after a kill: {cells('s.jsonl')}")


def test_tune(tmp):
    if os.environ.get("SANITIZE"):
        return  # a hundred runs, of which the others are enough
    os.chdir(tmp)
    run("gen", "d", "files=200", "shape=32")
    got = json.loads(run("tune", "d", "batch_size=16", "--seconds", "3",
                         "--json"))
    best = got["finalists"]
    check(any(f["default"] for f in best), "the defaults are among the last")
    check(best[0]["samples_per_s"] == max(f["samples_per_s"] for f in best),
          "the best comes first")
    check(got["tried"] > 5 and got["runs"] > got["tried"], f"{got}")
    check(got["recommended"] in [f["settings"] for f in best if
                                 f["default"] != got["beats_defaults"]],
          f"what it says to set: {got}")
    out = run("tune", "d", "threads=1", "store=posix", "--seconds", "1")
    check("threads=" not in out.split("In Python")[0].split("lowest")[1],
          f"given settings stay: {out}")
    check("penstock.Loader" in out and "As YAML" in out, out)


def plan(*args):
    return [tuple(c) for c in
            json.loads(run("tune", *args, "--dry-run", "--json"))["candidates"]]


def test_plan(tmp):
    """What would be tried, each once, without what is given."""
    os.chdir(tmp)
    got = plan("d")
    check(() in got and len(got) == len(set(got)) > 5, f"{got}")
    check(len(run("tune", "d", "--dry-run").splitlines()) == len(got), "text")
    check(any("store=posix" in c for c in got), f"{got}")
    for key in ("store=uring", "queue_depth=8", "threads=2", "prefetch=4"):
        given = plan("d", key)
        name = key.split("=", maxsplit=1)[0]
        check(len(given) == len(set(given)) > 3, f"{key}: {given}")
        check(not any(s.startswith(name + "=") for c in given for s in c),
              f"{key} is given: {given}")
    check(any("queue_depth=64" in c for c in plan("d", "store=uring")),
          "reads in flight of a store that is given")
    chunks = [c for c in plan("d", "sampler=block")
              if any(s.startswith("sampler.chunk=") for s in c)]
    check(len(chunks) == 4 and not any("threads" in s for c in chunks
                                       for s in c), f"{chunks}")
    check(any("reader.read_threads=1" in c for c in plan("x.yaml")),
          "a workload of one's own")


def test_errors(tmp):
    os.chdir(tmp)
    run("sweep", "nowhere", "threads=1,2", "--repeats", "1", code=4)
    check(not os.path.exists("sweep.jsonl"), "a row of nothing")
    run("sweep", "nowhere", "threads=1", code=2)
    run("sweep", "threads=1,2", code=2)
    run("sweep", "x", "threads=1,,2", code=2)
    err = run("tune", "nowhere", "--seconds", "1", code=4)  # as load does
    check(err.count("nowhere") == 1, err)


main(globals())
