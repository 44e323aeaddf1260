#!/usr/bin/python3
"""The six questions of the README, answered by the command that stands next to
each, on small data. A newcomer copies these lines first."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
SOURCE = os.environ["SOURCE"]

# A real answer takes real data and minutes; here the same path is short.
SMALLER = [
    (r"capacity unet3d_h100", "capacity unet3d_small --seconds 0.2 --max 2 "
     "--repeats 1 storage.storage_root=made"),
    (r"(tune .*)", r"\1 --seconds 1"),
    (r"--samples 20k --shape 64x64", "--samples 200 --shape 8x8 --repeats 1"),
    (r"(simulate data/ data=10TB)", r"\1 seconds=3"),
]
# What the answer has to say, in the order of the questions.
ANSWERS = ["storage (cannot )?feed", "Summary: ", "samples/s", "samples/s|per s",
           "epoch", "within noise|better|WORSE|too few"]


def questions():
    """(question, command) of the table in the README."""
    with open(f"{SOURCE}/README.md", encoding="utf-8") as f:
        return re.findall(r"^\| ([^|]+\?) \| `(penstock [^`]+)` \|", f.read(),
                          re.M)


def run(words, cwd):
    return subprocess.run(["bash", "-c", words], cwd=cwd, text=True,
                          env=dict(os.environ, PATH=f"{cwd}/bin:"
                                   f"{os.environ['PATH']}"),
                          capture_output=True, timeout=600,
                          stdin=subprocess.DEVNULL)


def test_questions(tmp):
    os.makedirs(f"{tmp}/bin")
    os.symlink(PENSTOCK, f"{tmp}/bin/penstock")
    # Emulated jobs keep their data elsewhere: data/ belongs to the user.
    for line in ("gen data files=400 shape=64x64",
                 "run default_small train.epochs=2 storage.storage_root=made "
                 "output.folder=runs/before/1",
                 "run default_small train.epochs=2 storage.storage_root=made "
                 "output.folder=runs/after/1"):
        p = run(f"penstock {line}", tmp)
        check(p.returncode == 0, f"{line}: {p.stderr}")
    asked = questions()
    check(len(asked) == len(ANSWERS), f"{len(asked)} questions: {asked}")
    for (question, command), answer in zip(asked, ANSWERS):
        for pattern, by in SMALLER:
            command = re.sub(pattern, by, command)
        p = run(command, tmp)
        if "storage was not measured" in p.stderr:  # a temporary folder in memory
            p = run(f"{command} storage=1GB/s,1ms", tmp)
        said = p.stdout + p.stderr
        check(p.returncode == 0 and re.search(answer, said),
              f"{question}: exit {p.returncode} of `{command}`: {said[-800:]}")


main(globals())
