#!/usr/bin/python3
"""The tutorials run as they are written, the examples do what they say, and
the documentation builds with every link leading somewhere."""
import glob
import os
import re
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

SOURCE = os.environ["SOURCE"]
BUILD = os.environ["BUILD"]
PENSTOCK = os.environ["PENSTOCK"]
EXAMPLES = f"{SOURCE}/examples"
# as `mpirun -n 2 ...` is written in the tutorials, on any machine
MPIRUN = "mpirun --allow-run-as-root --oversubscribe"


def program(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def ready(tmp):
    """The environment of someone who has installed Penstock."""
    bin_dir = f"{tmp}/.bin"
    os.makedirs(bin_dir)
    os.symlink(PENSTOCK, f"{bin_dir}/penstock")
    os.symlink(f"{BUILD}/examples/fvecs_penstock", f"{bin_dir}/fvecs_penstock")
    os.symlink("/usr/bin/python3", f"{bin_dir}/python3")
    program(f"{bin_dir}/mpirun", "#!/bin/bash\n"
            f"PATH=${{PATH#{bin_dir}:}} mpirun=$(command -v mpirun) || exit 9\n"
            f"export PATH={bin_dir}:$PATH\n"
            f"exec \"$mpirun\" {MPIRUN.split(' ', 1)[1]} \"$@\"\n")
    return dict(os.environ, PATH=f"{bin_dir}:{os.environ['PATH']}",
                PYTHONPATH=f"{BUILD}/python", HOME=tmp, USER="user")


def run(words, tmp, env):
    p = subprocess.run(["bash", "-euo", "pipefail", "-c", words], cwd=tmp,
                       env=env, capture_output=True, text=True, timeout=600,
                       stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout + p.stderr


def blocks(text):
    """(name of the file or None, language, content), in order."""
    found = re.findall(r"(?:<!-- file: (\S+) -->\n)?^```(\w+)\n(.*?)^```",
                       text, re.M | re.S)
    return [(name or None, kind, body) for name, kind, body in found]


def tutorial(name, tmp):
    env = ready(tmp)
    ran = 0
    for file, kind, body in blocks(read(f"{SOURCE}/docs/tutorials/{name}.md")):
        if file:
            program(f"{tmp}/{file}", body)
        elif kind == "sh":
            code, out = run(body, tmp, env)
            check(code == 0, f"{name}: exit {code} of\n{body}{out[-1500:]}")
            ran += 1
        elif kind == "c":
            for line in body.splitlines():
                check(line.strip() in read(f"{EXAMPLES}/own_format.c"),
                      f"{name}: not in own_format.c: {line}")
    check(ran, f"{name}: no commands")


# A test each, so that one can be run alone.
for path in sorted(glob.glob(f"{SOURCE}/docs/tutorials/*.md")):
    stem = os.path.splitext(os.path.basename(path))[0]
    if stem != "README":
        globals()["test_" + stem.replace("-", "_")] = \
            lambda tmp, stem=stem: tutorial(stem, tmp)


def test_tutorials_are_listed(tmp):
    index = read(f"{SOURCE}/docs/tutorials/README.md")
    for file in glob.glob(f"{SOURCE}/docs/tutorials/*.md"):
        name = os.path.basename(file)
        check(name == "README.md" or f"({name})" in index,
              f"docs/tutorials/README.md does not list {name}")


def test_examples(tmp):
    env = ready(tmp)
    for words, expected in (
            ("penstock gen rows.npy samples=1000 shape=16", "1,000 samples"),
            (f"{BUILD}/examples/loop rows.npy batch_size=64 shuffle=true",
             "1000 samples, 64000 bytes"),
            (f"! {BUILD}/examples/loop nothing.npy", "P101"),
            (f"! {BUILD}/examples/loop rows.npy batch_sise=64", "P001"),
            (f"{EXAMPLES}/resume.py rows.npy", "1000 samples, each once"),
            (f"mpirun -n 3 {EXAMPLES}/ranks.py rows.npy",
             "3 ranks loaded 1000 samples"),
            (f"{EXAMPLES}/dictionary.py", "1 ranks, 800 sequences"),
            (f"mpirun -n 2 {EXAMPLES}/dictionary.py",
             "2 ranks, 800 sequences"),
            ("penstock gen cells.h5ad samples=500 genes=60", "500 cells"),
            (f"{EXAMPLES}/cells.py cells.h5ad", "epoch 2: 500 cells"),
            ("penstock gen dna genome.fa size=50kB length=400", "genome.fa"),
            (f"{EXAMPLES}/tokens.py genome.fa", "a batch of 64 windows"),
            (f"{EXAMPLES}/ci.sh rows.npy kept", "kept the first results"),
            (f"{EXAMPLES}/ci.sh rows.npy kept || [ $? = 5 ]", "throughput"),
            ("mkdir xy && cp rows.npy xy/x.npy && python3 -c 'import numpy; "
             "numpy.save(\"xy/y.npy\", numpy.arange(1000) % 2)'", ""),
            (f"{EXAMPLES}/pytorch.py xy 1", "epoch 1: 1000 samples")):
        code, out = run(words, tmp, env)
        check(code == 0 and expected in out,
              f"{words}: exit {code}, wanted '{expected}': {out[-800:]}")
    tested = read(__file__)
    for file in os.listdir(EXAMPLES):
        name = file.removesuffix(".c")
        check(name in tested or name in ("CMakeLists.txt", "doc2vec"),
              f"examples/{file} is not run")


def test_own_format_refuses(tmp):
    """Damaged files of the example's format are refused in one line."""
    env = ready(tmp)
    good = b"\2\0\0\0" + bytes(8)
    for name, data, says in (
            ("cut", good * 3 + good[:7], "whole number"),
            ("short", b"\2\0", "not a record"),
            ("none", bytes(12), "0 dimensions"),
            ("huge", b"\xff" * 12, "dimensions"),
            ("mixed", good + b"\1\0\0\0" + bytes(8), "the last one 1")):
        with open(f"{tmp}/{name}.fvecs", "wb") as f:
            f.write(data)
        code, out = run(f"fvecs_penstock load {name}.fvecs", tmp, env)
        check(code == 3 and says in out and out.count("\n") == 1,
              f"{name}: exit {code}: {out}")


def test_documentation(tmp):
    env = dict(ready(tmp), PENSTOCK=PENSTOCK)
    code, out = run(f"{shlex.quote(SOURCE)}/scripts/docs html {tmp}/site && "
                    f"{shlex.quote(SOURCE)}/scripts/docs man {tmp}/man && "
                    f"man -l {tmp}/man/man3/pen_loader_next.3", tmp, env)
    check(code == 0, f"scripts/docs: exit {code}: {out[-1500:]}")
    for page, has in (("index", "Penstock"), ("errors", "P042"[:2]),
                      ("tutorials/pytorch", "DataLoader"),
                      ("reference/settings", "batch_size="),
                      ("reference/commands/load", "samples/s"),
                      ("reference/formats/npz", "format.crc="),
                      ("reference/c-api", "pen_loader_next"),
                      ("reference/python-api", "CellLoader")):
        path = f"{tmp}/site/{page}.html"
        check(os.path.exists(path) and has in read(path), f"{page}: no {has}")


main(globals())
