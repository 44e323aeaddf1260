#!/usr/bin/python3
"""Every kind of error can happen: a recipe for each brings it about, and its
number is in the line, in --json, in the exit code that docs/errors.md lists,
and in what `penstock explain` and Python say."""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
SOURCE = os.environ["SOURCE"]
BUILD = os.environ["BUILD"]

# What the recipes use.
MAKE = """
penstock gen x.npy samples=64 shape=4
penstock gen long.npy samples=4000 shape=256
penstock gen x.npz samples=8 shape=4 classes=2
penstock gen x.h5ad samples=40 genes=30
penstock gen dna x.txt size=4kB length=100
penstock gen x.jpeg format=jpeg shape=32x32x3
penstock gen t.tfrecord samples=4 shape=8
mkdir empty plain mixed differ sums
echo words >plain/notes.xyz
cp x.npy mixed; cp x.h5ad mixed
penstock gen differ/a.npy samples=1 shape=4
penstock gen differ/b.npy samples=1 shape=4 dtype=int8
head -c 200 x.npy >cut.npy
head -c 400 x.jpeg >cut.jpeg
head -c 5 /dev/zero >zero.npy
echo 'a: [1' >bad.yaml
printf '1,2\n3,x\n' >x.csv
cp t.tfrecord sums
printf '\377' | dd of=sums/t.tfrecord bs=1 seek=40 conv=notrunc
cp x.npz damaged.npz
printf '\377\377' | dd of=damaged.npz bs=1 seek=150 conv=notrunc
echo '{"schema": "other/1"}' >other.json
python3 -c 'import numpy; numpy.save("text.npy", numpy.array(["a"]))'
python3 -c 'import numpy; numpy.save("below.npy", -numpy.ones(64))'
cp x.npy secret.npy; chmod 000 secret.npy; chmod 755 .
"""
# what ranks do: every rank is a process of its own
RANKS = "mpirun --allow-run-as-root --oversubscribe"
AS_USER = "setpriv --reuid=65534 --regid=65534 --clear-groups " \
    if os.getuid() == 0 else ""

# number: a command whose error has it
COMMANDS = {
    "P001": "penstock lod x.npy",
    "P002": "penstock load x.npy batch_size=many",
    "P003": "penstock load x.npy drop_last=true tail=pad",
    "P004": "penstock load",
    "P005": "penstock gen " + "a" * 5000 + ".npy",
    "P006": "penstock gen x.npy samples=1",
    "P009": "penstock load x.npy max_errors=3",
    "P101": "penstock load none.npy",
    "P102": "penstock load plain",
    "P103": "penstock load mixed",
    "P104": "penstock load x.h5ad 'format.filter=plate:none'",
    "P105": "penstock load x.npy weights=field:w sampler=weighted",
    "P106": "penstock load differ format.samples=file",
    "P107": "penstock bench iterate --rows 4 --batch 8",
    "P108": "penstock load x.npy weights=below.npy sampler=weighted",
    "P110": "penstock load s3://bucket/x",
    "P111": "penstock load x.npz format.fields=zz",
    "P201": "penstock load cut.npy",
    "P202": "penstock load sums",
    "P203": "penstock load damaged.npz",
    "P204": "penstock load zero.npy",
    "P205": "penstock load x.npy weights=x.txt sampler=weighted",
    "P206": "penstock load x.csv",
    "P207": "penstock load cut.jpeg",
    "P301": "penstock load text.npy",
    "P302": "penstock load /dev/null format=lines",
    "P303": "penstock load x.jpeg format.max_pixels=10",
    "P304": "penstock gen y.png dtype=float32",
    "P401": "penstock load x.npy store=fault store.fail_every=1",
    "P402": AS_USER + "./bin/copy load secret.npy index_cache=off",
    "P403": "penstock load x.npy -o /dev/full",
    "P501": "ulimit -v 300000; penstock load x.npy batch_size=16M memory=4GB",
    "P502": "penstock load x.npy memory=64 batch_size=64",
    "P503": "penstock ddict load long.npy ddict.memory=1MiB",
    "P602": "PMI_RANK=x PMI_SIZE=2 penstock load x.npy",
    "P603": f"{RANKS} -n 2 penstock ddict bench transport=shm share=false",
    "P604": "penstock ddict stat nobody",
    "P605": f"{RANKS} -n 1 penstock ddict bench width=1 : "
            "-n 1 penstock ddict bench width=2",
    "P701": "penstock run unet4d",
    "P702": "penstock run bad.yaml",
    "P703": "penstock run unet3d_small workflow.generate_data=false "
            "dataset.data_folder=empty",
    "P704": "penstock report other.json",
}

