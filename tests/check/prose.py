#!/usr/bin/python3
"""Everything a person reads is in plain technical English. A script cannot
judge prose, but it can hold what was repaired once:

    prose.py [PATH...]      (default: the whole tree)

- wordings that are not English, or that need a glossary, do not come back;
- a message starts in lower case, ends without a full stop, and quotes a name;
- the help of a setting starts in lower case, ends without a full stop, and is
  short enough for a line or two;
- the sentences in the help of a command are short;
- messages and help call a directory a directory, not a folder;
- a message names the object that it is about.
"""
import os
import re
import sys

ROOT = os.environ.get("SOURCE") or os.path.join(os.path.dirname(__file__),
                                                "../..")
PLACES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
          "docs", "include", "src", "python", "examples", "workloads",
          "scripts", "bench", "Makefile"]
HELP_MOST = 110     # characters of a setting's help
SENTENCE_MOST = 38  # words of a sentence in the help of a command

# What was found in the tree, and what to write instead.
WORDINGS = [(re.compile(r"\b(?:" + bad + r")", re.I), better) for bad, better in [
    (r"(?<!there )is no (?!longer\b|more than\b|different\b)", "is not a ..."),
    (r"(?<!there )are no (?!longer\b|more than\b|different\b)", "are not ..."),
    (r"is none of\b", "is not one of"),
    (r"of which\b", "a sentence of its own"),
    (r"anew\b", "again"),
    (r"is begun\b|are begun\b|was begun\b", "starts, started"),
    (r"such a one\b|such ones\b", "name the thing"),
    (r"let hear\b", "send a heartbeat"),
    (r"tells? the result\b", "prints a summary"),
    (r"in words:", "summary:"),
    (r"as theory has it\b", "expected"),
    (r"who starves\b", "competing for"),
    (r"is to be had\b|can be had\b|to be had\b", "is available"),
    (r"be it\b", "including"),
    (r"for who\b|who does not know\b", "for readers who"),
    (r"that is all there is\b", "say what there is"),
    (r"so to say\b|so to speak\b", "leave it out"),
    (r"is of no use\b", "is not useful"),
    (r"makes? no sense\b", "is not valid"),
    (r"what is there\b|what there is\b", "name the thing"),
    (r"is there already\b|are there already\b", "already exists"),
    (r"is not there\b|are not there\b", "does not exist"),
    (r"stands? beside\b|beside (it|them|each other|one another)\b", "next to"),
    (r"lets? itself\b", "can be"),
    (r"nobody (asks|knows|needs)\b", "unknown, unused"),
    (r"gone through\b", "processed, read"),
    (r"how many there (are|will be)\b", "the number of"),
    (r"all the same\b", "anyway"),
    (r"by and by\b|bit by bit\b", "gradually"),
    (r"as (it|they) (is|are) of\b", "as"),
    (r"came to be\b", "became"),
    (r"takes? turns at\b", "share"),
    (r"is said to\b|are said to\b", "name who says it"),
    (r"cannot be looked at\b", "cannot read the status of"),
    (r"put on disk\b", "write to disk, sync"),
    (r"at one's\b", "leave it out"),
    (r"cannot be told from\b", "cannot be detected from"),
    (r"something unknown\b", "name the thing"),
    (r"a cell, %|a sample, %|a batch, %", "per cell, per sample, per batch"),
    (r"on %[du] machines\b", "count with the right plural"),
]]

# Functions that print or keep a message, and which argument its format is.
MESSAGES = {"pen__fail": 3, "pen__fail_sys": 3, "pen__fail_as": 3,
            "complain_usage": 1, "pen__fail_in": None, "REFUSE": None}
STRING = r'"((?:\\.|[^"\\])*)"'
# A capital is right in a name or an acronym.
CAPITAL = re.compile(r"[A-Z][a-z]+ ")
PROPER = ("Open MPI", "Cell Ranger", "Not enough ", "Only have ", "Python ",
          "Linux ", "Debian ", "Blosc ", "Pillow ", "PyTorch ", "Slurm ")
EXAMPLE = re.compile(r"```.*?```|^    [^\n]*$", re.M | re.S)
FOLDER = re.compile(r"(?<![=`_.'])\bfolders?\b(?!`)")
UNQUOTED = re.compile(r"\b(?:unknown|no) (?:format|store|sampler|setting|key|"
                      r"column|field|command|flag|experiment|workload|option)"
                      r" %(?:\.\*|\.\d+)?s")


def arguments(text, at):
    """The arguments of a call whose parenthesis opens before at."""
    out, depth, start, i = [], 1, at, at
    while i < len(text):
        c = text[i]
        if c in "\"'":
            i += 1
            while i < len(text) and text[i] != c:
                i += 1 + (text[i] == "\\")
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if not depth:
                return out + [text[start:i]]
        elif c == "," and depth == 1:
            out.append(text[start:i])
            start = i + 1
        i += 1
    return out


