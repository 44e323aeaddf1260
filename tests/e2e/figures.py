#!/usr/bin/python3
"""bench/run.py --against: figures that are kept and others that were made up.
Rates may halve, as on a slower machine; ratios may not. Nothing is measured."""
import os
import subprocess
import sys
import tempfile

SOURCE = os.environ["SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "bench"))
sys.dont_write_bytecode = True
import figures  # noqa: E402
from works import WORKS  # noqa: E402

NOISE = 1, 1.02, 0.99, 1.01, 0.98


def noisy(value, repeats=5):
    return [value * f for f in NOISE[:repeats]]


def entry(work, **found):
    """As if measured: contender = (unit, values)."""
    return figures.entry(found, WORKS[work], 2, figures.Others())


def rows(ours, limit, torch=50, repeats=5):
    rate = "samples/s"
    return {"rows_1k_b256": entry(
        "rows_1k_b256", penstock=(rate, noisy(ours, repeats)),
        limit=(rate, [limit] * repeats),
        torch_default_w0=(rate, [torch] * repeats),
        torch_default_w2=(rate, [None] * (repeats - 1) + [2 * torch]))}


def memory(megabytes):
    return {"accel64": entry("accel64",
                             penstock_memory=("MB", noisy(megabytes)))}


def against(tmp, kept, now):
    """The exit code, and what is said of each work."""
    for name, works in (("kept", kept), ("now", now)):
        figures.write(os.path.join(tmp, name), works, WORKS)
    p = subprocess.run(
        ["/usr/bin/python3", "-B", os.path.join(SOURCE, "bench/run.py"),
         "--build", os.environ["BUILD"], "--from", "now", "--kept", "kept",
         "--against"], cwd=tmp, capture_output=True, text=True, check=False)
    assert not p.stderr, p.stderr
    words = [line.split() for line in p.stdout.splitlines()
             if line[:2] == "  " and line[2] != " "]
    return p.returncode, {w[1].strip(":,"): w[0] for w in words}, p.stdout


def test_ratios(tmp):
    r = rows(90, 100)["rows_1k_b256"]["ratios"]
    assert r["penstock / limit"][0] == 0.9, r
    # the best number of workers of each repeat
    assert r["penstock / torch_default"][0] == 1.8, r
    assert r["penstock / torch_default"][4] == 0.882, r
    # less is better of times, and what has no counterpart takes the first
    r = entry("null_1k", penstock=("ns", [50]), penstock_batch=("ns", [1000]),
              copy=("ns", [5]))["ratios"]
    assert r == {"penstock / copy": [0.1], "penstock_batch / copy": [0.005]}, r


def test_verdicts(tmp):
    kept = {**rows(90, 100), **memory(75)}
    for now, code, verdict in (
            (rows(45, 50, 25), 0, "alike"),  # all is half as fast
            (rows(87, 100), 0, "alike"),
            (rows(60, 100, 33), 1, "WORSE"),
            (rows(130, 100), 0, "better"),
            # what is worse is named, even where something is better
            (rows(60, 100, 10), 1, "WORSE"),
            (rows(60, 100, repeats=1), 0, "unknown")):
        got = against(tmp, kept, now)
        assert got[0] == code and got[1]["rows_1k_b256"] == verdict, got
    code, said, text = against(tmp, kept, {**rows(90, 100), **memory(150)})
    assert code == 1 and said["accel64"] == "WORSE", text
    assert said["rows_1k_b256"] == "alike", text
    assert "penstock_memory 75 -> 150 MB" in text, text
    code, said, text = against(tmp, memory(75), rows(90, 100))
    assert code == 0 and said["rows_1k_b256"] == "new", text


def test_merge(tmp):
    """What was not run stays as it was kept."""
    path = os.path.join(tmp, "all")
    both = {**rows(90, 100), **memory(75)}
    figures.write(path, both, WORKS)
    assert figures.read(path) == both
    assert figures.read(path + ".none") == {}


def main():
    tests = [f for n, f in globals().items() if n.startswith("test_")]
    for test in tests:
        with tempfile.TemporaryDirectory() as tmp:
            test(tmp)
    print(f"{len(tests)} tests passed")


main()
