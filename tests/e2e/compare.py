#!/usr/bin/python3
"""compare: results of real runs compared with modified copies."""
import json
import os
import subprocess
import sys

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


def compare(*args):
    return json.loads(run("compare", *args, "--json"))["comparisons"]


def figures(c):
    return {f["figure"]: f for f in c["figures"]}


def save(name, doc):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w", encoding="utf-8") as f:
        json.dump(doc, f)


def test_loads(tmp):
    os.chdir(tmp)
    run("gen", "d", "files=300", "shape=64")
    doc = json.loads(run("load", "d", "epochs=16", "batch_size=16", "--json"))
    for i, e in enumerate(doc["epochs"]):   # as even as no machine is
        e["seconds"] = 0.1 * (1 + 0.01 * (i % 5))
    save("a.json", doc)
    one, = compare("a.json", "a.json")
    check(not any(f["differs"] for f in one["figures"]), "a file and itself")
    check(not one["changed"], f"changed: {one['changed']}")
    for e in doc["epochs"]:
        e["seconds"] *= 1.1
    doc["threads"] += 1
    doc["store"] = "<b>&</b>"
    save("b.json", doc)
    one, = compare("a.json", "b.json")
    f = figures(one)["throughput"]
    check(f["differs"] and not f["better"], f"10 % slower: {f}")
    check(abs(f["change"] + 1 / 11) < 0.01, f"change {f['change']}")
    check(f["low"] <= f["change"] <= f["high"] < 0, f"interval {f}")
    check({c["key"] for c in one["changed"]} == {"threads", "store"},
          f"changed: {one['changed']}")
    text = run("compare", "a.json", "b.json", "a.json", "-o", "c.html")
    check("WORSE" in text and "-9." in text, text)
    with open("c.html", encoding="utf-8") as page:
        check("<b>&" not in page.read(), "text in a page is not escaped")
    run("compare", "a.json", "b.json", "--fail-if", "throughput<-5%", code=5)
    run("compare", "b.json", "a.json", "--fail-if", "throughput<-5%")
    run("compare", "a.json", "b.json", "--fail-if", "throughput<-20%")
    run("compare", "a.json", "b.json", "--fail-if", "throughput", code=2)
    run("compare", "a.json", "b.json", "--fail-if", "speed<-5%", code=2)


def test_runs(tmp):
    os.chdir(tmp)
    run("run", "unet3d_small", "train.epochs=4", "output.folder=one",
        "--quiet")
    where = next(os.path.join(d, "result.json")
                 for d, _, f in os.walk("one") if "result.json" in f)
    with open(where, encoding="utf-8") as f:
        doc = json.load(f)
    for i in range(5):  # repeats: folders of folders
        for side, factor in (("old", 1), ("new", 1.2)):
            for e in doc["epochs"]:
                e["samples_per_s"] = 500 * factor * (1 + 0.01 * i)
            save(f"{side}/run{i}/result.json", doc)
    one, = compare("old", "new")
    check(one["runs_a"] == one["runs_b"] == 5, f"runs: {one}")
    f = figures(one)["throughput"]
    check(f["differs"] and f["better"] and abs(f["change"] - 0.2) < 0.01,
          f"20 % faster: {f}")
    check("utilisation" in figures(one), "figures of a run")


def test_errors(tmp):
    os.chdir(tmp)
    save("a.json", {"schema": "penstock.load/1", "epochs": []})
    with open("not.json", "w", encoding="utf-8") as f:
        f.write('{"schema": "other/1"}')
    with open("cut.json", "w", encoding="utf-8") as f:
        f.write('{"schema": "penstock.load/1", "epochs": [')
    os.makedirs("empty", exist_ok=True)
    for bad in ("nowhere.json", "not.json", "cut.json", "empty"):
        p = subprocess.run([PENSTOCK, "compare", "a.json", bad],
                           capture_output=True, text=True, timeout=600)
        check(p.returncode in (1, 3, 4), f"{bad}: exit {p.returncode}")
        check(p.stderr.count("\n") == 1 and bad in p.stderr, p.stderr)
    run("compare", "a.json", code=2)


def test_rows(tmp):
    """Rows with wrong content have no rate."""
    os.chdir(tmp)
    for name, factor in (("a", 1), ("b", 1.3)):
        with open(f"{name}.jsonl", "w", encoding="utf-8") as f:
            for i in range(6):
                row = {"experiment": "formats", "setup": "npy", "arm": "npy",
                       "samples_per_s": factor * (1000 + i)}
                f.write(json.dumps(row) + "\n")
                for bad in ({"wrong": True}, {"wrong": "why"}, {"oom": True},
                            {"n_skipped": 1},
                            {"n_rows": 3, "expected_rows": 4},
                            {"expected_rows": 4},
                            {"content_sum": "1", "expected_sum": "2"}):
                    f.write(json.dumps({**row, **bad, "samples_per_s": 9e9 *
                                        (i + 1)}) + "\n")
    one, = compare("a.jsonl", "b.jsonl")
    f = figures(one)["npy: throughput"]
    check(f["differs"] and f["better"] and abs(f["change"] - 0.3) < 0.01,
          f"{f}")


def test_few(tmp):
    """A rule that cannot be checked is reported."""
    os.chdir(tmp)
    run("gen", "d", "files=20", "shape=8")
    doc = json.loads(run("load", "d", "epochs=1", "--json"))
    save("a.json", doc)
    p = subprocess.run([PENSTOCK, "compare", "a.json", "a.json", "--fail-if",
                        "throughput<-5%"], capture_output=True, text=True,
                       timeout=600)
    check(p.returncode == 0 and "was not checked" in p.stderr, p.stderr)
    del doc["first_batch_s"]
    save("b.json", doc)
    run("compare", "a.json", "b.json", "--fail-if", "first_batch>5%", code=2)


main(globals())
