#!/usr/bin/python3
"""Ctrl-C and SIGTERM at every phase of a run and of a load: a valid result,
marked as partial, nothing half-written, and the signal's exit code. Each of
them would go on for minutes if it did not end."""
import glob
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
SMALL = ["dataset.num_files_train=16", "dataset.num_files_eval=8",
         "train.computation_time=0.001", "evaluation.eval_time=0.001"]
TRAIN = ["default_small", *SMALL, "workflow.evaluation=false",
         "train.epochs=1000000"]
CKPT = ["default_small", "workflow.train=false", "workflow.checkpoint=true",
        "workflow.generate_data=false", "checkpoint.time_between_checkpoints=0"]


def fresh():
    """Signals as a shell starts programs with."""
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, signal.SIG_DFL)


def start(*args):
    return subprocess.Popen([PENSTOCK, *args], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, preexec_fn=fresh)


def logged(words):
    """Is that in the run's log?"""
    def there():
        if not os.path.exists("out/dlio.log"):
            return False
        with open("out/dlio.log", encoding="utf-8") as f:
            return words in f.read()
    return there


def found(pattern):
    return lambda: glob.glob(pattern, recursive=True)


def until(p, phase):
    """Waits for that phase of it, or its end."""
    while not phase():
        try:
            p.wait(0.002)
            return
        except subprocess.TimeoutExpired:
            pass


def end(p, phase, sig):
    """Signals it in that phase; what it printed."""
    try:
        until(p, phase)
        p.send_signal(sig)
        out, err = p.communicate(timeout=600)
    except subprocess.TimeoutExpired:
        p.kill()
        raise
    check(p.returncode == 128 + sig,
          f"{p.args[1:]}: exit {p.returncode} on {sig}: {err[-300:]}")
    left = glob.glob("**/*.tmp", recursive=True)
    check(not left, f"{p.args[1:]}: left {left}")
    return out


def partial(phase, sig, *args):
    """A run that is ended in a phase, as text and as JSON; its result."""
    out = end(start("run", *args, "output.folder=out"), phase, sig)
    check("nterrupted" in out, f"{args}: nothing said: {out}")
    with open("out/result.json", encoding="utf-8") as f:
        doc = json.load(f)
    check(doc["partial"] is True, f"{args}: not partial")
    subprocess.run(["rm", "-r", "out"], check=True)
    doc2 = json.loads(end(start("run", *args, "output.folder=out", "--json"),
                          phase, sig))
    check(doc2["partial"] is True, f"{args}: --json: not partial")
    for command in ("report", "compare"):
        p = subprocess.run([PENSTOCK, command, "out/result.json"] +
                           ["out/result.json"] * (command == "compare"),
                           capture_output=True, text=True, timeout=600)
        check(not p.returncode and "nan" not in p.stdout.split(),
              f"{args}: {command}: {p.stdout}{p.stderr}")
    return doc


def test_generate(tmp):
    os.chdir(tmp)
    args = ["default_small", "dataset.num_files_train=8",
            "dataset.record_length=1000000000", "workflow.train=true",
            "dataset.format=npz"]
    doc = partial(found("data/**/*.tmp"), signal.SIGINT, *args)
    check(not doc["epochs"], "nothing was trained")
    out = end(start("run", *args, "workflow.train=false", "--json"),
              found("data/**/*.tmp"), signal.SIGTERM)
    check(json.loads(out)["partial"] is True, out)


def test_train(tmp):
    os.chdir(tmp)
    partial(logged("Starting epoch 2"), signal.SIGINT, *TRAIN)
    subprocess.run(["rm", "-r", "out"], check=True)
    partial(logged("Starting epoch 2"), signal.SIGTERM, *TRAIN)
    subprocess.run(["rm", "-r", "out"], check=True)
    # within a step
    partial(logged("Starting block 1"), signal.SIGINT, *TRAIN,
            "train.computation_time=1000")


