#!/usr/bin/python3
"""What a slow store does to results: late reads are reading, whatever the
format, and compare finds a store that has become a tenth slower."""
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
                       timeout=120)
    check(p.returncode == code,
          f"{args}: exit {p.returncode}, not {code}: {p.stderr}{p.stdout}")
    return p.stderr if code else p.stdout


def loads(side, delay, number):
    """One run of many late reads, one after another: what it takes is what the
    store does."""
    os.makedirs(f"{side}/{number}", exist_ok=True)
    run("load", "d/x.npy", "store=fault", f"store.delay={delay}", "threads=1",
        "batch_size=8", "shuffle=true", "epochs=2", "--quiet", "-o",
        f"{side}/{number}/result.json")


def throughput(a, b):
    one, = json.loads(run("compare", a, b, "--json"))["comparisons"]
    return next(f for f in one["figures"] if f["figure"] == "throughput")


def test_slower(tmp):
    """Repeats in turns: 8.0 ms a read, the same again, and 8.8 ms. A machine
    that does much else meanwhile gets as many once more."""
    os.chdir(tmp)
    run("gen", "d/x.npy", "samples=16", "shape=64")
    sides = [("before", "8.0ms"), ("again", "8.0ms"), ("after", "8.8ms")]
    for number in range(18):
        if number == 9 and throughput("before", "after")["differs"] and \
                not throughput("before", "again")["differs"]:
            break
        for i in range(3):
            loads(*sides[(i + number) % 3], number)
    rule = ["--fail-if", "throughput<-5%"]
    err = run("compare", "before", "after", *rule, code=5)
    check("throughput changed by -" in err and "after" in err, err)
    f = throughput("before", "after")
    check(f["differs"] and not f["better"] and f["change"] < -0.05,
          f"a tenth slower: {f}")
    out = run("compare", "before", "again", *rule)
    row = next(r for r in out.splitlines()
               if r.split()[:1] == ["throughput"])
    check("WORSE" not in row and "better" not in row, row)
    check("Throughput changed" not in out, out)


def stages(s):
    return s["read_ns"], s["unpack_ns"] + s["emit_ns"], s


def test_blamed(tmp):
    """Late reads of files that come in pieces, stored and deflated."""
    os.chdir(tmp)
    for fmt, more in (("npz", []), ("npz", ["dataset.compression=zip"]),
                      ("npy", [])):
        run("run", "unet3d_small", f"dataset.format={fmt}", *more,
            "dataset.num_files_train=12", "reader.batch_size=2",
            "dataset.record_length_bytes=2000000",
            "dataset.record_length_bytes_stdev=0",
            "reader.read_threads=2", "train.epochs=1",
            "train.computation_time=0.001", "workflow.checkpoint=false",
            "loader.store=fault", "loader.store.delay=50ms",
            f"dataset.data_folder=data-{fmt}{len(more)}",
            "output.folder=out", "--quiet")
        with open("out/result.json", encoding="utf-8") as f:
            doc = json.load(f)
        read, work, all_of = stages(doc["stages"])
        check(read > work, f"{fmt} {more}: {all_of}")
        check("reading: storage is the bound" in doc["verdict"],
              f"{fmt} {more}: {doc['verdict']} {all_of}")
        run("report", "out", "-o", "p.html")
        with open("p.html", encoding="utf-8") as f:
            check("of it reading" in f.read(), f"{fmt} {more}: the page")


main(globals())
