#!/usr/bin/python3
"""Experiments and their reports from end to end: rows against what scipy says
of the same files, runs that are killed, files that are cut off, and the page
in a browser, where there is one."""
import base64
import csv
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main, skip  # noqa: E402

try:
    import anndata
    import numpy as np
    import pandas as pd
    import scipy.sparse as sp
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

PENSTOCK = os.environ["PENSTOCK"]
N, GENES, BATCH = 3000, 200, 64


def run(*args, code=0, cwd=None, **more):
    p = subprocess.run([PENSTOCK, *args], cwd=cwd, capture_output=True,
                       text=True, timeout=600, stdin=subprocess.DEVNULL, **more)
    check(p.returncode == code, f"{' '.join(args)}: exit {p.returncode}, "
          f"not {code}: {p.stderr.strip()[-300:]}")
    return p


def make(tmp, name="cells.h5ad", compression="gzip"):
    """Cells of five plates, one plate after another; rows not in the order of
    their genes."""
    rng = np.random.default_rng(7)
    x = sp.random(N, GENES, 0.1, "csr", np.float32, rng,
                  lambda n: rng.integers(1, 9, n))
    for i in range(N):
        at = slice(x.indptr[i], x.indptr[i + 1])
        order = rng.permutation(at.stop - at.start)
        x.indices[at] = x.indices[at][order]
        x.data[at] = x.data[at][order]
    plate = pd.Categorical.from_codes(np.arange(N) * 5 // N, list("abcde"))
    a = anndata.AnnData(x, obs=pd.DataFrame(
        {"plate": plate}, index=[f"c{i}" for i in range(N)]), dtype=x.dtype)
    a.write_h5ad(f"{tmp}/{name}", compression=compression)
    return x


def rows(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def test_blocks(tmp):
    x = make(tmp)
    grid = ["bench", "blocks", "cells.h5ad", "512 / [1,64]", "16x4", "-B",
            str(BATCH), "format.obs=plate", "--label", "plate"]
    p = run(*grid, "-M", "disk=x", "--repeats", "2", cwd=tmp)
    got = rows(f"{tmp}/blocks.jsonl")
    check(len(got) == 8 * 2 * 2, f"{len(got)} rows")
    check(len(p.stdout.splitlines()) >= 8 * 2 + 2, "no table")
    for r in got:
        name = f"{r['block_chunks']}x{r['chunk_rows']} {r['method']}"
        check(r["block_rows"] == r["block_chunks"] * r["chunk_rows"], name)
        check(r["n_rows"] == N and r["samples"] == N and r["n_cols"] == GENES,
              name)
        check(r["n_batches"] == -(-N // BATCH) and r["batch"] == BATCH, name)
        want = N * GENES * 4 if r["method"] == "dense" else x.nnz * 8
        check(r["payload_bytes"] == want + 4 * N,
              f"{name}: payload {r['payload_bytes']}, not {want + 4 * N}")
        check(r["read_bytes"] > 0 and r["cpu_s"] > 0 and not r["oom"], name)
        check(1e6 < r["peak_memory_bytes"] < 4e9, f"{name}: peak")
        check(1e5 < r["own_memory_bytes"] <= r["peak_memory_bytes"],
              f"{name}: own memory")
        check(0 < r["seconds"] and r["first_batch_s"] <= r["seconds"], name)
        check(abs(r["samples_per_s"] * r["seconds"] - N) < 1, name)
        # without the first batch only where there were ten blocks
        if N >= 10 * r["block_rows"]:
            rest = (N - BATCH) / (r["seconds"] - r["first_batch_s"])
            check(abs(r["samples_per_s_rest"] / rest - 1) < 1e-3, name)
        else:
            check("samples_per_s_rest" not in r, f"{name}: of few blocks")
        o = r["others"]
        check(o["seconds"] > 0 and o["cpus"] >= 1 and o["cpu_s"] >= 0 and
              o["load_average"] >= 0, f"{name}: others {o}")
        check(r["batch_p50_s"] <= r["batch_p99_s"] <= r["batch_max_s"], name)
        check(0.099 < r["slow_tenth_share"] <= 1, name)
        check(r["meta"] == {"disk": "x"} and "drop_first" not in r, name)
        q = r["quality"]
        check(q["complete_epoch"] and not q["repeated"] and not q["missing"],
              name)
        check(abs(q["label"]["entropy"] - np.log2(5)) < 0.01, f"{name}: H")
        check(0.5 < q["n_eff"] / q["n_eff_expected"] < 2, f"{name}: n_eff")
    # the chunk of a whole block is the least mixed, single rows the most
    by = {r["chunk_rows"]: r["quality"]["n_eff"] for r in got}
    check(by[512] < by[64] < by[8], f"n_eff {by}")
    check(sorted({r["repeat"] for r in got}) == [1, 2], "repeats")
    # repeats are in turns
    check([r["repeat"] for r in got] == [1] * 16 + [2] * 16, "interleaved")


def test_choices(tmp):
    make(tmp)
    run("bench", "blocks", "cells.h5ad", "8x16", "-m", "csr", "-n", "3",
        "--cold", "--warm", "-o", "r.jsonl", "--no-quality", "threads=1",
        "--repeats", "1", cwd=tmp)
    got = rows(f"{tmp}/r.jsonl")
    check([r["cold"] for r in got] == [True, False], "cold and warm")
    for r in got:
        check(r["method"] == "csr", "-m")
        check(r["n_batches"] == 3 and r["n_rows"] == 3 * 1024 or
              r["n_batches"] == 3 and r["n_rows"] == N, "-n")
        check(r["threads"] == 1 and "quality" not in r, "threads")
        check("resident" in r, "whether it was cold")
    check(got[1]["resident"] > 0.99, "warm is warm")
    # a format that makes one thing only
    np.save(f"{tmp}/x.npy", np.zeros((500, 4), np.float32))
    run("bench", "blocks", "x.npy", "4x16", "-o", "n.jsonl", "--json", cwd=tmp)
    got = rows(f"{tmp}/n.jsonl")
    check([r["method"] for r in got] == ["as is"] * 3, "npy")
    check(got[0]["n_cols"] == 4 and got[0]["unit"] == "samples", "npy")


def test_resume(tmp):
    make(tmp)
    grid = ["bench", "blocks", "cells.h5ad", "256/[1,4]", "-m", "csr",
            "--repeats", "1"]
    run(*grid, "-n", "1", cwd=tmp)
    run(*grid, "-n", "1", "--resume", cwd=tmp)
    check(len(rows(f"{tmp}/blocks.jsonl")) == 3, "resume ran again")
    run(*grid, "-n", "1", "--resume", "--repeats", "2", cwd=tmp)
    check(len(rows(f"{tmp}/blocks.jsonl")) == 6, "resume with more repeats")
    run(*grid, "-n", "2", "--resume", cwd=tmp)
    check(len(rows(f"{tmp}/blocks.jsonl")) == 9, "other settings are others")
    with open(f"{tmp}/blocks.jsonl", "a", encoding="utf-8") as f:
        f.write('{"half": ')
    p = run(*grid, "8x8", "-n", "1", "--resume", cwd=tmp)
    check("1 line skipped" in p.stderr and "line 10" in p.stderr, p.stderr)
    with open(f"{tmp}/blocks.jsonl", encoding="utf-8") as f:
        lines = f.read().splitlines()
    check(len(lines) == 11 and json.loads(lines[10])["chunk_rows"] == 8,
          "a row after a half line")
    p = run("report", "blocks.jsonl", "-o", "r.html", cwd=tmp)
    check("1 line skipped" in p.stderr, "report warns")


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(c) for c in f.read().split()]
    except OSError:
        return []


def worker_of(pid):
    """A child that is loading, once there is one."""
    while True:
        for c in children(pid):
            for comm in glob.glob(f"/proc/{c}/task/*/comm"):
                try:
                    with open(comm, encoding="ascii") as f:
                        if f.read().startswith("pen-worker"):
                            return c
                except OSError:
                    pass


def test_killed(tmp):
    """A run that is killed leaves a row and the grid goes on; Ctrl-C ends it
    with the rows so far."""
    if not os.path.exists("/proc/self/task/%d/children" % os.getpid()):
        return
    make(tmp)
    with subprocess.Popen(
            [PENSTOCK, "bench", "blocks", "cells.h5ad", "8x8", "8x16", "-m",
             "csr", "epochs=1000000000", "-o", "k.jsonl", "--repeats", "1"],
            cwd=tmp,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        first = worker_of(p.pid)
        os.kill(first, signal.SIGKILL)
        second = first
        while second == first:
            second = worker_of(p.pid)
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=600)
    check(p.returncode == 128 + signal.SIGTERM, f"exit {p.returncode}: {err}")
    check("out of memory" in out and "interrupted" in out, out)
    check(not os.path.exists(f"/proc/{second}") or
          second not in children(p.pid), "the child stays")
    got = rows(f"{tmp}/k.jsonl")
    check([r["oom"] for r in got] == [True] and got[0]["chunk_rows"] == 8,
          f"rows after a kill: {got}")
    run("report", "k.jsonl", "-o", "k.html", cwd=tmp)


def content(x, ids=None):
    """The sum that all readers must come to."""
    mask = (1 << 64) - 1
    per_row = np.diff(x.indptr)
    r = int((np.arange(N) * per_row).sum())
    c = int(x.indices.sum())
    v = int(x.data.astype(np.float32).view(np.uint32).sum(dtype=np.uint64))
    return "%016x" % ((r * 3 & mask) ^ (c * 5 & mask) ^ v)


def test_read_chunks(tmp):
    x = make(tmp)
    p = run("bench", "read-chunks", "cells.h5ad", "-c", "700", "--repeats",
            "1", cwd=tmp)
    got = rows(f"{tmp}/read-chunks.jsonl")
    check(len(got) == 12, f"{len(got)} rows")
    check(len({(r["shuffle"], r["reader"]) for r in got}) == 12, "a grid")
    for r in got:
        name = f"{r['shuffle']} {r['reader']}"
        check(r["nnz"] == x.nnz, f"{name}: {r['nnz']}, not {x.nnz}")
        check(r["content_sum"] == content(x), f"{name}: content")
        check(r["n_rows"] == N and r["chunk_rows"] == 700, name)
    check("All runs agree" in p.stdout, "agreement is said")
    check("no conclusion is drawn" in p.stdout and
          "Compared with" not in p.stdout, "one run of each")
    run("bench", "read-chunks", "cells.h5ad", "-s", "global", "-R", "csr",
        "-R", "raw", "-n", "2", "-c", "100", "-o", "g.jsonl", cwd=tmp)
    got = rows(f"{tmp}/g.jsonl")
    check([r["reader"] for r in got] == ["raw", "csr"] * 3, "-R, in turns")
    check(len({r["content_sum"] for r in got}) == 1, "the same part")
    np.save(f"{tmp}/x.npy", np.zeros((5, 4), np.float32))
    p = run("bench", "read-chunks", "x.npy", cwd=tmp, code=3)
    check("format.output=csr" in p.stderr, p.stderr)


def test_wrong(tmp):
    make(tmp)
    for args, code, word in (
            (["bench"], 2, "no experiment given"),
            (["bench", "block"], 2, "did you mean 'blocks'"),
            (["bench", "blocks"], 2, "PATH"),
            (["bench", "blocks", "cells.h5ad", "1000/3"], 2, "divided"),
            (["bench", "blocks", "cells.h5ad", "8x8", "sampler=shuffle"], 2,
             "set by the experiment"),
            (["bench", "blocks", "none.h5ad", "8x8"], 4, "none.h5ad"),
            (["bench", "blocks", "cells.h5ad", "8x8", "-M", "a b=1"], 2,
             "KEY=VALUE"),
            (["bench", "blocks", "cells.h5ad", "8x8", "-m", "coo"], 2, "csr"),
            (["bench", "blocks", "cells.h5ad", "8x8", "epochs=0"], 2, "ends"),
            (["bench", "blocks", "cells.h5ad", "8x8", "-o", "no/r"], 4, "no/r"),
            (["bench", "blocks", "cells.h5ad", "8x8", "--label", "plat"], 2,
             "plat"),
            (["bench", "blocks", "cells.h5ad", "8x8", "format.genes=@no"], 4,
             "no"),
            (["bench", "read-chunks", "cells.h5ad", "-s", "some"], 2, "some"),
            (["report"], 2, "no FILE given"),
            (["report", "none.jsonl"], 4, "none.jsonl")):
        p = run(*args, code=code, cwd=tmp)
        check(word in p.stderr, f"{args}: {p.stderr.strip()}")
        check(len(p.stderr.splitlines()) == 1, f"{args}: {p.stderr}")
    check(not glob.glob(f"{tmp}/*.jsonl"), "a failed run leaves a file")
    with open(f"{tmp}/empty.jsonl", "w", encoding="utf-8") as f:
        f.write("\n")
    run("report", "empty.jsonl", "-o", "e.html", code=4, cwd=tmp)
    check(not os.path.exists(f"{tmp}/e.html"), "a page of nothing")


# Does what a reader of the page would, and writes down what came of it.
PROBE = """
<script>
var out = {};
var wide = document.querySelector("svg.wide");
var marks = wide.querySelectorAll(".mark");
out.marks = marks.length;
out.hollow = wide.querySelectorAll(".mark.hollow").length;
out.squares = wide.querySelectorAll(".mark rect").length;
out.visible = getComputedStyle(wide).display !== "none";
marks[0].focus();
// a window without the focus, as on a busy machine, is told of none
if (!document.hasFocus()) marks[0].dispatchEvent(new FocusEvent("focus"));
out.tip = document.getElementById("tip").textContent;
out.lit = document.querySelectorAll("tr.on").length;
marks[0].dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
out.moved = document.activeElement === marks[1];
var table = document.querySelector("table");
var at = Array.prototype.findIndex.call(table.tHead.rows[0].cells,
  function (c) { return c.textContent === "samples/s"; });
table.tHead.rows[0].cells[at].firstElementChild.click();
out.sorted = Array.prototype.map.call(table.tBodies[0].rows,
  function (r) { return Number(r.cells[at].getAttribute("data-v")); });
out.rows = table.tBodies[0].rows.length;
out.overflow = document.documentElement.scrollWidth > innerWidth;
var ids = Array.prototype.map.call(document.querySelectorAll("[id]"),
  function (e) { return e.id; });
out.ids = ids.length === new Set(ids).size;
out.outside = [];
document.querySelectorAll("svg.wide text, svg.narrow text").forEach(
  function (t) {
    var svg = t.closest("svg");
    if (getComputedStyle(svg).display === "none") return;
    var b = t.getBBox(), v = svg.viewBox.baseVal;
    if (b.x < 0 || b.x + b.width > v.width || b.y < 0 ||
        b.y + b.height > v.height) out.outside.push(t.textContent);
  });
var e = document.createElement("pre");
e.id = "probe";
e.textContent = JSON.stringify(out);
document.body.appendChild(e);
</script>
"""


def hash_of(script):
    """As a page's policy names a script that may run."""
    digest = hashlib.sha256(script.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def browse(tmp, page, width):
    """What the probe says, and what the console said."""
    with open(page, encoding="utf-8") as f:
        html = f.read()
    script = re.search(r"<script>(.*)</script>", PROBE, re.S).group(1)
    html = html.replace("script-src ", f"script-src '{hash_of(script)}' ")
    with open(f"{tmp}/probe.html", "w", encoding="utf-8") as f:
        f.write(html.replace("</body>", PROBE + "</body>"))
    p = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu",
         "--enable-logging=stderr", f"--user-data-dir={tmp}/chromium",
         f"--window-size={width},900", "--dump-dom",
         f"file://{tmp}/probe.html"],
        capture_output=True, text=True, timeout=600)
    m = re.search(r'<pre id="probe">(.*?)</pre>', p.stdout, re.S)
    check(m, f"the page's script did not run: {p.stderr[-300:]}")
    said = [line for line in p.stderr.splitlines() if "CONSOLE" in line]
    check(not said, f"console: {said}")
    text = m.group(1) if m else "{}"
    return json.loads(text.replace("&lt;", "<").replace("&gt;", ">")
                      .replace("&amp;", "&"))


def test_report(tmp):
    name = "<script>alert(1)<,script>&\"'.h5ad"
    make(tmp, name)
    run("bench", "blocks", f"{tmp}/{name}", "256 / [1,8]", "-M",
        "note=</main><script>", "--cold", "--warm", "-n", "2", "--repeats",
        "1", cwd=tmp)
    run("bench", "read-chunks", f"{tmp}/{name}", "-s", "none", "--repeats",
        "1", cwd=tmp)
    p = run("report", "blocks.jsonl", "read-chunks.jsonl", "-o", "r.html",
            "--csv", "r.csv", cwd=tmp)
    got = rows(f"{tmp}/blocks.jsonl")
    check("20 runs" in p.stdout, p.stdout)
    with open(f"{tmp}/r.csv", encoding="utf-8", newline="") as f:
        table = list(csv.DictReader(f))
    check(len(table) == 20 and table[0]["path"] == got[0]["path"], "CSV")
    check(float(table[3]["samples_per_s"]) == got[3]["samples_per_s"], "CSV")
    check(table[0]["meta.note"] == "</main><script>", "CSV")
    with open(f"{tmp}/r.html", encoding="utf-8") as f:
        html = f.read()
    check(html.count("<script") == 1 and "</main><script>" not in html,
          "escaping")
    check("://" not in re.sub(r"w3\.org", "", html), "the page asks for more")
    script = re.search(r"<script>(.*)</script>", html, re.S).group(1)
    check(f"script-src '{hash_of(script)}'\"" in html,
          "only the page's own script may run")
    if not shutil.which("chromium"):
        skip("chromium is not installed")
        return
    for width in (1440, 500):
        got_it = browse(tmp, f"{tmp}/r.html", width)
        check(got_it.get("marks") == 16, f"marks {got_it}")
        check(got_it.get("hollow") == 8 and got_it.get("squares") == 8,
              f"marks {got_it}")
        check(not got_it.get("overflow") and not got_it.get("outside"),
              f"{width}: {got_it}")
        check(got_it.get("ids"), "an id is there twice")
        check(got_it.get("visible") == (width > 640), "wide or narrow")
        check(got_it.get("rows") == 16, "rows")
        check(got_it.get("sorted") == sorted(got_it.get("sorted", [0])),
              "sorting")
        if width > 640:
            check("cells/s" in got_it["tip"] and got_it["lit"] == 1 and
                  got_it["moved"], f"focus: {got_it}")


main(globals())