def test_waiting(tmp):
    """No batch comes."""
    os.chdir(tmp)
    slow = ["store=fault", "store.delay=500ms"]
    args = [*TRAIN, *["loader." + s for s in slow], "reader.read_threads=1",
            "dataset.format=npy", "dataset.num_files_train=1",
            "dataset.num_samples_per_file=4000", "reader.batch_size=1000"]
    partial(logged("Starting block 1"), signal.SIGINT, *args)
    subprocess.run([PENSTOCK, "gen", "d/x.npy", "samples=4000", "shape=16"], check=True,
                   capture_output=True)
    p = start("load", "d/x.npy", *slow, "batch_size=1000", "shuffle=true",
              "threads=1", "--json")
    doc = json.loads(end(p, threads(p, "pen-worker"), signal.SIGINT))
    check(doc["partial"] is True and doc["phase"] == "loading",
          "load is partial")


def test_capacity(tmp):
    """While data is made, and in a measurement."""
    os.chdir(tmp)
    args = ["capacity", "default_small", "train.computation_time=1"]
    for phase, more in ((found("data/**/*.tmp"),
                         ["dataset.record_length_bytes=1000000000",
                          "dataset.num_files_train=8",
                          "workflow.evaluation=false", "--json"]),
                        (None, ["--json"]), (None, [])):
        p = start(*args, *more)
        out = end(p, phase or threads(p, "pen-worker"), signal.SIGINT)
        subprocess.run(["rm", "-rf", "data"], check=True)
        if "--json" not in more:
            check("interrupted" in out and "cannot feed" not in out, out)
            continue
        doc = json.loads(out)
        check(doc["partial"] is True and doc["accelerators"] == 0, out)
        with open("c.json", "w", encoding="utf-8") as f:
            f.write(out)
        p = subprocess.run([PENSTOCK, "report", "c.json", "-o", "-"],
                           capture_output=True, text=True, timeout=600)
        check("interrupted" in p.stdout and "Not even" not in p.stdout,
              p.stdout[-3000:] + p.stderr)


def test_verify(tmp):
    """The same, of a command that reads everything."""
    os.chdir(tmp)
    subprocess.run([PENSTOCK, "gen", "d/x.npy", "samples=4000", "shape=16"],
                   check=True, capture_output=True)
    for flags in (["--json"], []):
        p = start("verify", "d/x.npy", "store=fault", "store.delay=500ms",
                  "batch_size=1000", "threads=1", "read_size=64", *flags)
        out = end(p, threads(p, "pen-worker"), signal.SIGTERM)
        if flags:
            doc = json.loads(out)
            check(doc["partial"] and doc["phase"] == "reading", out)
        else:
            check("interrupted" in out, out)


def threads(p, name):
    def there():
        for comm in glob.glob(f"/proc/{p.pid}/task/*/comm"):
            try:
                with open(comm, encoding="utf-8") as f:
                    if name in f.read():
                        return True
            except OSError:
                pass
        return False
    return there


def test_opening(tmp):
    """Many files on a slow store are being indexed."""
    os.chdir(tmp)
    slow = ["store=fault", "store.delay=100ms"]
    p = start("run", *TRAIN, *["loader." + s for s in slow],
              "dataset.num_files_train=400", "output.folder=out", "--json")
    doc = json.loads(end(p, threads(p, "pen-index"), signal.SIGINT))
    check(doc["partial"] is True and not doc["epochs"], "a run is partial")
    for flags in (["--json"], ["--json", "-o", "r.json"], ["-o", "r.json"],
                  ["--drop-cache", "--json"], []):
        p = start("load", "data/default_small/train", *slow, *flags)
        out = end(p, threads(p, "pen-index"), signal.SIGTERM)
        if "--json" in flags:
            unopened(json.loads(out))
        else:
            check("interrupted while indexing" in out, out)
        if "-o" in flags:
            with open("r.json", encoding="utf-8") as f:
                unopened(json.load(f))
            os.remove("r.json")


    for command in ("verify", "inspect"):
        p = start(command, "data/default_small/train", *slow, "--json")
        out = end(p, threads(p, "pen-index"), signal.SIGINT)
        if command == "verify":
            doc = json.loads(out)
            check(doc["partial"] and doc["phase"] == "indexing", out)


