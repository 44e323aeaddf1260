#!/usr/bin/python3
"""Advice works when it is followed: every example of --help and every command
in the documentation runs, on small data made here; commands, flags and options
that texts and messages name are there; what an error proposes helps."""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main, skip  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
SOURCE = os.environ["SOURCE"]
BUILD = os.environ["BUILD"]

# Examples are made smaller: what they ask for is tried, not how much of it.
SMALLER = [
    (r"(gen .*)\bsamples=\d+[kM]\b", r"\1samples=24"),
    (r"\bvalues=\d+k?\b", r"values=24"),
    (r"(--samples|--rows|--columns) [\d.e]+k?\b", r"\1 512"),
    (r"\bfiles=\d+k?\b", "files=2"), (r"--files [\d,k]+", "--files 1,2"),
    (r"\bgenes=\d+k?\b", "genes=60"),
    (r"\b(length)=\d+[kM]\b", r"\1=500"), (r"\bsize=\S+", "size=20kB"),
    (r"--sizes 0\S+", "--sizes 20kB"),
    (r"--size \S+", "--size 20kB"), (r"--block 3520000", "--block 1kB"),
    (r"--seconds \d+", "--seconds 1"), (r"--steps \d+", "--steps 2"),
    (r"\bsteps=\d+", "steps=2"), (r"\bnodes=[\d,]+", "nodes=1,2"),
    (r"--repeats \d+", "--repeats 1"), (r"\bmemory=\dGB", "memory=64MB"),
    (r"--limit 256MB", "--limit 64kB"), (r"--dir \S+", "--dir ."),
    (r"/tmp/data", "tmp-data"), (r"shape=3x224x224", "shape=4x4"),
    (r"^(penstock doctor) /data$", r"\1 data"),
    # no process serves the dictionary `train` here; values are plain numbers
    (r"ddict:train(\.dict)?\b.*", r"ddict:train.dict"),
    (r"TIME$", "t1"), (r"2026-11-16-08-36-14", "t1"),
]


def command(words, cwd, seconds=None):
    """Runs it in a shell; after some seconds it is interrupted: then it was
    under way, which is enough."""
    env = dict(os.environ, PATH=f"{cwd}/bin:{os.environ['PATH']}",
               TMPDIR=cwd)
    stop = f"timeout -s INT {seconds} " if seconds else ""
    return subprocess.run(["bash", "-c", stop + words], cwd=cwd, env=env,
                          capture_output=True, text=True, timeout=900,
                          stdin=subprocess.DEVNULL)


def penstock(*args, cwd):
    return subprocess.run([PENSTOCK, *args], cwd=cwd, capture_output=True,
                          text=True, timeout=600, stdin=subprocess.DEVNULL)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def commands():
    """{name: help} of all, those below others as "bench blocks"."""
    def help_of(name):
        p = penstock(*name.split(), "--help", cwd="/")
        check(p.returncode == 0, f"{name} --help: exit {p.returncode}")
        return p.stdout
    out = {"": help_of("")}
    for name in re.findall(r"^  ([a-z]\w*) {2,}", out[""], re.M):
        out[name] = help_of(name)
        for below in re.findall(rf"^  ({name} [\w-]+) {{2,}}", out[name],
                                re.M):
            out[below] = help_of(below)
    return out


def documents():
    return [f"{SOURCE}/README.md", f"{SOURCE}/CONTRIBUTING.md",
            *sorted(glob.glob(f"{SOURCE}/docs/*.md"))]


def examples():
    """Whole commands of help and documentation, in their order: one may read
    what the one before it made."""
    found = []
    for text in commands().values():
        found += re.findall(r"^ {2}((?:mpirun -n \d+ )?penstock .*)$", text,
                            re.M)
    for path in documents():
        for line in re.findall(r"^ {4}(?:\$ )?((?:mpirun -n \w+ )?penstock "
                               r".*)$", read(path), re.M):
            # what it does stands behind it, after # or some space
            found.append(re.split(r"\s+#|\s{3,}", line)[0])
    return [e for e in dict.fromkeys(found) if "..." not in e]


