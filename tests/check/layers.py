#!/usr/bin/python3
"""Holds the include direction of the source tree.

base <- codec <- {store, format, decode, sampler} <- engine <- make,
base <- token <- {format, engine}, base <- comm <- ddict <- {store, engine},
base <- verdict <- {emulate, report, cli}, base <- report <- {experiment, cli},
base <- simulate <- cli, {make, quality} <- emulate <- experiment <- cli,
base <- quality;
stores, formats, decoders and samplers do not include one another; only a
registry.c names implementations. The engine knows the interfaces of what is below it and
none of their own headers; those of a format are known in format and make only.
Above the engine everybody loads data through penstock.h, which is all that the
Python module and the examples see. Inside the engine a stage of the pipeline
does not know those before it.
"""
import os
import re
import subprocess
import sys

SOURCE = os.environ.get("SOURCE") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", ".."))
LOW = {"base", "codec"}
MIDDLE = {"store", "format", "decode", "sampler"}
ENGINE = LOW | MIDDLE | {"token", "comm", "ddict", "engine"}
# Above the engine: data is loaded through penstock.h.
ABOVE = {"base", "comm", "make", "quality", "verdict"}
MAY = {
    "base": {"base"},
    "codec": LOW,
    "token": {"base", "token"},
    "comm": {"base", "comm"},
    "ddict": {"base", "comm", "ddict"},
    "store": LOW | {"store", "ddict"},
    "format": LOW | {"format", "token"},
    "decode": LOW | {"decode"},
    "sampler": LOW | {"sampler"},
    "engine": ENGINE,
    "quality": {"base", "quality"},
    "make": ENGINE | {"make"},
    "verdict": {"base", "verdict"},
    "emulate": ABOVE | {"emulate"},
    # the training of examples/doc2vec is that of `bench dna`
    "experiment": ABOVE | {"emulate", "examples", "experiment", "report"},
    "report": {"base", "report", "verdict"},
    "simulate": {"base", "simulate"},
    "cli": ABOVE | {"emulate", "experiment", "report", "simulate", "cli"},
}
# What the engine sees of the layers below it.
INTERFACES = {"codec/deflate.h", "ddict/dictionary.h", "decode/decode.h",
              "format/format.h", "sampler/sampler.h", "store/store.h",
              "store/dict_values.h", "store/tier.h", "token/token.h"}
ROOM = re.compile(r"^format/\w+/")
# The stages of the pipeline: a file of one includes the headers of those after
# it. Containers between them (pool.h, fetch_units.h) are everybody's.
STAGES = ["plan", "fetch", "unpack", "emit", "finish"]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
ENTRY = re.compile(
    r"^\s*pen_(store|format|decoder|cells|sampler|codec|packer|token)\(\s*(\w+)"
    r"(?:\s+IN\s+(\w+))?", re.M)
GENERATED = re.compile(r"^(store|format|decoder|cells|sampler|codec|packer|token)_(list|absent)\.h$")


def files(top, *ends):
    for where, dirs, names in os.walk(os.path.join(SOURCE, top)):
        dirs.sort()
        for name in sorted(names):
            if name.endswith(ends):
                path = os.path.join(where, name)
                yield os.path.relpath(path, SOURCE), path


def implementations():
    """The identifiers that only a registry.c and the owner may name."""
    out = {}
    for kind in MIDDLE | {"codec", "token"}:
        for short, path in files(f"src/{kind}", "CMakeLists.txt"):
            with open(path, encoding="utf-8") as f:
                for found, name, of in ENTRY.findall(f.read()):
                    if found == "decoder":
                        of = f"decode_{name}"
                    out[f"pen__{found}_{name}"] = os.path.join(
                        os.path.dirname(short), f"{of or name}.c")
    return out