def unopened(doc):
    """What a load has to tell that was ended before the first batch; it can be
    shown and compared."""
    check(doc["partial"] is True and doc["phase"] == "indexing", str(doc))
    check(doc["samples"] == 0 and doc["epochs"] == [] and doc["open_s"] > 0,
          str(doc))
    with open("u.json", "w", encoding="utf-8") as f:
        json.dump(doc, f)
    for args in (["report", "u.json", "-o", "u.html"],
                 ["compare", "u.json", "u.json"]):
        p = subprocess.run([PENSTOCK, *args], capture_output=True, text=True,
                           timeout=600)
        check(not p.returncode, f"{args}: {p.stderr}")
        check("interrupted" in p.stdout or args[0] == "report", p.stdout)
    with open("u.html", encoding="utf-8") as f:
        page = f.read()
    check("interrupted while indexing" in page, "the page says so")
    check("nan" not in page.split("<script>")[0].split(), "no numbers")


def test_evaluate(tmp):
    os.chdir(tmp)
    partial(logged("Starting eval"), signal.SIGINT, "default_small", *SMALL,
            "workflow.evaluation=true", "evaluation.eval_time=1000")


def test_checkpoint(tmp):
    """Saving: what was begun goes, what was complete before stays."""
    os.chdir(tmp)
    doc = partial(found("checkpoints/**/*.tmp"), signal.SIGINT, *CKPT,
                  "checkpoint.num_checkpoints_write=1",
                  "model.model_size_bytes=8000000000")
    check(not os.listdir("checkpoints"), f"left {os.listdir('checkpoints')}")
    check(not doc["checkpoints"]["saves"],
          f"counted: {doc['checkpoints']}")
    subprocess.run(["rm", "-r", "out"], check=True)
    args = [*CKPT, "checkpoint.num_checkpoints_write=1000000",
            "model.model_size_bytes=1000000"]
    end(start("run", *args, "output.folder=out"),
        logged("Finished saving checkpoint 2"), signal.SIGTERM)
    check(len(os.listdir("checkpoints")) >= 2, "two are complete")
    with open("out/result.json", encoding="utf-8") as f:
        doc = json.load(f)
    check(doc["partial"] and len(doc["checkpoints"]["saves"]) ==
          len(os.listdir("checkpoints")), "all that are there are counted")


def test_read_back(tmp):
    os.chdir(tmp)
    args = [*CKPT, "model.model_size_bytes=400000000"]
    p = start("run", *args, "checkpoint.num_checkpoints_write=2",
              "checkpoint.num_checkpoints_read=0")
    p.communicate(timeout=600)
    check(p.returncode == 0, "two checkpoints")
    partial(logged("Starting loading checkpoint 1"), signal.SIGINT, *args,
            "checkpoint.num_checkpoints_write=0",
            "checkpoint.num_checkpoints_read=2")
    check(len(os.listdir("checkpoints")) == 2, "both are still there")
    subprocess.run(["rm", "-r", "out"], check=True)
    partial(logged("Checkpointing read started"), signal.SIGINT, *args,
            "checkpoint.num_checkpoints_write=0",
            "checkpoint.num_checkpoints_read=2",
            "checkpoint.time_between_checkpoints=1000")


def test_twice(tmp):
    """The second one does not wait for anything."""
    os.chdir(tmp)
    p = start("run", *TRAIN, "output.folder=out")
    until(p, logged("Starting epoch 2"))
    os.kill(p.pid, signal.SIGSTOP)      # both are pending when it goes on
    os.kill(p.pid, signal.SIGINT)
    os.kill(p.pid, signal.SIGTERM)
    os.kill(p.pid, signal.SIGCONT)
    p.communicate(timeout=600)
    check(p.returncode in (-signal.SIGINT, -signal.SIGTERM),
          f"exit {p.returncode}")


main(globals())