def make_data(tmp):
    os.makedirs(f"{tmp}/bin")
    os.symlink(PENSTOCK, f"{tmp}/bin/penstock")
    # the ranks of one machine; without mpirun, one process
    with open(f"{tmp}/bin/mpirun", "w", encoding="utf-8") as f:
        f.write("#!/bin/bash\nshift 2\n"
                f"PATH=${{PATH#{tmp}/bin:}}\n"
                "command -v mpirun >/dev/null && set -- mpirun "
                "--allow-run-as-root --oversubscribe -n 2 "
                f"{shlex.quote(PENSTOCK)} \"${{@:2}}\" ||\n"
                f"set -- {shlex.quote(PENSTOCK)} \"${{@:2}}\"\n"
                "exec \"$@\"\n")
    os.chmod(f"{tmp}/bin/mpirun", 0o755)
    for line in """
        data files=200 shape=8x8
        x.npy samples=600 shape=8
        images format=jpeg files=64 shape=16x16x3
        pictures format=png files=8 shape=16x16x3
        photos/a format=jpeg files=8 shape=40x30x3
        photos/b format=jpeg files=8 shape=30x40x3
        cells.h5ad samples=400 genes=60
        tissue.h5ad samples=400 genes=60
        a.h5ad samples=40 genes=30 seed=1
        b.h5ad samples=40 genes=30 seed=2
        tissue format=h5ad files=2 samples=60 genes=40 overlap=0.5
        dna reads.txt size=50kB length=40
        dna seqs.txt size=50kB length=40
        dna genome.fa size=50kB length=400
        dna reads/r.fa size=20kB length=60
        dna corpus/c.fa size=20kB length=60
        dna tokens/t.fa size=20kB length=60
        """.strip().splitlines():
        words = line.split()
        where = os.path.dirname(words[1])
        if where:
            os.makedirs(f"{tmp}/{where}", exist_ok=True)
        p = penstock("gen", *words, cwd=tmp)
        check(p.returncode == 0, f"gen {line}: {p.stderr}")
    p = penstock("ddict", "load", "data", "--save", "train.dict", cwd=tmp)
    check(p.returncode == 0, f"ddict load: {p.stderr}")
    with open(f"{tmp}/reads.fastq", "w", encoding="utf-8") as f:
        for i in range(200):
            f.write(f"@r{i}\n{'ACGT' * 8}\n+\n{'I' * 32}\n")
    small = ["dataset.data_folder=made", "dataset.num_files_train=14", "train.epochs=2",
             "dataset.record_length_bytes=4096",
             "train.computation_time=0.001", "dataset.record_length_bytes_"
             "stdev=0", "dataset.record_length_bytes_resize=4096"]
    for run in ("unet3d/t1", "unet3d/t2", "before/t1", "before/t2",
                "after/t1", "after/t2"):
        p = penstock("run", "unet3d_small", *small, "workflow.checkpoint="
                     "false", f"output.folder=runs/{run}", cwd=tmp)
        check(p.returncode == 0, f"run: {p.stderr}")
    os.symlink("runs/before", f"{tmp}/cold")
    os.symlink("runs/after", f"{tmp}/warm")
    for name in ("a", "b"):
        penstock("load", "data", "-o", f"{name}.json", "epochs=3", cwd=tmp)
    yaml = penstock("config", "unet3d_small", "--no-origins", *small,
                    cwd=tmp).stdout
    os.makedirs(f"{tmp}/DIR/workload")
    for name in ("my.yaml", "DIR/workload/mine.yaml"):
        with open(f"{tmp}/{name}", "w", encoding="utf-8") as f:
            f.write(yaml)


def smaller(example):
    for pattern, by in SMALLER:
        example = re.sub(pattern, by, example)
    if re.search(r"penstock run \w+_(small|h100)\b", example) and \
            "dry-run" not in example:
        example += " --dry-run"  # which fails where the run would
    if re.search(r"penstock (bench|sweep)\b", example) and \
            "--repeats" not in example:
        example = re.sub(r"( && |$)", r" --repeats 1\1", example, count=1)
    if "penstock capacity" in example:
        example += " --seconds 0.1 --max 2"
    if re.search("penstock (sweep|capacity) [a-z0-9]+_small", example):
        example += " storage.storage_root=made"
    if "penstock convert" in example:
        example += " --force"
    if "penstock simulate data/" in example:
        example += " seconds=1"
        if "storage=" not in example:  # what was just made may be in memory
            example += " storage=1GB/s,1ms"
    if "penstock tune" in example:
        example += " --dry-run"
    return example


THINGS = ("accelerator|arm|array|batch|cell|checkpoint|chunk|column|epoch|"
          "field|file|gene|key|letter|line|machine|node|number|process|rank|"
          "read|record|result|row|run|sample|sequence|setting|shard|step|"
          "thread|time|token|value|word|worker")