def layer_of(include, path):
    """The layer an #include leads to: None for the public header."""
    near = os.path.join(os.path.dirname(path), include)
    for base in (near, os.path.join(SOURCE, "src", include),
                 os.path.join(SOURCE, "examples", include)):
        if os.path.exists(base):
            parts = os.path.relpath(base, SOURCE).split(os.sep)
            return parts[1] if parts[0] == "src" else parts[0]
    if os.path.exists(os.path.join(SOURCE, "include", include)):
        return None
    if os.path.exists(os.path.join(SOURCE, "examples", include)):
        return include.split("/")[0]
    return "nowhere"


def goes_back(short, include):
    """Does a file of a stage include the header of one before it?"""
    own = os.path.basename(short).split(".")[0].split("_")[0]
    to = include.removeprefix("engine/").removesuffix(".h")
    return (short.startswith("src/engine/") and own in STAGES and
            to in STAGES and STAGES.index(to) < STAGES.index(own))


def check_file(short, path, names, bad):
    layer = short.split(os.sep)[1]
    if layer not in MAY:
        bad.append(f"{short}: layer '{layer}' is not in {__file__}")
        return
    is_registry = os.path.basename(short) == "registry.c"
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            at = f"{short}:{number}"
            for name in re.findall(r"\bpen__\w+", line):
                owner = names.get(name)
                if owner and short != owner and not is_registry:
                    bad.append(f"{at}: only registry.c names {name}")
            m = INCLUDE.match(line)
            if not m:
                continue
            g = GENERATED.match(m.group(1))
            if g:
                # what was left out is told in error messages and lists
                near = g.group(2) == "absent" and (
                    layer == "cli" or short == f"src/{layer}/{layer}.c")
                if not is_registry and not near:
                    bad.append(f"{at}: only registry.c reads {m.group(1)}")
                continue
            to = layer_of(m.group(1), path)
            if to is not None and to not in MAY[layer]:
                bad.append(f"{at}: {layer} must not include {m.group(1)}")
            elif goes_back(short, m.group(1)):
                bad.append(f"{at}: {m.group(1)} is of a stage before this one")
            elif layer == "engine" and to in (MIDDLE | LOW | {"token",
                    "ddict"}) - {"base"} and m.group(1) not in INTERFACES:
                bad.append(f"{at}: the engine does not know {m.group(1)}")
            elif ROOM.match(m.group(1)) and layer not in ("format", "make"):
                bad.append(f"{at}: {m.group(1)} is its format's own")


TOP = set(""".ci .clang-format .clang-tidy .containerignore .editorconfig .github
.gitignore CHANGELOG.md CMakeLists.txt CMakePresets.json CODE_OF_CONDUCT.md
CONTRIBUTING.md Containerfile LICENSE Makefile README.md SECURITY.md bench cmake
debian docs examples include python scripts src tests workloads""".split())


def check_top(bad):
    """What a test left in the tree must not be kept in it."""
    git = subprocess.run(["git", "-C", SOURCE, "ls-files"], text=True,
                         capture_output=True)
    for name in sorted({line.split("/")[0].strip('"')
                        for line in git.stdout.splitlines()} - TOP):
        bad.append(f"{name}: does not belong in the tree")


def main():
    bad = []
    count = 0
    check_top(bad)
    names = implementations()
    for short, path in files("src", ".c", ".h"):
        check_file(short, path, names, bad)
        count += 1
    users = [("python", "the Python module"), ("examples", "an example")]
    for short, path, who in [(*f, who) for top, who in users
                             for f in files(top, ".c", ".h")]:
        count += 1
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                m = INCLUDE.match(line)
                near = m and os.path.exists(
                    os.path.join(os.path.dirname(path), m.group(1)))
                # an example of what is added to the tree sees its interfaces
                if short == "examples/own_format.c":
                    near = m and m.group(1) == "format/format.h"
                if m and m.group(1) != "penstock.h" and not near:
                    bad.append(f"{short}:{number}: {who} sees only "
                               f"penstock.h")
    for line in bad:
        print(line, file=sys.stderr)
    print(f"{count} files, {len(bad)} wrong")
    return 1 if bad or not count else 0


sys.exit(main())
