#!/usr/bin/python3
"""Mutation testing: do the tests notice when the code is wrong?

    tests/mutants.py [-n N] [--seed S] [--tests REGEX] [--list] PATH...

Changes one place of a C file at a time (an operator, a constant, a statement, an
error that is returned), compiles that file alone, links it in front of the
libraries of build/dev, and runs the tests that execute the changed line, the
quickest first, until one fails. What passes all of them is tried with the tests
and libraries of build/asan, which notice leaks and bytes out of bounds. A mutant
that no test notices is a survivor, and is printed with its place and its change.
The source tree is never written: mutated files and programs are in
build/mutants.

Which tests execute which line is measured once (gcov), for the files under PATH,
and again for what has changed since. Mutants whose object code equals that of
the original file are not counted; nor are those that tests/mutants_equivalent
lists, with the reason why no test can tell them from the original.

Headers are not mutated: all files would have to be compiled again.
"""
import argparse
import hashlib
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
OUT = os.path.join(TOP, "build", "mutants")
EQUIVALENT = os.path.join(TOP, "tests", "mutants_equivalent")
COST = os.path.join(OUT, "cost.json")
KILLED = os.path.join(OUT, "killed.json")   # a later run need not try again
# Seconds of tests that one mutant may take in a build; further ones are not run.
MOST_S = 25

SWAPS = [
    (r"(?<![<>=!+\-*/&|^-])<(?![<=])", "<="), (r"(?<![<-])<=", "<"),
    (r"(?<![>\-=])>(?![>=])", ">="), (r"(?<![>-])>=", ">"),
    (r"==", "!="), (r"!=", "=="), (r"&&", "||"), (r"\|\|", "&&"),
    (r"(?<=[\w)\]] )\+(?= )", "-"), (r"(?<=[\w)\]] )-(?= )", "+"),
    (r"(?<=[\w)\]] )\*(?= )", "+"), (r"(?<=[\w)\]] )/(?= )", "*"),
    (r"(?<=[\w)\]] )%(?= )", "/"),
    (r"(?<=[\w)\]] )<<(?= )", ">>"), (r"(?<=[\w)\]] )>>(?= )", "<<"),
    (r"(?<=[\w)\]] )&(?= )", "|"), (r"(?<=[\w)\]] )\|(?= )", "&"),
    (r"\+=", "-="), (r"-=", "+="), (r"\|=", "&="), (r"&=", "|="),
    (r"\+\+", "--"), (r"(?<!-)--(?!-)", "++"),
    (r"(?<![\w!])!(?=[\w(*])(?!=)", ""),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
]
NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-fA-F]+|\d+)([uUlL]*)(?![\w.])")
STATEMENT = re.compile(
    r"^\t+(?!return\b|break\b|continue\b|goto\b|case\b|default\b|else\b|do\b)"
    r"(?:[\w>.\[\]*()+-]+(?:->|\.)?[\w\[\]]* (?:[-+|&^*/]|<<|>>)?= .*;"
    r"|\w+\(.*\);|(?:\+\+|--)?[\w>.\[\]-]+(?:\+\+|--)?;)$")
RETURN = re.compile(r"^(\t+)return (?!0;|NULL;|true;|false;)(.+);$")
SKIP = re.compile(r"\bassert\(|_Static_assert|^#|__builtin_expect")


def blank(text):
    """The text with comments, strings and characters blanked, of one length."""
    def spaces(m):
        return re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"'
                  r"|'(?:\\.|[^'\\\n])*'", spaces, text, flags=re.S)


def bodies(lines):
    """Numbers of the lines inside function bodies: braces in column 0."""
    inside = False
    for n, line in enumerate(lines):
        if line.startswith("{"):
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside:
            yield n


def declares(code):
    """A line that declares a variable must stay, or nothing compiles."""
    return re.match(r"^\t+(const |static |struct |unsigned |u?int\d*_t |size_t "
                    r"|int |char |bool |double |float |void |long )", code)