# What nobody should have to read.
WRONG = {
    "1 of several": rf"(?<![\w.,x=])1 (emulated )?({THINGS})(s|es)\b(?! file)",
    "a time in too small a unit": r"\b\d{4,}(\.\d+)? (ns|us|ms)\b",
    "bytes not counted in a unit": r"\b\d{5,} bytes\b|\b\d{4,} [kMG]B\b",
    "a change that is no percentage": r"[+-]\d{4,}(\.\d+)? %",
    "a number not grouped": r"(?<![\w.:/=-])\d{6,}(?![\w.:/-])",
}


def check_units(words, text):
    if "--json" in words or "penstock config" in words or "{" in text[:2]:
        return
    for what, pattern in WRONG.items():
        found = re.search(pattern, text)
        check(not found, f"{words}: {what}: {found and found.group()!r} in "
              f"{text[max(0, found.start() - 40):][:90] if found else ''!r}")
    units = set(re.findall(r"\d ([kKMG]i?B)\b", text))
    check(len({len(u) for u in units}) < 2, f"{words}: units {units}")


def test_documents_have_units(tmp):
    for path in documents():
        for what in ("1 of several", "a time in too small a unit",
                     "a change that is no percentage"):
            found = re.search(WRONG[what], read(path))
            check(not found, f"{path}: {what}: {found and found.group()!r}")


def test_examples(tmp):
    make_data(tmp)
    if not shutil.which("mpirun"):
        skip("mpirun is not installed")
    found = examples()
    check(len(found) > 100, f"{len(found)} examples")
    for e in found:
        words = smaller(e)
        serve = "--serve" in words
        if re.search(r"ddict stat train$", words):
            words = (f"{PENSTOCK} ddict load data ddict.name=train --serve "
                     ">/dev/null 2>&1 & pid=$!; until "
                     f"{words}; do kill -0 $pid || exit 9; done; rc=$?; "
                     "kill -INT $pid; wait $pid; exit $rc")
            words = f"bash -c {shlex.quote(words)}"
        where = tmp
        if "penstock gen" in words and "tmp-data" not in words:
            where = tempfile.mkdtemp(dir=tmp)  # where nothing is yet
            os.symlink(f"{tmp}/bin", f"{where}/bin")
        p = command(words, where, 2 if serve or "penstock bench" in words
                    else None)
        ok = p.returncode in (0, 124, 130) or \
            ("--fail-if" in e and p.returncode == 5)
        check_units(words, p.stdout + p.stderr)
        check(ok, f"{e}: exit {p.returncode} of `{words}`: "
              f"{p.stderr.strip()[-300:]}")


def strings():
    """(file, text) of all texts in the sources, joined as the compiler does."""
    one = r'"(?:[^"\\\n]|\\.)*"'
    for path in sorted(glob.glob(f"{SOURCE}/src/*/*.[ch]")):
        text = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
        for m in re.finditer(rf"{one}(?:\s*(?:PRI\w+\s*)?{one})*", text):
            yield (os.path.relpath(path, SOURCE),
                   "".join(s[1:-1] for s in re.findall(one, m.group())),
                   text[:m.start()].endswith(".help = "))


def named():
    """(where, command) of all that texts name between backticks."""
    for path in (*documents(), f"{SOURCE}/CHANGELOG.md"):
        for c in re.findall(r"`(?:mpirun -n \w+ )?penstock ([^`]+)`",
                            read(path)):
            yield os.path.basename(path), c
    for path, text, _ in strings():
        for c in re.findall(r"`(?:mpirun -n \w+ )?penstock ([^`]+)`", text):
            yield path, c


def test_named_commands_and_flags_are_there(tmp):
    have = commands()
    for where, text in named():
        words = re.split(r"[\s|]+", text.replace("\\n", " "))
        name = words[0]
        if name.isupper() or name.startswith(("--", "%")):
            continue
        check(name in have, f"{where}: there is no `penstock {text}`")
        if len(words) > 1 and f"{name} {words[1]}" in have:
            name = f"{name} {words[1]}"
        for flag in re.findall(r"(?<!\S)(--?[a-z][\w-]*)", text):
            check(re.search(rf"^  {flag}\b", have.get(name, ""), re.M) or
                  flag == "--help", f"{where}: `penstock {text}` has a flag "
                  "that is not there")


def registry():
    out = {}
    for kind in ("format", "store", "sampler"):
        p = penstock(f"{kind}s", "--json", cwd="/")
        out[kind] = {o["name"] for e in json.loads(p.stdout)
                     for o in e["options"] + e.get("options_to_write", [])}
    return out


