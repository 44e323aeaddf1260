#!/usr/bin/python3
"""docs/design.md names every file of src/ once, under its folder, and no file
that does not exist; file names are unique; and comments name no .c or .h that
is gone."""
import os
import re
import sys
from collections import Counter, defaultdict

SOURCE = os.environ.get("SOURCE") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", ".."))
ROW = re.compile(r"^\| `((?:src|include)/[^`]*)` \| (.*) \|$", re.M)
NAME = re.compile(r"`([\w.]+)`")
# files of others, or examples
FOREIGN = {"hdf5.h", "mpi.h", "foo.c", "x.c"}


def sources(top):
    """folder -> names of the .c and .h files in it"""
    out = defaultdict(set)
    for where, _, files in os.walk(os.path.join(SOURCE, top)):
        for name in files:
            if name.endswith((".c", ".h")):
                out[os.path.relpath(where, SOURCE) + "/"].add(name)
    return out


def check_tree(tree, bad):
    with open(os.path.join(SOURCE, "docs/design.md"), encoding="utf-8") as f:
        rows = ROW.findall(f.read())
    for folder in sorted(set(tree) - {folder for folder, _ in rows}):
        bad.append(f"docs/design.md: no row for {folder}")
    for folder, text in rows:
        stems = {n.rsplit(".", 1)[0] for n in tree.get(folder, ())}
        named = Counter(n.removesuffix(".h").removesuffix(".c")
                        for n in NAME.findall(text))
        for stem in sorted(stems - set(named)):
            bad.append(f"docs/design.md: {folder}{stem} is not named")
        for stem, n in sorted(named.items()):
            if stem not in stems:
                bad.append(f"docs/design.md: there is no {folder}{stem}")
            elif n > 1:
                bad.append(f"docs/design.md: {folder}{stem} is named {n} times")


def check_names(tree, bad):
    count = Counter(n for names in tree.values() for n in names)
    for name, n in sorted(count.items()):
        if n > 1 and name != "registry.c":
            bad.append(f"{name}: {n} files of src/ have this name")


def check_comments(known, bad):
    comment = re.compile(r"/\*.*?\*/", re.S)
    file = re.compile(r"(?<![\w./<>*-])([a-z]\w*(?:/\w+)*\.[ch])\b(?!\w)")
    for folder, names in sources("src").items():
        for name in sorted(names):
            with open(os.path.join(SOURCE, folder, name),
                      encoding="utf-8") as f:
                text = f.read()
            for c in comment.findall(text):
                for said in file.findall(c):
                    if os.path.basename(said) not in known | FOREIGN:
                        bad.append(f"{folder}{name}: a comment names {said}")


def main():
    bad = []
    tree = sources("src")
    check_names(tree, bad)
    tree.update(sources("include"))
    check_tree(tree, bad)
    known = {n for names in tree.values() for n in names}
    known |= {n for names in sources("tests").values() for n in names}
    known |= {n for names in sources("bench").values() for n in names}
    check_comments(known, bad)
    for line in bad:
        print(line, file=sys.stderr)
    print(f"{sum(len(n) for n in tree.values())} files, {len(bad)} wrong")
    return 1 if bad else 0


sys.exit(main())