def joined(text):
    return "".join(re.findall(STRING, text))


class Check:
    def __init__(self):
        self.found = 0
        self.files = 0

    def say(self, path, text, at, what):
        self.found += 1
        print(f"{os.path.relpath(path, ROOT)}:{text.count(chr(10), 0, at) + 1}"
              f": {what}")

    def wordings(self, path, text, prose):
        """prose has the length of text, with all but prose blanked out."""
        for bad, better in WORDINGS:
            for m in bad.finditer(prose):
                self.say(path, text, m.start(), f"'{m.group(0).strip()}'"
                         f" (better: {better})")

    def message(self, path, text, at, words):
        if CAPITAL.match(words) and not words.startswith(PROPER):
            self.say(path, text, at, f"a message starts in lower case: {words}")
        if words.endswith(".") and not words.endswith("..."):
            self.say(path, text, at, f"a message has no full stop: {words}")
        if UNQUOTED.search(words):
            self.say(path, text, at, f"quote the name: {words}")
        if FOLDER.search(words):
            self.say(path, text, at, f"say directory: {words}")

    def messages(self, path, text):
        for m in re.finditer(r"\b(%s)\s*\(" % "|".join(MESSAGES), text):
            args = arguments(text, m.end())
            n = MESSAGES[m.group(1)]
            if n == 3 and len(args) > 3 and args[2].strip() == '""':
                self.say(path, text, m.start(), "name the object in question")
            if n is None:
                args, n = [a for a in args if '"' in a][-1:], 0
            if len(args) > n and re.fullmatch(r"(?s)\s*(?:%s\s*|PRI\w+\s*)+"
                                              % STRING, args[n]):
                self.message(path, text, m.start(), joined(args[n]))

    def helps(self, path, text):
        for m in re.finditer(r"\.help\s*=\s*((?:%s\s*)+)" % STRING, text):
            words = joined(m.group(1))
            if len(words) > HELP_MOST:
                self.say(path, text, m.start(), f"{len(words)} characters of "
                         f"help, at most {HELP_MOST}: {words}")
            if words.endswith(".") and not words.endswith("..."):
                self.say(path, text, m.start(), f"no full stop: {words}")
            if FOLDER.search(words):
                self.say(path, text, m.start(), f"say directory: {words}")
            if CAPITAL.match(words) and not words.startswith(PROPER):
                self.say(path, text, m.start(), f"lower case: {words}")

    def abouts(self, path, text):
        for m in re.finditer(r"\.about\s*=\s*((?:%s\s*)+)" % STRING, text):
            for sentence in re.split(r"[.;:] ", joined(m.group(1))):
                if len(sentence.split()) > SENTENCE_MOST:
                    self.say(path, text, m.start(), f"a sentence of more than "
                             f"{SENTENCE_MOST} words: {sentence}")

    def file(self, path):
        try:
            with open(path, encoding="utf-8") as f:
                text = f.read()
        except UnicodeDecodeError:
            return
        self.files += 1
        if path.endswith((".c", ".h")):
            self.wordings(path, text, prose_of_c(text))
            self.messages(path, text)
            self.helps(path, text)
            self.abouts(path, text)
        elif path.endswith(".md"):
            # examples show what programs print
            self.wordings(path, text, EXAMPLE.sub(
                lambda m: re.sub(r"[^\n]", " ", m.group(0)), text))
        else:
            self.wordings(path, text, text)


def prose_of_c(text):
    """Comments and strings; code becomes blanks. What C breaks into lines
    (the stars of a comment, the quotes of a string) is one sentence."""
    out = re.sub(r"[^\n]", " ", text)
    chars = list(out)
    for m in re.finditer(r"/\*.*?\*/|//[^\n]*|" + STRING, text, re.S):
        piece = m.group(0)
        if piece.startswith('"'):
            piece = " " + piece[1:-1] + " "
        piece = re.sub(r"\n[ \t]*\*", lambda x: "\n" + " " *
                       (len(x.group(0)) - 1), piece)
        chars[m.start():m.end()] = piece
    return "".join(chars)


def files(places):
    for place in places:
        if os.path.isfile(place):
            yield place
        for folder, names, found in os.walk(place):
            names[:] = sorted(n for n in names if n not in
                              ("build", "__pycache__", "data"))
            for name in sorted(found):
                if name.endswith((".c", ".h", ".md", ".py", ".pyi", ".txt",
                                  ".yaml", ".js", ".css", ".sh")) or \
                        "." not in name:
                    yield os.path.join(folder, name)


def main():
    check = Check()
    places = sys.argv[1:] or [os.path.join(ROOT, p) for p in PLACES]
    for path in files(places):
        check.file(path)
    print(f"{check.files} files read, {check.found} places to repair")
    return 1 if check.found or not check.files else 0


sys.exit(main())