def test_named_options_are_there(tmp):
    have = registry()
    texts = [(os.path.basename(p), read(p)) for p in documents()]
    texts += [(path, text) for path, text, _ in strings()]
    for where, text in texts:
        for kind, name in re.findall(r"\b(format|store|sampler)\.([a-z]\w*)=",
                                     text):
            if where == "docs/add-a-format.md":
                continue
            check(name in have[kind], f"{where}: there is no {kind}.{name}=")


def test_options_are_named_as_they_are_given(tmp):
    """A message of a format says format.join=, not join=, which is none of
    load's settings; and so of stores and samplers."""
    loader = set(re.findall(r"^  (\w+)=", penstock("load", "--help",
                                                   cwd="/").stdout, re.M))
    only = {kind: have - loader for kind, have in registry().items()}
    only["token"] = only["format"]
    only["format"] = only["format"] | {"decode"}  # both; tfrecord's is its own
    allowed = {"src/token/words.c": "k",  # in a file's first line
               "src/token/word_table.c": "rna",  # vocab's, too
               "src/format/zarr_write.c": "version"}
    for path, text, is_help in strings():
        of = only.get(path.split("/")[1])
        # those are settings of vocab and of the dictionary
        if not of or is_help or path.startswith("src/token/count") or \
                path in ("src/store/ddict.c", "src/store/dict_values.c") or \
                "vocab" in text:
            continue
        for name in re.findall(r"(?<![\w.])([a-z_]\w*)=(?!=)", text):
            check(name not in of or name == allowed.get(path),
                  f"{path}: {name}= alone in: {text}")


def test_proposals_help(tmp):
    """What an error proposes is done, and the error is gone."""
    make = "penstock gen {} format=h5ad files=2 samples=20 genes=30 overlap=0.5"
    penstock(*make.format("cells").split()[1:], cwd=tmp)
    penstock("gen", "npydir", "files=3", "samples=4", cwd=tmp)
    penstock("gen", "one.npy", "samples=20", cwd=tmp)
    for bad, code, text, good in (
            ("load cells", 3, "format.join=inner",
             "load cells format.join=inner"),
            ("load cells join=inner", 2, "format.join",
             "load cells format.join=inner"),
            ("convert cells c.pen", 3, "format.join=outer",
             "convert cells c.pen format.join=outer"),
            ("load one.npy chunk=4 sampler=block", 2, "sampler.chunk",
             "load one.npy sampler.chunk=4 sampler=block"),
            ("load one.npy nonsense=4", 2, "`penstock load --help`",
             "load --help"),
            ("convert npydir out.pen", 2, "has no cells", "formats h5ad"),
            ("convert cells d.pen join=inner to.rowz=4", 2, "'to.rows'",
             "convert cells d.pen join=inner to.rows=4"),
            ("run resnet50", 2, "resnet50_h100, resnet50_small",
             "run resnet50_h100 --dry-run dataset.num_files_train=2"),
            ("run resnet50_smal", 2, "did you mean resnet50_small?",
             "run resnet50_small --dry-run"),
            ("run default_small loader.memory=10kB", 1,
             "raise loader.memory= or lower reader.batch_size=",
             "run default_small loader.memory=1MB reader.batch_size=2"),
            ("run default_small loader.store=posix loader.store.dircet=1", 2,
             "'loader.store.direct'",
             "run default_small loader.store.direct=true --dry-run "
             "loader.store=posix"),
            ("formats h5", 2, "`penstock formats`", "formats"),
            ("load 'x*.npy'", 4, "check the path", "load one.npy"),
    ):
        p = penstock(*shlex.split(bad), cwd=tmp)
        check(p.returncode == code and text in p.stderr and
              p.stderr.count("\n") == 1,
              f"{bad}: exit {p.returncode}: {p.stderr}")
        check("quote" not in p.stderr, f"{bad}: it is quoted already")
        p = penstock(*good.split(), cwd=tmp)
        check(p.returncode == 0, f"{good}: exit {p.returncode}: {p.stderr}")
    p = penstock("formats", "h5ad", "--json", cwd=tmp)
    check([f["name"] for f in json.loads(p.stdout)] == ["h5ad"], p.stdout)


