#!/usr/bin/python3
"""load finds what gen reports, with the settings that gen prints, for every
format that it writes; misleading names are refused."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]


def run(*args, cwd, code=0):
    p = subprocess.run([PENSTOCK, *args], cwd=cwd, capture_output=True,
                       text=True, timeout=600, stdin=subprocess.DEVNULL)
    check(p.returncode == code, f"{' '.join(args)}: exit {p.returncode}, not "
          f"{code}: {p.stderr.strip()[-300:]}")
    return p


def formats(tmp):
    """Names of the formats that can be written, of arrays and of cells."""
    arrays, cells = [], []
    for f in json.loads(run("formats", "--json", cwd=tmp).stdout):
        if not f.get("writes") or f["name"] in ("lines", "fasta", "fastq"):
            continue
        one = cells if f["name"] in ("h5ad", "zarr", "packed") else arrays
        one.append(f["name"])
    return arrays, cells


def loaded(tmp, path, settings):
    p = run("load", path, *settings.split(), "--json", cwd=tmp)
    return json.loads(p.stdout)["data"]


def found(tmp, path, *args):
    """Generates data; checks that the line and the result agree and that a
    loader finds as many samples. Returns what inspect reports."""
    made = json.loads(run("gen", path, *args, "--json", cwd=tmp).stdout)
    line = run("gen", path, *args, "--force", cwd=tmp).stdout
    hint = made["load_with"]
    check(line.endswith(f"; load it with {hint}\n" if hint else ")\n"),
          f"{args}: {line!r} names {hint!r}")
    check(("a directory with" in line) ==
          (os.path.isdir(f"{tmp}/{path}") and not path.endswith(".zarr")),
          f"a directory is said to be one: {line}")
    data = loaded(tmp, path, hint)
    check(data["samples"] == made["samples"],
          f"{path} {args}: {made['samples']} made, {data['samples']} found")
    return data


def test_arrays(tmp):
    for name in formats(tmp)[0]:
        image = name in ("jpeg", "png")
        for files in 1, 2:
            for samples in (1,) if image else (1, 10):
                data = found(tmp, f"{name}_{files}_{samples}",
                             f"format={name}", f"files={files}",
                             f"samples={samples}", "shape=6x4")
                check(data["objects"] == files, f"{name}: files")
                x = data["fields"][0]
                flat = "24" if name in ("csv", "tfrecord") else "6x4"
                check(image or x["shape"] == flat,
                      f"{name}: shape {x['shape']}")
                check(x["dtype"] == ("uint8" if image else "float32"),
                      f"{name}: {x['dtype']}")
    names = ["x.npy", "x.npz", "x.bin", "x.tfrecord", "x.csv"]
    if "hdf5" in formats(tmp)[0]:
        names.append("x.h5")
    for name in names:
        for samples in 1, 3:
            found(tmp, f"{samples}{name}", f"samples={samples}", "shape=5")
    data = found(tmp, "ints.csv", "samples=3", "dtype=int32", "shape=5")
    check(data["fields"][0]["dtype"] == "int32", "csv of integers")


def test_cells(tmp):
    small = ["samples=20", "genes=50"]
    for name in formats(tmp)[1]:
        found(tmp, f"one_{name}", f"format={name}", *small)
        found(tmp, f"two_{name}", f"format={name}", "files=2", *small)
        found(tmp, f"some_{name}", f"format={name}", "files=2", "overlap=0.5",
              *small)


def test_sequences(tmp):
    for name in "s.txt", "s", "s.seq", "s.fa":
        path = f"{tmp}/{name}"
        made = json.loads(run("gen", "dna", path, "size=20kB", "--json",
                              cwd=tmp).stdout)
        data = loaded(tmp, path, made["load_with"])
        check(data["samples"] == made["samples"], f"{name}: {data}")


def test_names(tmp):
    """Names that contradict the format."""
    for name in ("shards.tar", "x.tar.gz", "x.parquet", "x.npy.gz", "x.lmdb",
                 "x.safetensors", "x.txt"):
        p = run("gen", name, "samples=3", cwd=tmp, code=2)
        check("cannot write" in p.stderr, p.stderr)
    p = run("gen", "dna", "x.tar", cwd=tmp, code=2)
    check("cannot write" in p.stderr, p.stderr)
    p = run("gen", "x.npy", "format=npz", cwd=tmp, code=2)
    check("the suffix means npy" in p.stderr, p.stderr)
    for name in "x.npy", "x.zarr":
        p = run("gen", name, "files=3", cwd=tmp, code=2)
        check("one " in p.stderr and "directory" in p.stderr, p.stderr)
    p = run("gen", "x.fa", cwd=tmp, code=2)
    check("gen dna" in p.stderr, p.stderr)
    # a failure leaves no files
    run("gen", "d", "format=png", "samples=3", cwd=tmp, code=2)
    check(not os.listdir(tmp), f"left behind: {os.listdir(tmp)}")
    # any other name is a directory, and any name with format=
    for name, *more in ("data.v2",), ("x.tar", "format=npy"):
        line = run("gen", name, "files=2", *more, cwd=tmp).stdout
        check(line.startswith(f"{name}: a directory with 2 samples"), line)


main(globals())
