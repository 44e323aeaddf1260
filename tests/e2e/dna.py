#!/usr/bin/python3
"""bench dna: every variant trains over all sequences, delivers the same, and has
all columns; wrong arguments are reported in one line."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main, skip  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]


def run(*args, code=0, env=None):
    p = subprocess.run([PENSTOCK, "bench", "dna", *args], capture_output=True,
                       text=True, timeout=600, env={**os.environ, **(env or {})})
    check(p.returncode == code,
          f"{args}: exit {p.returncode}, not {code}: {p.stderr}{p.stdout}")
    return p.stderr if code else p.stdout


def test_grid(tmp):
    os.chdir(tmp)
    out = run("--sizes", "20kB,40kB", "--kinds", "dna,dna+rna", "--workers",
              "1,2", "--batch", "1,4", "--repeats", "2", "epochs=2")
    with open("dna.jsonl", encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    check(len(rows) == 2 * 2 * 2 * 2 * 2, f"{len(rows)} rows")
    for r in rows:
        check(r["n_rows"] == r["expected_rows"] == 2 * r["n_sequences"] > 0,
              f"rows: {r}")
        for k in ("dict_s", "vocab_s", "epoch_s", "load_s", "model_s",
                  "real_s", "user_s", "system_s", "overall_s"):
            check(r[k] >= 0, f"{k}: {r}")
        check(abs(r["load_s"] + r["model_s"] - r["epoch_s"]) < 1e-4, f"{r}")
    for group in {r["group"] for r in rows}:
        check(len({r["content_sum"] for r in rows if r["group"] == group}) == 1,
              f"{group}: variants differ")
    for word in ("dictionary", "vocabulary", "epoch", "overall"):
        check(word in out, f"no '{word}' in the table")
    subprocess.run([PENSTOCK, "report", "dna.jsonl", "-o", "dna.html", "--csv",
                    "dna.csv"], check=True, stdout=subprocess.DEVNULL)
    with open("dna.html", encoding="utf-8") as f:
        check("Time per epoch" in f.read(), "a chart")
    check(os.listdir(tmp) and not [n for n in os.listdir(tmp)
                                   if n.endswith(".txt")], "files left")


def test_ranks(tmp):
    """All ranks of a job together, once per repeat; one result."""
    if not shutil.which("mpirun"):
        skip("mpirun is not installed")
        return
    if "thread" in os.environ.get("SANITIZE", ""):
        skip("MPI is not built for ThreadSanitizer")
        return
    os.chdir(tmp)
    sums = set()
    for n in (1, 2, 3, 4):
        p = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe",
                            "-n", str(n), PENSTOCK, "bench", "dna", "--sizes",
                            "0.0002", "--kinds", "dna+at", "--workers", "1",
                            "--batch", "4", "--repeats", "2", "shards=2", "-o",
                            f"{n}.jsonl"], capture_output=True, text=True,
                           timeout=600, check=False)
        check(not p.returncode, f"{n} ranks: {p.returncode} {p.stderr}")
        with open(f"{n}.jsonl", encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
        check(len(rows) == 2, f"{n} ranks: {len(rows)} rows")
        for r in rows:
            check(r["n_shards"] == 2 * n and r["n_ranks"] == n and
                  r["n_nodes"] == 1, f"{n} ranks: {r}")
            check(r["n_rows"] == r["n_sequences"] == 210, f"{r}")
            check(r["shards"].count("free block") == 2 * n, r["shards"])
            check(r["accuracy_share"] > 0.9, f"{r}")
            sums.add(r["content_sum"])
        for word in ("sequences", "hosts", "shards", "size", "dictionary",
                     "vocabulary", "epoch", "real", "user", "system",
                     "overall", "accuracy", "Loss by batch", "shard 0 on"):
            check(p.stdout.count(word) >= 1, f"no '{word}': {p.stdout}")
        check(p.stdout.count("The rows are in") == 1, p.stdout)
    check(len(sums) == 1, "ranks differ")
    check(not [x for x in os.listdir(tmp) if not x.endswith(".jsonl")],
          "files left")


def test_loading_alone(tmp):
    os.chdir(tmp)
    run("--sizes", "20kB", "--kinds", "rna", "--workers", "1", "--batch", "4",
        "--repeats", "1", "--model", "none")


def test_errors(tmp):
    os.chdir(tmp)
    for args in (["--sizes", "1B"], ["--sizes", "x"], ["--sizes", "1e9"],
                 ["shards=0"], ["shards=many"], ["--workers", "0"],
                 ["--kinds", "cat"], ["some.txt"], ["threads=2"],
                 ["epochs=0"], ["--samples", "5"], ["--shape", "4"],
                 ["--dtype", "int8"], ["--cold"], ["-n", "3"]):
        err = run(*args, code=2)
        check(err.count("\n") == 1, err)


main(globals())
