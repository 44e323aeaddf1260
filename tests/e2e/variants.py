#!/usr/bin/python3
"""Experiments that hold variants against one another, on tiny data: every variant
delivers what it should, one that does not has no rate, folders are removed,
and pages are made of the rows. No time is looked at."""
import glob
import json
import os
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
MASK = (1 << 64) - 1
ODD = 0x9e3779b97f4a7c15


def run(tmp, *args, code=0):
    env = dict(os.environ, TMPDIR=tmp)
    p = subprocess.run([PENSTOCK, *args], cwd=tmp, capture_output=True,
                       text=True, timeout=600, stdin=subprocess.DEVNULL,
                       env=env)
    check(p.returncode == code, f"{' '.join(args)}: exit {p.returncode}, "
          f"not {code}: {p.stderr.strip()[-300:]}")
    return p


def rows(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def mix(z):
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


def row_sum(i, data):
    """The sum of a sample, as the documentation has it."""
    h = [i, 0, len(data), ODD]
    at = 0
    while at + 32 <= len(data):
        for k, w in enumerate(struct.unpack_from("<4Q", data, at)):
            h[k] = (h[k] ^ w) * ODD & MASK
            h[k] ^= h[k] >> 29
        at += 32
    while at + 8 <= len(data):
        h[0] = (h[0] ^ struct.unpack_from("<Q", data, at)[0]) * ODD & MASK
        at += 8
    for b in data[at:]:
        h[1] = (h[1] ^ b) * ODD & MASK
    return mix(h[0] ^ mix(h[1] ^ mix(h[2] ^ h[3])))


def npy(path, n, width):
    """Float32 rows, written by nobody's library."""
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" \
        % (n, width)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    data = [struct.pack(f"<{width}f", *(i * 7 + k for k in range(width)))
            for i in range(n)]
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                head.encode() + b"".join(data))
    return sum(row_sum(i, d) for i, d in enumerate(data)) & MASK


def right(tmp, name, variants, p):
    """All rows of an experiment are there, and none is wrong."""
    got = rows(f"{tmp}/{name}.jsonl")
    check(len({r["setup"] for r in got}) == variants,
          f"{name}: {len({r['setup'] for r in got})} variants, not {variants}")
    for r in got:
        what = f"{name} {r['group']} {r['arm']}"
        check(r["experiment"] == name and not r["oom"], what)
        check("wrong" not in r, f"{what}: {r.get('wrong')}")
        if "n_rows" in r:
            check(r["n_rows"] == r["expected_rows"] > 0, f"{what}: rows")
            check(r["content_sum"] == r.get("expected_sum", r["content_sum"]),
                  f"{what}: content")
    check(len(p.stdout.splitlines()) > variants + 3, f"{name}: no table")
    check(not glob.glob(f"{tmp}/penstock-bench.*"), f"{name}: a folder stays")
    q = run(tmp, "report", f"{name}.jsonl", "-o", f"{name}.html")
    check(f"{len(got)} runs" in q.stdout, q.stdout)
    with open(f"{tmp}/{name}.html", encoding="utf-8") as f:
        html = f.read()
    check('class="bar"' in html and "All variants" in html, f"{name}: no chart")
    check("nan" not in html and "-nan" not in p.stdout, f"{name}: NAN")
    return got


TINY = ["--samples", "300", "--shape", "16", "--repeats", "2", "--quiet"]


def test_sweeps(tmp):
    p = run(tmp, "bench", "prefetch", *TINY, "--ahead", "0,1,3", "--step",
            "10us", "sampler=shuffle")
    got = right(tmp, "prefetch", 3, p)
    check([r["repeat"] for r in got] == [1] * 3 + [2] * 3, "not in turns")
    check(all("expected_sum" in r for r in got), "sums of data made")
    # what is there is not run again, and is in the table all the same
    q = run(tmp, "bench", "prefetch", *TINY, "--ahead", "0,1,3", "--step",
            "10us", "sampler=shuffle", "--resume")
    check(rows(f"{tmp}/prefetch.jsonl") == got, "--resume runs again")
    check(q.stdout.count("auto") >= 1 and "6 runs skipped" in q.stdout,
          q.stdout)
    p = run(tmp, "bench", "batch-size", *TINY, "--sizes", "1,7,300,1000")
    got = right(tmp, "batch-size", 4, p)
    check({r["batch"]: r["n_batches"] for r in got} ==
          {1: 300, 7: 43, 300: 1, 1000: 1}, "batches")
    check(len({r["content_sum"] for r in got}) == 1, "sizes differ")


