#!/usr/bin/python3
"""Results of earlier revisions have fewer fields: report and compare accept
them, and print no NaN."""
import copy
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
STEP = 5 if os.environ.get("SANITIZE") else 1   # those are slow
NO_NUMBER = re.compile(r"(?<![A-Za-z])-?(nan|inf)(?![A-Za-z])", re.I)


def run(*args):
    p = subprocess.run([PENSTOCK, *args], capture_output=True, text=True,
                       timeout=600)
    return p.returncode, p.stdout, p.stderr


def without(doc):
    """Copies of the document without one field, at any depth; of lists, only
    the first element is changed."""
    def paths(x, at):
        if isinstance(x, dict):
            for k in x:
                yield at + [k]
                yield from paths(x[k], at + [k])
        elif isinstance(x, list) and x and isinstance(x[0], dict):
            yield from paths(x[0], at + [0])

    for path in paths(doc, []):
        if len(path) > 3 or path[0] in ("config", "overrides"):
            continue
        d = copy.deepcopy(doc)
        x = d
        for k in path[:-1]:
            x = x[k]
        del x[path[-1]]
        yield ".".join(map(str, path)), d


def look(path, name, new, page):
    """A command may reject it, with one line that gives the reason."""
    report = ["report", name, "-o", "p.html"] if page else ["report", name]
    for args in (report, ["compare", name, new]):
        code, out, err = run(*args)
        if page and args == report and not code:
            with open("p.html", encoding="utf-8") as f:
                out = re.sub(r"<script>.*?</script>", "", f.read(),
                             flags=re.S)
        bad = NO_NUMBER.search(out)
        check(not bad, f"without {path}: {args[0]}: {bad and bad.group()} in "
              f"{bad and out[max(0, bad.start() - 80):bad.end() + 20]!r}")
        yield args[0], code, err


def go_through(doc, needed, every):
    with open("new.json", "w", encoding="utf-8") as f:
        json.dump(doc, f)
    for i, (path, old) in enumerate(without(doc)):
        if i % STEP:
            continue
        with open("old.json", "w", encoding="utf-8") as f:
            json.dump(old, f)
        for command, code, err in look(path, "old.json", "new.json",
                                       i % every == 0):
            check(0 <= code < 128, f"without {path}: {command}: exit {code}")
            if code == 0:
                check("Sanitizer" not in err, f"without {path}: {err}")
                continue
            check(path in needed, f"without {path}: {command}: {err}")
            check(len(err.splitlines()) == 1 and "old.json" in err,
                  f"without {path}: {command}: {err}")


def test_runs(tmp):
    os.chdir(tmp)
    code, _, err = run("run", "default_small", "train.computation_time=0.001",
                       "evaluation.eval_time=0.001", "train.epochs=2",
                       "dataset.num_files_train=16", "workflow.checkpoint=true",
                       "output.folder=out")
    check(code == 0, err)
    with open("out/result.json", encoding="utf-8") as f:
        doc = json.load(f)
    go_through(doc, ("schema", "totals", "epochs"), 4)
    bare = {k: doc[k] for k in ("schema", "totals", "epochs")}
    go_through(bare, ("schema", "totals", "epochs"), 1)


def test_loads(tmp):
    os.chdir(tmp)
    run("gen", "d", "files=64", "shape=64")
    code, out, err = run("load", "d", "epochs=4", "batch_size=16", "--json")
    check(code == 0, err)
    go_through(json.loads(out), ("schema", "epochs"), 2)


main(globals())
