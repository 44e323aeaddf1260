#!/usr/bin/python3
"""Runs over MPI: 1 to 4 ranks, over TCP, and what happens when one fails."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]


def start(n, *args, cwd, more=()):
    return subprocess.Popen([*MPIRUN, *more, "-n", str(n), PENSTOCK, *args],
                            cwd=cwd, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            start_new_session=True)


def run(n, *args, cwd, code=0, more=()):
    p = start(n, *args, cwd=cwd, more=more)
    try:
        out, err = p.communicate(timeout=600)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        check(False, f"{n} ranks: {' '.join(args)} does not end")
        return "", ""
    check((p.returncode == 0) == (code == 0),
          f"{n} ranks: {' '.join(args)}: exit {p.returncode}: {err[-400:]}")
    return out, err


BASE = ["run", "default_small", "dataset.num_files_train=26",
        "dataset.num_files_eval=8", "train.computation_time=0.002",
        "evaluation.eval_time=0.001", "reader.batch_size=2"]


def test_ranks(tmp):
    for n, more in ((1, []), (2, []), (3, []), (4, []),
                    (2, ["--mca", "btl", "tcp,self"])):
        where = f"{tmp}/{n}{len(more)}"
        os.mkdir(where)
        out, _ = run(n, *BASE, "output.folder=out", cwd=where, more=more)
        check(out.count("results") == 1, f"one rank speaks: {out}")
        names = sorted(os.path.basename(f) for f in
                       glob.glob(f"{where}/data/**/*.npz", recursive=True))
        check(len(names) == 34, f"{n} ranks made {len(names)} files")
        for r in range(n):
            with open(f"{where}/out/{r}_output.json", encoding="utf-8") as f:
                o = json.load(f)
            steps = [len(o[e]["load"]["block1"]) for e in ("1", "2")]
            check(steps == [26 // 2 // n] * 2, f"{n} ranks: steps {steps}")
        with open(f"{where}/out/result.json", encoding="utf-8") as f:
            res = json.load(f)
        with open(f"{where}/out/summary.json", encoding="utf-8") as f:
            s = json.load(f)
        check(s["num_accelerators"] == n, "accelerators in the summary")
        check(len(res["ranks"]) == n, "ranks in the result")


def test_failure(tmp):
    """A bad key, data that is not there: one message, all end."""
    _, err = run(3, *BASE, "dataset.num_files_trian=3", cwd=tmp, code=1)
    check(err.count("did you mean") == 1, f"said once: {err}")
    _, err = run(3, *BASE, "workflow.generate_data=false", cwd=tmp, code=1)
    check(err.count("Not enough training dataset") == 1, f"said once: {err}")
    run(2, *BASE, "workflow.train=false", cwd=tmp)
    bad = sorted(glob.glob(f"{tmp}/data/**/train/**/*.npz",
                           recursive=True))[7]
    with open(bad, "r+b") as f:
        f.seek(2000)
        f.write(b"\xff" * 64)
    _, err = run(3, *BASE, "workflow.generate_data=false", cwd=tmp, code=1)
    check(os.path.basename(bad) in err, f"names the file: {err[-400:]}")


def test_killed(tmp):
    """kill -9 of one rank ends the job, no rank is left waiting."""
    p = start(3, *BASE, "train.epochs=1000000", "workflow.evaluation=false",
              "output.folder=out", cwd=tmp)
    log = f"{tmp}/out/dlio.log"
    while p.poll() is None:
        if os.path.exists(log):
            with open(log, encoding="utf-8") as f:
                if "Starting epoch 2:" in f.read():
                    break
    kids = subprocess.run(["pgrep", "-P", str(p.pid)], capture_output=True,
                          text=True, check=False).stdout.split()
    check(len(kids) == 3, f"ranks: {kids}")
    if kids:
        os.kill(int(kids[-1]), signal.SIGKILL)
    try:
        p.communicate(timeout=600)
        check(p.returncode != 0, "the job failed")
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        check(False, "the job goes on without a rank")


def alone(*args, cwd):
    return json.loads(subprocess.run(
        [PENSTOCK, *args, "--json"], cwd=cwd, check=True, text=True,
        stdout=subprocess.PIPE).stdout)


def test_load(tmp):
    """Ranks come from the launch: each loads its slice, one speaks."""
    alone("gen", "x.npy", "samples=120", "shape=8", cwd=tmp)
    args = ["load", "x.npy", "shuffle=true", "batch_size=5", "epochs=2",
            "--checksum", "--quiet"]
    want = alone(*args, cwd=tmp)
    check(want["ranks"] == 1 and want["padding"] == 0, "alone")
    for n in (2, 3):
        got = json.loads(run(n, *args, "--json", cwd=tmp)[0])
        for key in ("samples", "batches", "payload_bytes", "checksum"):
            check(got[key] == want[key], f"{n} ranks: {key} {got[key]}")
        check(got["ranks"] == n, f"{n} ranks: {got['ranks']}")
        check([e["samples"] for e in got["epochs"]] == [120] * 2, "epochs")
        check(all(e["cpu_s"] > 0 for e in got["epochs"]), "CPU of epochs")
    out, _ = run(2, *args, "-o", "r.json", cwd=tmp)
    check(out.count("each of 2 ranks") == 1 and out.count("checksum") == 1,
          f"one rank speaks: {out}")
    with open(f"{tmp}/r.json", encoding="utf-8") as f:
        check(json.load(f)["checksum"] == want["checksum"], "-o")
    # what is filled up is said
    out, _ = run(2, "load", "x.npy", "batch_size=32", cwd=tmp)
    check("8 samples per epoch are repeated" in out, f"padding: {out}")
    r = json.loads(run(2, "load", "x.npy", "batch_size=32", "--json",
                       cwd=tmp)[0])
    check((r["samples"], r["padding"]) == (128, 8), f"padding: {r}")
    r = json.loads(run(2, "load", "x.npy", "batch_size=32", "tail=keep",
                       "--json", cwd=tmp)[0])
    check((r["samples"], r["padding"]) == (120, 0), f"tail=keep: {r}")


def test_load_copies(tmp):
    """rank= and world= are obeyed, and that there are copies is said."""
    alone("gen", "x.npy", "samples=120", "shape=8", cwd=tmp)
    out, err = run(2, "load", "x.npy", "rank=0", "world=1", cwd=tmp)
    check(out.count("120 in ") == 2, f"each loads all: {out}")
    check(err.count("loads and reports independently") == 1, f"said: {err}")


def test_load_failure(tmp):
    """One message, whichever rank has something to say."""
    alone("gen", "x.npy", "samples=120", "shape=8", cwd=tmp)
    _, err = run(3, "load", "x.npy", "batch_sise=3", cwd=tmp, code=2)
    check(err.count("did you mean") == 1, f"said once: {err}")
    _, err = run(3, "load", "nowhere.npy", cwd=tmp, code=4)
    check(err.count("no such file") == 1, f"said once: {err}")
    _, err = run(2, "load", "x.npy", "store=fault", "store.fail_nth=3",
                 cwd=tmp, code=4)
    check(err.count("Input/output error") == 1, f"said once: {err}")
    # one rank only
    for bad in ("nowhere.npy", "--quality=color"):
        _, err = run(1, "load", "x.npy", ":", "-n", "1", PENSTOCK, "load",
                     "x.npy", bad, cwd=tmp, code=4)
        check("rank 1 failed" in err, f"rank 1: {err}")


def test_other_commands(tmp):
    """Nothing is done twice: rank 0 works, and says that it is alone."""
    out, err = run(3, "gen", "d", "files=4", "shape=8", cwd=tmp)
    check(out.count("4 files") <= 1 and err.count("rank 0 does all") == 1,
          f"gen: {out} {err}")
    check(len(os.listdir(f"{tmp}/d")) == 4, "files")
    for args in (["inspect", "d"], ["verify", "d"], ["formats"],
                 ["doctor"], ["bench", "startup", "d", "--repeats", "1"]):
        many, err = run(2, *args, cwd=tmp)
        lines = many.splitlines()
        check(lines.count(lines[0]) == 1, f"{args}: printed once: {many}")
        check(err.count("rank 0 does all") == 1, f"{args}: {err}")
    # what it starts is alone, too: this runs loaders in children
    out, _ = run(2, "sweep", "default_small", "reader.batch_size=1,2",
                 "dataset.num_files_train=8", "train.epochs=1",
                 "workflow.evaluation=false", "train.computation_time=0",
                 cwd=tmp)
    check("batch_size" in out, f"sweep: {out}")


def start_tests():
    for tool in ("mpirun", "pgrep"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed")
            sys.exit(77)
    if os.environ.get("SANITIZE"):
        print("skipped: not under sanitizers: MPI itself leaks")
        sys.exit(77)
    main(globals())


start_tests()
