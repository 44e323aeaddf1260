#!/usr/bin/python3
"""Holds the size limits: a function at most 80 lines and 6 parameters, a file
at most 800 lines.

In this tree a brace in column 0 opens and closes function bodies and nothing
else, and the line of a function's name starts in column 0, which is all the
parsing it takes.
"""
import os
import re
import sys

SOURCE = os.environ.get("SOURCE") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", ".."))
MAX_FUNCTION = 80
MAX_FILE = 800
# The public header is one file by design.
LARGER = {"include/penstock.h": 1000}
MAX_PARAMETERS = 6


def parameters(head):
    """How many a function has, from its head: commas outside of brackets."""
    inner = head[head.index("(") + 1:head.rindex(")")]
    while re.search(r"\([^()]*\)", inner):
        inner = re.sub(r"\([^()]*\)", "", inner)
    return inner.count(",") + 1


def check(short, path, bad):
    """Appends what is too long; returns how many functions there are."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    count = 0
    start = 0
    most = LARGER.get(short, MAX_FILE)
    if len(lines) > most:
        bad.append(f"{short}: {len(lines)} lines, at most {most}")
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = first = number
            while first > 1 and not re.match(r"\w.*\(", lines[first - 2]):
                first -= 1
            name = lines[first - 2].strip()
            count_of = parameters(" ".join(lines[first - 2:number - 1]))
            if count_of > MAX_PARAMETERS and not short.startswith("tests"):
                bad.append(f"{short}:{first - 1}: {count_of} parameters, at "
                           f"most {MAX_PARAMETERS}: {name}")
        elif line.startswith("}") and start:
            count += 1
            if number - start + 1 > MAX_FUNCTION:
                bad.append(f"{short}:{start}: {number - start + 1} lines, at "
                           f"most {MAX_FUNCTION}: {name}")
            start = 0
    return count


def main():
    bad = []
    nfiles = nfunctions = 0
    for top in ("include", "src", "python", "tests", "bench"):
        for where, dirs, names in os.walk(os.path.join(SOURCE, top)):
            dirs.sort()
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    path = os.path.join(where, name)
                    short = os.path.relpath(path, SOURCE)
                    nfunctions += check(short, path, bad)
                    nfiles += 1
    for line in bad:
        print(line, file=sys.stderr)
    print(f"{nfiles} files, {nfunctions} functions, {len(bad)} too large")
    return 1 if bad or not nfunctions else 0


sys.exit(main())