def test_given(tmp):
    want = npy(f"{tmp}/x.npy", 90, 13)
    run(tmp, "bench", "prefetch", "x.npy", "--repeats", "1", "epochs=2",
        "--ahead", "2", "--json")
    got = rows(f"{tmp}/prefetch.jsonl")[0]
    check(got["content_sum"] == f"{want * 2 & MASK:016x}", "content")
    check(got["n_rows"] == 180, "rows")
    p = run(tmp, "bench", "prefetch", "x.npy", "--repeats", "1", "subset=10:20",
            "--ahead", "2", "-o", "s.jsonl")
    check(rows(f"{tmp}/s.jsonl")[0]["n_rows"] == 10 and "%" in p.stdout,
          "a subset is not wrong")


def test_formats(tmp):
    p = run(tmp, "bench", "formats", "--samples", "40", "--shape", "16x16x3",
            "--dtype", "uint8", "--repeats", "1")
    got = right(tmp, "formats", len({(r["arm"], r["group"]) for r in
                                     rows(f"{tmp}/formats.jsonl")}), p)
    variants = {r["arm"] for r in got}
    check(variants >= {"npy", "npz", "npz-deflate", "raw", "tfrecord",
                   "indexed_binary", "csv", "jpeg", "png"}, f"{variants}")
    check({r["group"] for r in got} == {"in order", "at random"}, "orders")
    for r in got:
        check(("expected_sum" in r) != (r["arm"] == "jpeg"), r["arm"])
        check(r["disk_bytes"] > 1000 and r["startup_s"] > 0, r["arm"])
    run(tmp, "bench", "formats", "--samples", "50", "--shape", "5",
        "--dtype", "float64", "--repeats", "1", "--formats", "npy,csv", "-n",
        "1", "-o", "f.jsonl")
    check(len(rows(f"{tmp}/f.jsonl")) == 4, "some formats")


def test_shuffle(tmp):
    p = run(tmp, "bench", "shuffle", "--samples", "2000", "--shape", "4",
            "--repeats", "1", "batch_size=50", "--chunk", "20", "--chunks",
            "10")
    got = {r["arm"]: r for r in right(tmp, "shuffle", 4, p)}
    eff = {k: r["quality"]["n_eff"] for k, r in got.items()}
    check(eff["none"] < 5 < eff["block"] < eff["global"], f"n_eff {eff}")
    check(eff["pre-shuffled"] > 20, f"n_eff {eff}")
    check(got["pre-shuffled"]["quality"]["neighbours_kept"] > 0.99 and
          got["global"]["quality"]["neighbours_kept"] < 0.1, "epochs")
    check(all(r["quality"]["exactly_once"] for r in got.values()), "once")


def test_startup(tmp):
    p = run(tmp, "bench", "startup", "--files", "1,5,70", "--repeats", "1",
            "batch_size=8")
    got = right(tmp, "startup", 6, p)
    check([r["n_rows"] for r in got] == [1, 1, 5, 5, 8, 8], "first batches")
    check(all("expected_sum" in r for r in got), "sums")


def test_resume(tmp):
    p = run(tmp, "bench", "resume", *TINY, "--at", "0,40,99", "batch_size=10")
    got = right(tmp, "resume", 9, p)
    check({r["batches_before"] for r in got} == {0, 11, 28}, "places")
    check("Exact" in p.stdout, p.stdout)
    run(tmp, "bench", "resume", *TINY, "sampler=block", "sampler.chunk=5",
        "sampler.chunks=4", "batch_size=10", "-o", "b.jsonl")
    run(tmp, "bench", "resume", *TINY, "batch_size=7", "-o", "odd.jsonl")
    check({r["arm"] for r in rows(f"{tmp}/odd.jsonl")} ==
          {"restored", "read again"}, "an odd batch has no halves")


def test_machine(tmp):
    p = run(tmp, "bench", "mmap", *TINY, "--evict", "--limit", "5kB")
    got = right(tmp, "mmap", 3, p)
    check([r["store"] for r in got[:3]] == ["mmap", "posix", "ram"], "stores")
    check({r["limited_by"] for r in got} == {"dropping pages", "nothing"},
          "how it was limited")
    check(all(r["n_drops"] > 0 for r in got[:2]), "pages are dropped")
    check("not enforced" in p.stdout and "not limited" in p.stdout, p.stdout)
    p = run(tmp, "bench", "mmap", *TINY, "--cgroup", tmp, code=2)
    check(len(p.stderr.splitlines()) == 1, p.stderr)
    p = run(tmp, "bench", "neighbour", *TINY, "--threads", "1,2", "--busy",
            "1", "--alone", "10")
    got = right(tmp, "neighbour", 5, p)
    for r in got:
        check(("work_per_s" in r) == (r["arm"] != "loader alone"), r["arm"])
    check("keeps" not in p.stdout and "no conclusion" in p.stdout, p.stdout)
    p = run(tmp, "bench", "neighbour", *TINY, "--threads", "1,2", "--busy",
            "1", "--alone", "10", "--repeats", "3", "--resume")
    check(p.stdout.count("the loader keeps") == 2, p.stdout)