def test_object_stores(tmp):
    """Everything that takes a path says that there are none in this version,
    and makes no folder with such a name."""
    penstock("gen", "x.npy", "samples=9", cwd=tmp)
    penstock("gen", "x.h5ad", "samples=9", "genes=20", cwd=tmp)
    before = sorted(os.listdir(tmp))
    for line in ("load s3://b/x", "inspect s3://b/x", "verify gs://b/x",
                 "load x.npy https://h/x.npy", "gen s3://b/x", "gen dna s3://b",
                 "gen s3://b/x.h5ad", "convert x.h5ad s3://b/x.pen",
                 "convert s3://b/x.h5ad x.pen", "vocab s3://b/x -o w",
                 "ddict load s3://b/x", "bench blocks s3://b/x",
                 "tune s3://b/x", "sweep s3://b/x threads=1,2",
                 "load x.npy labels=s3://b/y.npy",
                 "load x.npy -o s3://b/x.json --quiet",
                 "run unet3d_small storage.storage_type=s3",
                 "run unet3d_small storage.storage_root=s3://b",
                 "run unet3d_small dataset.data_folder=s3://b/x",
                 "run unet3d_small output.folder=s3://b/x",
                 "run unet3d_small checkpoint.checkpoint_folder=s3://b/x"):
        p = penstock(*line.split(), cwd=tmp)
        check(p.returncode == 3 and "not supported in this version" in
              p.stderr, f"{line}: exit {p.returncode}: {p.stderr}")
    check(sorted(os.listdir(tmp)) == before, f"{os.listdir(tmp)}")
    p = penstock("load", f"file://{tmp}/x.npy", cwd=tmp)
    check("without file://" in p.stderr, p.stderr)


def test_report_of_folders(tmp):
    """report takes what compare takes: folders with runs below them."""
    for i in (1, 2):
        p = penstock("run", "default_small", "train.epochs=1",
                     f"output.folder=runs/w/t{i}", "train.computation_time=0",
                     "evaluation.eval_time=0", cwd=tmp)
        check(p.returncode == 0, p.stderr)
    for path, n in (("runs/w", 2), ("runs/w/", 2), ("runs", 2),
                    ("runs/w/t1", 1), ("runs/w/t1/result.json", 1)):
        p = penstock("report", path, "-o", "page.html", "--csv", "all.csv",
                     cwd=tmp)
        check(p.returncode == 0 and f": {n} run" in p.stdout,
              f"report {path}: {p.stdout}{p.stderr}")
        page = read(f"{tmp}/page.html")
        check(len(set(re.findall(r"runs/w/t\d", page))) == n,
              f"report {path}: not {n} runs on the page")
        found = re.search(WRONG["1 of several"], re.sub(r"<[^>]*>", " ", page))
        check(not found, f"on the page: {found and found.group()!r}")
    os.makedirs(f"{tmp}/empty")
    p = penstock("report", "empty", cwd=tmp)
    check(p.returncode == 4 and "no result.json" in p.stderr, p.stderr)


def test_readme_in_c(tmp):
    """README's loop compiles, and a file that fails while it is read ends it
    with an error."""
    code = re.search(r"^```c\n(.*?)^```", read(f"{SOURCE}/README.md"),
                     re.M | re.S).group(1)
    head, body = code.split("\n\n", 1)
    with open(f"{tmp}/loop.c", "w", encoding="utf-8") as f:
        f.write(f"#include <stdio.h>\n{head}\nstatic void train(void *x, "
                "size_t n)\n{\n(void)x;\n(void)n;\n}\nint main(void)\n{\n"
                f"{body}\n}}\n")
    cc = re.search(r"^CMAKE_C_COMPILER:\w+=(.*)$",
                   read(f"{BUILD}/CMakeCache.txt"), re.M).group(1)
    flags = os.environ.get("SANITIZE", "")
    subprocess.run([cc, "-Wall", "-Wextra", "-Werror", "-o", f"{tmp}/loop",
                    *([f"-fsanitize={flags}"] if flags else []),
                    f"{tmp}/loop.c", f"-I{SOURCE}/include", f"-L{BUILD}",
                    "-lpenstock", f"-Wl,-rpath,{BUILD}"], check=True)
    penstock("gen", "data", "files=20", "format=npz", cwd=tmp)
    p = subprocess.run([f"{tmp}/loop"], cwd=tmp, capture_output=True,
                       text=True)
    check(p.returncode == 0, f"README's loop: {p.stderr}")
    name = sorted(os.listdir(f"{tmp}/data"))[3]
    with open(f"{tmp}/data/{name}", "r+b") as f:
        f.seek(2000)
        f.write(b"damaged")
    p = subprocess.run([f"{tmp}/loop"], cwd=tmp, capture_output=True,
                       text=True)
    check(p.returncode == 1 and name in p.stderr,
          f"README's loop over a damaged file: exit {p.returncode}: "
          f"{p.stderr}")


main(globals())