# number: statements that raise it
PYTHON = {
    "P001": "penstock.Loader('x.npy', 8, batch_sise=3)",
    "P002": "penstock.Loader('x.npy', 8, ahead=0)",
    "P003": "penstock.CellLoader('x.h5ad', layer='a', use_raw=True)",
    "P101": "penstock.Loader('none.npy')",
    "P109": "d = penstock.Dataset('x.npy', store='posix', open_files=1)\n"
            "numpy.save('x.npy', numpy.ones((80, 4)))\n"
            "[d[i] for i in range(64)]",
    "P112": "a = penstock.Loader('x.npy', 8)\n"
            "b = penstock.Loader('x.npy', 8, shuffle=True)\n"
            "b.load_state_dict(a.state_dict())",
    "P201": "next(iter(penstock.Loader('cut.npy')))",
    "P607": "d = penstock.DDict(memory='8MB')\nd.freeze()\nd[1] = b'x'",
}

# What no recipe brings about on every machine, and the test that has it.
ELSEWHERE = {
    "P007": "e2e/configure.sh",     # a build without a library
    "P008": "test_indexed.c",       # calls that neither front end makes
    "P208": "test_index.c",         # an index that its checksum accepts
    "P209": "test_convert.c",       # memory or disk that changes bytes
    "P305": "conform_store.c",      # a kernel or file system without a feature
    "P404": "conform_store.c",      # the loader stays below the limit by itself
    "P601": "e2e/ddict_hosts.sh",   # a machine that vanishes
    "P606": "test_wire_hostile.c",  # a peer that sends other bytes
    "P705": "test_experiment.c",    # a run that is killed
    "P901": "e2e/signals.py",
    "P902": "test_loader.c",
}


def listed():
    """number -> exit code, from the table in docs/errors.md."""
    with open(f"{SOURCE}/docs/errors.md", encoding="utf-8") as f:
        rows = re.findall(r"^\| (\d+) \| [^|]+ \| (P\d+[^|]*) \|$", f.read(),
                          re.M)
    return {n: int(code) for code, numbers in rows
            for n in numbers.split(", ")}


def run(words, tmp):
    return subprocess.run(
        ["bash", "-c", words], cwd=tmp, capture_output=True, text=True,
        timeout=300, stdin=subprocess.DEVNULL,
        env=dict(os.environ, PATH=f"{tmp}/bin:{os.environ['PATH']}"))


def ready(tmp):
    os.mkdir(f"{tmp}/bin")
    os.symlink(PENSTOCK, f"{tmp}/bin/penstock")
    os.symlink("/usr/bin/python3", f"{tmp}/bin/python3")
    shutil.copy(PENSTOCK, f"{tmp}/bin/copy")    # for users that cannot go there
    p = run("set -e\n" + MAKE, tmp)
    check(p.returncode == 0, f"making data: {p.stderr}")


def test_commands(tmp):
    ready(tmp)
    exits = listed()
    for number, words in COMMANDS.items():
        p = run(words, tmp)
        found = [s for s in p.stderr.split("\n") if s.endswith(f" [{number}]")]
        check(found and found[-1].startswith("penstock: ") and
              (words.startswith(RANKS) or p.returncode == exits[number]),
              f"{number}: exit {p.returncode} of `{words}`: {p.stderr}")
    for number in ("P101", "P201", "P502", "P701"):
        p = run(COMMANDS[number] + " --json", tmp)
        said = json.loads(p.stdout)["error"] if p.stdout else {}
        check(said.get("code") == number and
              said.get("exit") == p.returncode,
              f"{number} --json: {p.stdout}")


def test_python(tmp):
    ready(tmp)
    for number, words in PYTHON.items():
        p = subprocess.run(
            ["/usr/bin/python3", "-c", "import numpy, penstock\ntry:\n    " +
             words.replace("\n", "\n    ") +
             "\nexcept Exception as e:\n    print(e.code)"], cwd=tmp, text=True,
            env=dict(os.environ, PYTHONPATH=f"{BUILD}/python"),
            capture_output=True, timeout=300)
        check(p.stdout.strip() == number,
              f"{number}: {words}: {p.stdout}{p.stderr}")


def test_all(tmp):
    """Each kind has a recipe or a test, and an explanation."""
    del tmp
    for number in listed():
        check(number in COMMANDS or number in PYTHON or
              os.path.exists(f"{SOURCE}/tests/{ELSEWHERE.get(number)}"),
              f"{number}: no recipe")
        p = subprocess.run([PENSTOCK, "explain", number], text=True,
                           capture_output=True, timeout=60)
        check(p.returncode == 0 and number in p.stdout and
              p.stdout.count("\n") > 3, f"explain {number}: {p.stdout}")


main(globals())