def changes(path):
    """[(line number from 1, old line, new line, what)] of one file."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    real, code = text.splitlines(), blank(text).splitlines()
    found = []

    def add(n, new, what):
        if new != real[n]:
            found.append((n + 1, real[n], new, what))

    for n in bodies(code):
        c, r = code[n], real[n]
        if SKIP.search(c) or not c.strip():
            continue
        for pattern, to in SWAPS:
            for m in re.finditer(pattern, c):
                a, b = m.span()
                add(n, r[:a] + to + r[b:],
                    f"{m.group(0)} -> {to or 'nothing'}")
        for m in NUMBER.finditer(c):
            value = int(m.group(1), 0) if m.group(1)[:1] != "0" or \
                m.group(1)[:2] == "0x" or m.group(1) == "0" else None
            if value is not None:
                a, b = m.span()
                add(n, f"{r[:a]}{value + 1}{m.group(2)}{r[b:]}",
                    f"{m.group(0)} -> {value + 1}")
        if STATEMENT.match(c) and not declares(c):
            add(n, re.match(r"\t+", r).group(0) + ";", "dropped")
        m = RETURN.match(c)
        if m:
            add(n, f"{m.group(1)}return 0;", "returns 0")
    return found


def cpu_of(group):
    """CPU seconds of the living processes of a process group."""
    ticks = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
                stat = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat[2]) == group:
            ticks += int(stat[11]) + int(stat[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def await_end(child, seconds):
    """The exit code; None if it loops or hangs. The clock on the wall says
    nothing where other work runs: a loop uses CPU time, and what hangs uses
    none for two minutes."""
    last, still = 0, 0
    while still < 24:
        try:
            return child.wait(5)
        except subprocess.TimeoutExpired:
            now = cpu_of(child.pid)
        if now > seconds:
            return None
        still = still + 1 if now == last else 0
        last = now
    return None


class Tree:
    """How files are compiled and tests are linked in build/PRESET."""

    def __init__(self, preset):
        self.build = os.path.join(TOP, "build", preset)
        self.sound = {}     # test: passes without a mutant, linked as one
        self.cost = {}
        with open(os.path.join(self.build, "compile_commands.json"),
                  encoding="utf-8") as f:
            commands = json.load(f)
        self.compiles = {}
        for c in commands:
            words = shlex.split(c["command"])
            if words[0].endswith("ccache"):
                words = words[1:]
            out = words.index("-o")
            # an example compiles a file of the library again, later
            self.compiles.setdefault(os.path.relpath(c["file"], TOP), (
                words, os.path.normpath(os.path.join(c["directory"],
                                                     words[out + 1]))))
        shown = subprocess.run(
            ["ctest", "--test-dir", self.build, "--show-only=json-v1"], check=True,
            stdout=subprocess.PIPE).stdout
        self.tests = {}
        for t in json.loads(shown)["tests"]:
            if "command" not in t:
                continue    # not built
            env = {}
            for p in t.get("properties", []):
                if p["name"] == "ENVIRONMENT":
                    env = dict(e.split("=", 1) for e in p["value"] if "=" in e)
            self.tests[t["name"]] = (t["command"], env)

    def compile(self, path, source, obj, extra):
        """True if it compiles: source in place of path, to obj."""
        words = [w for w in self.compiles[path][0]
                 if w not in ("-Werror", "-g") and not w.startswith("-O")]
        at = words.index("-o")
        words[at + 1] = obj
        words[words.index("-c") + 1] = source
        return subprocess.run(
            [*words, "-O1", "-g0", "-w", "-iquote",
             os.path.dirname(os.path.join(TOP, path)), *extra], check=False,
            cwd=self.build, stderr=subprocess.DEVNULL).returncode == 0

    def program(self, test):
        """The target whose program the test runs, and its folder."""
        if test.startswith(("test_", "conform_")):
            return test, os.path.join(self.build, "tests")
        return "penstock_cli", os.path.join(self.build, "src", "cli")

    def own(self, test):
        """The source of the test: if it changes, it is measured again."""
        if self.program(test)[0] == test:
            return os.path.join(TOP, "tests", test + ".c")
        return next(w for w in self.tests[test][0] if w.startswith(TOP))

    def included(self, test):
        """Sources of the library that the test includes, with other things
        in place of what they call."""
        if self.program(test)[0] != test:
            return []
        with open(self.own(test), encoding="utf-8") as f:
            return re.findall(r'^#include "\.\./(src/[^"]+\.c)"', f.read(),
                              re.M)

    def compile_test(self, test, path, source, folder):
        """The object of a test that includes path, with source instead."""
        at = os.path.join(folder, "tree")
        for p in (path, "tests/x"):
            os.makedirs(os.path.dirname(os.path.join(at, p)), exist_ok=True)
        shutil.copy(source, os.path.join(at, path))
        copy = shutil.copy(self.own(test), os.path.join(at, "tests"))
        obj = os.path.join(folder, "test.o")
        self.compile(f"tests/{test}.c", copy, obj, [])
        return {f"tests/{test}.c": obj}

    def link(self, test, objects, out, extra=()):
        """objects: {path of the source: object to use}; True if it links."""
        target, folder = self.program(test)
        with open(os.path.join(folder, "CMakeFiles", target + ".dir",
                               "link.txt"), encoding="utf-8") as f:
            words = shlex.split(f.read())
        left = dict(objects)
        for path, obj in objects.items():
            own = self.compiles[path][1]
            for i, w in enumerate(words):
                if os.path.normpath(os.path.join(folder, w)) == own:
                    words[i] = obj
                    left.pop(path)
        at = words.index("-o")
        words[at + 1] = out
        words[at:at] = left.values()    # in front of the archives
        if not any(w.startswith("-fuse-ld") for w in words):
            words.append("-fuse-ld=gold")
        return subprocess.run([*words, "-Wl,-S", *extra], check=False,
                              cwd=folder, stderr=subprocess.DEVNULL
                              ).returncode == 0

    def run(self, test, program, seconds, env=None):
        """True if the test passes, within these seconds of CPU time."""
        command, own = self.tests[test]
        if self.program(test)[0] == test:
            command = [program]
        else:
            own = {**own, "PENSTOCK": program}
        with tempfile.TemporaryDirectory(dir=OUT) as cwd:
            child = subprocess.Popen(
                command, cwd=cwd, env={**os.environ, **own, **(env or {})},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True)
            try:
                return await_end(child, seconds) in (0, 77)
            finally:
                try:    # and what it started
                    os.killpg(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                child.wait()


def spent_cpu():
    """Seconds of all children so far: other work does not change it."""
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def read_json(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def write_json(path, value):
    new = f"{path}.{os.getpid()}"
    with open(new, "w", encoding="utf-8") as f:
        json.dump(value, f)
    os.replace(new, path)


def digest(*paths):
    h = hashlib.sha256()
    for p in paths:
        with open(p, "rb") as f:
            h.update(f.read())
    return h.hexdigest()[:16]


def gather(folder):
    """{file: [lines that were executed]} of the counters in a folder."""
    data = [os.path.join(at, n) for at, _, names in os.walk(folder)
            for n in names if n.endswith(".gcda")]
    for p in data:      # gcov looks for the .gcno next to it
        note = os.path.join(OUT, "cov", os.path.basename(p)[:-4] + "gcno")
        os.symlink(note, p[:-4] + "gcno")
    lines = {}
    for p in data:
        shown = subprocess.run(["gcov", "--json-format", "--stdout", p],
                               check=True, cwd=folder, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL).stdout
        for f in json.loads(shown)["files"]:
            path = os.path.relpath(os.path.join(TOP, f["file"]), TOP)
            if path.startswith("src") and path.endswith(".c"):
                lines.setdefault(path, set()).update(
                    ln["line_number"] for ln in f["lines"] if ln["count"])
    return {k: sorted(v) for k, v in lines.items()}


def instrument(tree, paths, made):
    """Compiles these files with counters; made: {path: object}, kept."""
    for p in paths:
        if p in made:
            continue
        made[p] = os.path.join(OUT, "cov", p.replace("/", "+") + ".o")
        if not tree.compile(p, os.path.join(TOP, p), made[p], ["--coverage"]):
            sys.exit(f"mutants: {p} does not compile")
    return {p: made[p] for p in paths}


DUMP = """
void __gcov_dump(void);
_Noreturn void __real__exit(int);
_Noreturn void __wrap__exit(int code)
{
	__gcov_dump();
	__real__exit(code);
}
"""


def dump_at_exit():
    """Link options: a forked child that ends by _exit() leaves its counts."""
    obj = os.path.join(OUT, "cov", "dump.o")
    subprocess.run(["cc", "-w", "-xc", "-c", "-", "-o", obj], check=True,
                   input=DUMP.encode())
    return ["--coverage", "-Wl,--wrap=_exit", obj]


def measure(tree, paths, names, say):
    """Which lines of these files do these tests execute? Returns {test: {file:
    lines}} and {test: seconds}. Kept in build/mutants/cov; what has not changed
    is not measured again."""
    cov = os.path.join(OUT, "cov")
    os.makedirs(cov, exist_ok=True)
    maps, cost, made = {}, read_json(COST), {}
    now = {p: digest(os.path.join(TOP, p)) for p in paths}
    for n, name in enumerate(names):
        kept = os.path.join(cov, name + ".json")
        known = read_json(kept)
        if known.get("test") != digest(tree.own(name)):
            known = {"test": digest(tree.own(name)), "files": {}}
        inside = tree.included(name)
        stale = [p for p in paths if p not in inside and
                 known["files"].get(p, ["", []])[0] != now[p]]
        if stale:
            say(f"coverage {n + 1}/{len(names)}: {name}")
            with tempfile.TemporaryDirectory(dir=OUT) as run:
                exe = os.path.join(run, "program")
                linked = tree.link(name, instrument(tree, stale, made), exe,
                                   dump_at_exit())
                start = spent_cpu()
                if not linked or not tree.run(name, exe, 900,
                                              {"GCOV_PREFIX": run}):
                    say(f"{name} fails without a mutant: not used")
                    continue
                cost[name] = spent_cpu() - start
                lines = gather(run)
            for p in stale:
                known["files"][p] = [now[p], lines.get(p, [])]
            write_json(kept, known)
            write_json(COST, cost)
        maps[name] = {p: known["files"][p][1] for p in paths
                      if p not in inside}
        maps[name].update({p: list(range(10000)) for p in inside})
    return maps, cost


def read_equivalent():
    """{(file, old line, new line)}; a line a mutant, with tabs between."""
    known = set()
    with open(EQUIVALENT, encoding="utf-8") as f:
        for n, line in enumerate(f, 1):
            if not line.strip() or line.startswith("#"):
                continue
            columns = line.rstrip("\n").split("\t")
            if len(columns) != 4:
                sys.exit(f"{EQUIVALENT}:{n}: write FILE, OLD, NEW and REASON "
                         "separated by tabs")
            known.add(tuple(columns[:3]))
    return known


class Hunt:
    def __init__(self, builds, paths, tests, say):
        self.trees = [Tree(b) for b in builds]
        self.dir = tempfile.mkdtemp(dir=OUT)    # several may run at once
        dev = self.trees[0]
        self.maps, dev.cost = measure(dev, paths, tests, say)
        dev.sound = dict.fromkeys(self.maps, True)  # they passed just so

    def choose(self, path, number):
        """Tests that execute the line, the likeliest first; where none does,
        those that execute the file (a killed child leaves no counters)."""
        cost = self.trees[0].cost
        hit = [t for t, m in self.maps.items() if number in m.get(path, [])]
        near = not hit
        if near:
            hit = [t for t, m in self.maps.items() if m.get(path)]
        stem = os.path.basename(path)[:-2].split("_")[0]
        hit.sort(key=lambda t: (cost[t] > 5, stem not in t, cost[t]))
        return (hit[:8] if near else hit), near

    def start(self, path, line):
        """The line where the statement begins that gcov counts."""
        seen = set()
        for m in self.maps.values():
            seen.update(m.get(path, []))
        return next((n for n in (line, line - 1, line - 2) if n in seen), line)

    def objects(self, tree, test, path, source, obj):
        if path in tree.included(test):
            return tree.compile_test(test, path, source, self.dir)
        return {path: obj}

    def kill(self, tree, path, source, tests):
        """The test that fails, "" if none does, None if the mutant is none;
        and how many were run. The source is written already."""
        obj = os.path.join(self.dir, "mutant.o")
        plain = os.path.join(self.dir, os.path.basename(tree.build) + "+" +
                             path.replace("/", "+") + ".o")
        exe = os.path.join(self.dir, "program")
        if not os.path.exists(plain):
            tree.compile(path, os.path.join(TOP, path), plain, [])
        if not tree.compile(path, source, obj, []) or \
                digest(obj) == digest(plain):
            return None, 0
        spent = ran = 0
        for t in tests:
            if spent + tree.cost.get(t, 1) > MOST_S and ran:
                break
            if t not in tree.sound:
                linked = tree.link(t, self.objects(
                    tree, t, path, os.path.join(TOP, path), plain), exe)
                start = spent_cpu()
                tree.sound[t] = linked and tree.run(t, exe, 900)
                tree.cost[t] = spent_cpu() - start
            if not tree.sound[t]:
                continue
            tree.link(t, self.objects(tree, t, path, source, obj), exe)
            ran += 1
            spent += tree.cost[t]
            if not tree.run(t, exe, 30 + 10 * tree.cost[t]):
                return t, ran
        return "", ran

    def try_one(self, path, change):
        """"same", "killed by TEST" or "survived ..."."""
        number, _, new, _ = change
        source = os.path.join(self.dir, os.path.basename(path))
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            lines = f.read().split("\n")
        lines[number - 1] = new
        with open(source, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
        tests, near = self.choose(path, self.start(path, number))
        counts = []
        for tree in self.trees:
            by, ran = self.kill(tree, path, source, [
                t for t in tests if t in tree.tests])
            if by is None:
                return "same"
            if by:
                return f"killed by {by} ({os.path.basename(tree.build)})"
            counts.append(str(ran))
        why = f"{' and '.join(counts)} of {len(tests)} tests"
        if near:
            why += ", none of which executes the line"
        return f"survived {why}"


def find_sources(tree, where):
    paths = []
    for w in where:
        w = os.path.relpath(os.path.abspath(w), TOP)
        paths += [p for p in tree.compiles if p.startswith(("src/", "python/"))
                  and (p == w or p.startswith(w.rstrip("/") + "/"))]
    if not paths:
        sys.exit(f"mutants: no C file of the build is in {' '.join(where)}")
    return sorted(set(paths))


def parse():
    a = argparse.ArgumentParser()
    a.add_argument("-n", type=int, default=60, help="number of mutants")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--builds", default="dev,asan",
                   help="folders in build/: one for coverage, and others")
    a.add_argument("--tests", help="only tests whose name matches")
    a.add_argument("--list", action="store_true",
                   help="print all possible mutants and stop")
    a.add_argument("--only", help="only mutants whose FILE:LINE matches")
    a.add_argument("path", nargs="+")
    return a.parse_args()


def main():
    args = parse()
    builds = args.builds.split(",")
    tree = Tree(builds[0])
    paths = find_sources(tree, args.path)
    above = any(not p.startswith(tuple(
        f"src/{d}/" for d in "base codec format engine store sampler ddict "
        "token decode make quality comm".split())) for p in paths)
    pattern = args.tests or ("^(test|conform|e2e)_" if above else
                             "^(test|conform)_")
    tests = sorted(t for t in tree.tests if re.search(pattern, t))
    everything = [(p, c) for p in paths for c in
                  changes(os.path.join(TOP, p))
                  if not args.only or re.search(args.only, f"{p}:{c[0]}")]
    known = read_equivalent()
    if args.list:
        for p, c in everything:
            print(f"{p}:{c[0]}: {c[3]}: {c[2].strip()}")
        return 0
    os.makedirs(OUT, exist_ok=True)

    def say(text):
        print(text, file=sys.stderr, flush=True)
    random.Random(args.seed).shuffle(everything)
    hunt = Hunt(builds, paths, tests, say)
    killed, survived, equivalent = 0, [], 0
    for p, c in everything:
        if killed + len(survived) == args.n:
            break
        if (p, c[1].strip(), c[2].strip()) in known:
            equivalent += 1
            continue
        key = f"{digest(os.path.join(TOP, p))} {c[0]} {c[2].strip()}"
        done = read_json(KILLED)
        result = done.get(key) or hunt.try_one(p, c)
        if result == "same":
            continue
        if result.startswith("killed") and key not in done:
            write_json(KILLED, {**read_json(KILLED), key: result})
        say(f"{p}:{c[0]}: {c[3]}: {result}")
        if result.startswith("killed"):
            killed += 1
        else:
            survived.append((p, c, result))
    shutil.rmtree(hunt.dir)
    for p, c, result in sorted(survived):
        print(f"{p}:{c[0]}: {c[3]}: {result}\n- {c[1].strip()}\n"
              f"+ {c[2].strip()}")
    n = killed + len(survived)
    print(f"{' '.join(args.path)}: {n} mutants, {killed} killed "
          f"({100 * killed / max(n, 1):.0f} %), {len(survived)} survived, "
          f"{equivalent} listed as equivalent; seed {args.seed}")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