def test_refuses(tmp):
    """Wrong samples, wrong content: no rate, exit 3."""
    npy(f"{tmp}/x.npy", 64, 8)
    for policy in ("skip", "substitute"):
        p = run(tmp, "bench", "prefetch", "x.npy", "--repeats", "1", "--ahead",
                "1", "store=fault", "store.fail_nth=2", f"on_error={policy}",
                "store.under=posix", "-o", f"{policy}.jsonl", code=3)
        check("skipped or replaced" in p.stdout and "Fastest" not in p.stdout,
              p.stdout)
        check("throughput is not shown" in p.stderr, p.stderr)
    ahead = ["bench", "prefetch", "x.npy", "--repeats", "1", "--ahead"]
    run(tmp, *ahead, "1")
    row = rows(f"{tmp}/prefetch.jsonl")[0]
    row["content_sum"] = "0123456789abcdef"
    row["samples_per_s"] = 123456789
    with open(f"{tmp}/prefetch.jsonl", "w", encoding="utf-8") as f:
        f.write(json.dumps(row) + "\n")
    p = run(tmp, *ahead, "1,2", "--resume", code=3)
    check("0123456789abcdef" in p.stdout and "Fastest" not in p.stdout,
          p.stdout)
    check("123 M" not in p.stdout, "a rate of what is wrong")
    run(tmp, "report", "prefetch.jsonl", "-o", "r.html")
    with open(f"{tmp}/r.html", encoding="utf-8") as f:
        html = f.read()
    check("did not deliver the expected" in html and "123 M" not in html and
          'class="bar"' not in html, "the page shows it")


def test_interrupted(tmp):
    env = dict(os.environ, TMPDIR=tmp)
    with subprocess.Popen(
            [PENSTOCK, "bench", "neighbour", "--samples", "200", "--shape", "4",
             "--alone", "1", "--threads", "1", "epochs=1", "--repeats",
             "1000"], cwd=tmp, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.PIPE, env=env) as p:
        while p.poll() is None and \
                not glob.glob(f"{tmp}/neighbour.jsonl") or \
                not os.path.getsize(f"{tmp}/neighbour.jsonl"):
            pass
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=600)
    check(p.returncode == 130, f"exit {p.returncode}: {err}")
    check("interrupted" in out and "work alone" in out, out)
    check(not glob.glob(f"{tmp}/penstock-bench.*"), "a folder stays")
    check(rows(f"{tmp}/neighbour.jsonl"), "rows so far")


def test_wrong(tmp):
    for args, word in (
            (["prefetch", "--ahead", "1,x"], "list"),
            (["prefetch", "--step", "soon"], "time"),
            (["prefetch", "prefetch=3"], "--ahead"),
            (["batch-size", "-n", "3"], "subset"),
            (["batch-size", "--sizes", "0"], "from 1 to"),
            (["formats", "x.npy"], "its own data"),
            (["formats", "--formats", "npy,xyz"], "xyz"),
            (["formats", "--formats", "jpeg"], "cannot store"),
            (["shuffle", "-s", "some"], "some"),
            (["shuffle", "sampler=block"], "set by the experiment"),
            (["startup", "--files", "0"], "to 10,000,000"),
            (["resume", "--at", "100"], "from 0 to 99"),
            (["mmap", "--limit", "x"], "size"),
            (["neighbour", "--busy", "0"], "--busy"),
            (["neighbour", "--samples", "0"], "--samples"),
            (["prefetch", "--shape", "0x3"], "shape"),
            (["prefetch", "--dtype", "float33"], "float33")):
        p = run(tmp, "bench", *args, code=2)
        check(word in p.stderr, f"{args}: {p.stderr.strip()}")
        check(len(p.stderr.splitlines()) == 1, f"{args}: {p.stderr}")
        check(not glob.glob(f"{tmp}/*.jsonl"), f"{args}: a file")
        check(not glob.glob(f"{tmp}/penstock-bench.*"), f"{args}: a folder")
    run(tmp, "bench", "prefetch", "--dir", f"{tmp}/none", code=4)


main(globals())
