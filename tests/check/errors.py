#!/usr/bin/python3
"""Kinds of error: each has a number of its own in src/base/err.h, a section in
docs/errors.md, and a place in the code that raises it; no code raises an error
without a kind."""
import glob
import os
import re
import sys

os.chdir(os.environ.get("SOURCE") or
         os.path.join(os.path.dirname(__file__), "../.."))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


kinds = re.findall(r"\bX\((\d+), (\w+), (PEN_E\w+)\)", read("src/base/err.h"))
sections = re.findall(r"^## P(\d{3}): .+$", read("docs/errors.md"), re.M)
code = {p: read(p) for p in glob.glob("src/**/*.[ch]", recursive=True)
        if p != "src/base/err.h"}
used = set(re.findall(r"\bP_(\w+)", "\n".join(code.values())))
wrong = []

numbers = [int(n) for n, _, _ in kinds]
if not kinds or numbers != sorted(set(numbers)):
    wrong.append("src/base/err.h: numbers repeat or are not in order")
if [int(n) for n in sections] != numbers:
    wrong.append("docs/errors.md and src/base/err.h differ: " + ", ".join(
        f"P{n:03}" for n in sorted(set(numbers) ^ {int(n) for n in sections})))
wrong += [f"src/base/err.h: no code uses P_{name}"
          for _, name, _ in kinds if name not in used]
# the exit code follows from the pen_code, as exit_code() in the command has it
EXIT = {"PEN_EINVAL": 2, "PEN_EDATA": 3, "PEN_ENOTSUP": 3, "PEN_EIO": 4,
        "PEN_ENOTFOUND": 4, "PEN_ESTALE": 4}
for n in (1, 2, 3, 4):
    listed = ", ".join(f"P{int(number):03}" for number, _, pen_code in kinds
                       if EXIT.get(pen_code, 1) == n)
    if not re.search(rf"^\| {n} \| [^|]+ \| {listed} \|$",
                     read("docs/errors.md"), re.M):
        wrong.append(f"docs/errors.md: exit code {n} is that of {listed}")
for path, text in code.items():
    wrong += [f"{path}:{text.count(chr(10), 0, m.start()) + 1}: name the kind "
              f"of the error (P_...), not only {m.group(1)}"
              for m in re.finditer(r"\bpen__fail\([^,;]+,\s*(PEN_E\w+),", text)]
print("\n".join(wrong) or f"{len(kinds)} kinds of error")
sys.exit(1 if wrong else 0)
