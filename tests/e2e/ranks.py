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
        out, err = p.communicate(timeout=120)
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
        p.communicate(timeout=60)
        check(p.returncode != 0, "the job failed")
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        check(False, "the job goes on without a rank")


def start_tests():
    if not shutil.which("mpirun") or not shutil.which("pgrep"):
        print("mpirun is not installed")
        sys.exit(77)
    if os.environ.get("SANITIZE"):
        print("not under sanitizers: MPI itself leaks")
        sys.exit(77)
    main(globals())


start_tests()
