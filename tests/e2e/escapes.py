#!/usr/bin/python3
"""Names, labels and results of others are shown, not obeyed: no byte that a
terminal would act on gets out, of whatever command, and all is UTF-8."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
# clears the screen, sets a title, is no UTF-8, is a C1 control, turns around
EVIL = b"\x1b[2J\x1b]0;owned\x07\xff\xc2\x9b31m\xe2\x80\xae\r"


def evil(text):
    return text + EVIL.decode(errors="replace")


def look(args, out):
    """Only text, lines and tabs."""
    try:
        text = out.decode()
    except UnicodeDecodeError as e:
        check(False, f"{args}: {e}")
        return ""
    bad = {c for c in text if (c < " " and c not in "\n\t") or
           "\x7f" <= c < "\xa0" or "\u202a" <= c <= "\u202e"}
    check(not bad, f"{args}: {bad} in {text[:400]!r}")
    return text


def run(*args, code=None):
    p = subprocess.run([PENSTOCK, *args], capture_output=True, timeout=600)
    if code is not None:
        check(p.returncode == code, f"{args}: exit {p.returncode}, not "
              f"{code}: {p.stderr}")
    return look(args, p.stdout) + look(args, p.stderr)


def test_errors(tmp):
    os.chdir(tmp)
    with open("file", "wb"):
        pass
    for args in (["load", EVIL], ["load", "x", b"format=" + EVIL],
                 ["inspect", EVIL],
                 ["verify", EVIL], [EVIL], ["load", b"--" + EVIL],
                 ["load", "x", b"store=" + EVIL], ["run", EVIL],
                 ["run", "unet3d_small", "train.epochs=" + evil("")],
                 ["compare", EVIL, EVIL], ["report", EVIL], ["config", EVIL],
                 ["sweep", EVIL, "threads=1,2"], ["doctor", EVIL],
                 ["tune", EVIL, "--seconds", "1"], ["convert", EVIL, EVIL],
                 ["gen", b"file/" + EVIL], ["bench", "blocks", EVIL],
                 ["compare", "--fail-if", EVIL]):
        text = run(*args)
        check("\\x1b[2J" in text, f"{args}: not quoted: {text!r}")
        check(text.count("\n") == 1 or args[0] == "doctor",
              f"{args}: not one line: {text!r}")


def test_data(tmp):
    """A folder with such a name, and a damaged file in it."""
    os.chdir(tmp)
    run("gen", "d", "files=6", "shape=8")
    os.rename(b"d", EVIL)
    for args in (["inspect", EVIL], ["load", EVIL], ["verify", EVIL],
                 ["load", EVIL, "--json"], ["inspect", EVIL, "--json"],
                 ["tune", EVIL, "--dry-run"],
                 ["sweep", EVIL, "threads=1,2", "--repeats", "1", "-o",
                  b"s" + EVIL + b".jsonl"],
                 ["report", b"s" + EVIL + b".jsonl", "-o", b"p" + EVIL],
                 ["report", b"s" + EVIL + b".jsonl", "-o", "-"],
                 ["doctor", EVIL]):
        run(*args, code=0)
    os.truncate(EVIL + b"/" + sorted(os.listdir(EVIL))[0], 10)
    run("load", EVIL, code=3)
    run("load", EVIL, "on_error=skip", code=0)
    text = run("verify", EVIL, code=3)
    check("bad:" in text and "\\x1b" in text, text)
    doc = json.loads(run("verify", EVIL, "--json", code=3))
    check("\\x1b" in doc["errors"][0]["object"] or
          doc["errors"][0]["object"].startswith("..."), str(doc))
    shutil.rmtree(EVIL)


def test_fields(tmp):
    """Names inside a file: members of an npz."""
    os.chdir(tmp)
    code = ("import numpy, sys, zipfile, io\n"
            "z = zipfile.ZipFile('a.npz', 'w')\n"
            "b = io.BytesIO(); numpy.save(b, numpy.zeros((3, 4)))\n"
            "z.writestr('x\\x1b[31m\\u202e.npy', b.getvalue()); z.close()\n")
    p = subprocess.run(["/usr/bin/python3", "-c", code], check=False,
                       capture_output=True)
    if p.returncode:
        print("NumPy is not installed")
        return
    for args in (["inspect", "a.npz"], ["load", "a.npz"],
                 ["load", "a.npz", "fields=y"],
                 ["inspect", "a.npz", "--json"]):
        run(*args)


def test_results(tmp):
    """Result files: of a load, of a run, and rows."""
    os.chdir(tmp)
    run("gen", "d", "files=30", "shape=8")
    doc = json.loads(run("load", "d", "epochs=5", "--json"))
    doc["store"] = evil("s")
    doc["data"]["path"] = evil("p")
    doc["version"] = evil("v")
    doc["data"][evil("k")] = evil("long" * 40)
    for name in ("a.json", "b.json"):
        with open(name, "w", encoding="utf-8") as f:
            json.dump(doc, f)
        doc["store"] += "other"
        doc["data"][evil("k")] = evil("x")
    shutil.copy("b.json", EVIL + b".json")
    rule = ["--fail-if", "throughput<-5%"]
    for args in (["compare", "a.json", "b.json", *rule],
                 ["compare", "a.json", EVIL + b".json", *rule],
                 ["compare", "a.json", EVIL + b".json", "--json"],
                 ["compare", "a.json", EVIL + b".json", "-o", "-"],
                 ["report", EVIL + b".json", "-o", "-"],
                 ["report", EVIL + b".json", "-o", "p.html"],
                 ["report", "a.json", "--openmetrics", "-"]):
        run(*args, code=0)
    with open("r.jsonl", "w", encoding="utf-8") as f:
        for i in range(3):
            f.write(json.dumps({
                "experiment": "sweep", "path": "d", "host": evil("h"),
                "setup": evil("x=1"), "set": {evil("x"): "1"},
                "samples_per_s": 5 + i}) + "\n")
        f.write("half a li")
    for args in (["compare", "r.jsonl", "r.jsonl"],
                 ["report", "r.jsonl", "-o", "-"]):
        run(*args, code=0)


main(globals())
