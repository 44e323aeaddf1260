#!/usr/bin/python3
"""Completion in the real shells: commands, flags, settings and their values,
names of workloads and formats, and paths; the same in bash, zsh and fish."""
import os
import pty
import select
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main, skip  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]

# a line, words that are offered, and words that are not
CASES = [
    ("penstock lo", {"load"}, {"run"}),
    ("penstock ddict be", {"bench"}, {"load"}),
    ("penstock load --js", {"--json"}, {"--quiet"}),
    ("penstock load batch_s", {"batch_size="}, {"epochs="}),
    ("penstock load store=po", {"store=posix"}, {"store=mmap"}),
    ("penstock load sampler=bl", {"sampler=block"}, {"sampler=shuffle"}),
    ("penstock load tail=ke", {"tail=keep"}, {"tail=pad"}),
    ("penstock load shuffle=tr", {"shuffle=true"}, {"shuffle=false"}),
    ("penstock load store.dir", {"store.direct="}, set()),
    ("penstock load decode.x=js", {"decode.x=json"}, {"decode.x=int"}),
    ("penstock load some_fi", {"some_file.npy"}, set()),
    ("penstock run unet3d_sm", {"unet3d_small"}, {"unet3d_h100"}),
    ("penstock run reader.read_th", {"reader.read_threads="}, set()),
    ("penstock formats np", {"npy", "npz"}, {"csv"}),
    ("penstock gen format=np", {"format=npy", "format=npz"}, {"format=csv"}),
    ("penstock load x -o some_fi", {"some_file.npy"}, {"epochs="}),
    ("penstock simulate cache=lo", {"cache=local"}, {"cache=none"}),
    ("penstock explain P90", {"P901", "P902"}, {"P001"}),
]


# the same for names with blanks, colons and quotes
FILES = ["my file.npy", "a:b.npy", "it's.npy", "some dir/z.npy", "*star.npy"]
NAMES = [
    ("penstock load my\\ fi", {"my file.npy"}, {"fields="}),
    ("penstock load 'my fi", {"my file.npy"}, {"fields="}),
    ("penstock load weights=my\\ f", {"weights=my file.npy"}, set()),
    ("penstock load a:", {"a:b.npy"}, set()),
    ("penstock load some\\ dir/", {"some dir/z.npy"}, set()),
]


def put_files(tmp):
    os.mkdir(f"{tmp}/some dir")
    for name in FILES:
        open(f"{tmp}/{name}", "w", encoding="utf-8").close()


def place(tmp):
    """A folder with a file, and the command in PATH."""
    open(f"{tmp}/some_file.npy", "w", encoding="utf-8").close()
    os.mkdir(f"{tmp}/bin")
    os.symlink(PENSTOCK, f"{tmp}/bin/penstock")
    for shell, name in (("bash", "penstock.bash"), ("zsh", "_penstock"),
                        ("fish", "penstock.fish")):
        with open(f"{tmp}/{name}", "wb") as f:
            f.write(subprocess.run([PENSTOCK, "--completion", shell],
                                   check=True, capture_output=True).stdout)
    return dict(os.environ, PATH=f"{tmp}/bin:{os.environ['PATH']}", HOME=tmp)


def judge(shell, line, offered, some, none):
    check(some <= offered, f"{shell}: {line!r} offers {sorted(offered)}")
    check(not none & offered, f"{shell}: {line!r} offers {none & offered}")


def test_bash(tmp):
    env = place(tmp)
    script = """
. ./penstock.bash
IFS= read -r COMP_LINE
COMP_POINT=${#COMP_LINE}
COMP_WORDBREAKS=$' \\t\\n"=:'
_penstock penstock
printf '%s\\n' "${COMPREPLY[@]}"
"""
    check(subprocess.run([PENSTOCK, "--completion"], capture_output=True,
                         check=True).stdout ==
          open(f"{tmp}/penstock.bash", "rb").read(), "bash is the default")
    for line, some, none in CASES:
        p = subprocess.run(["bash", "--norc", "-c", script], input=line,
                           cwd=tmp, env=env, capture_output=True, text=True,
                           timeout=60)
        # bash has what follows the '='
        stem = line.split(" ")[-1]
        stem = stem[:stem.rindex("=") + 1] if "=" in stem else ""
        judge("bash", line, {stem + w for w in p.stdout.split()}, some, none)


def test_fish(tmp):
    if not shutil.which("fish"):
        skip("fish is not installed")
        return
    env = place(tmp)
    put_files(tmp)
    for line, some, none in CASES + NAMES:
        p = subprocess.run(
            ["fish", "--no-config", "-c",
             "source penstock.fish; complete -C $argv[1]", line],
            cwd=tmp, env=env, capture_output=True, text=True, timeout=60)
        judge("fish", line, {w.split("\t")[0].strip()
                             for w in p.stdout.splitlines()}, some, none)


class Typed:
    """An interactive shell that writes its line to a file at Ctrl-X."""

    def __init__(self, tmp, env, command, setup):
        self.out = f"{tmp}/line"
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(tmp)
            os.execvpe(command[0], command,
                       dict(env, TERM="dumb", COLUMNS="200", PS1=""))
        self.send(setup.replace("OUT", self.out).replace("TMP", tmp))
        self.complete("", "")

    def send(self, text):
        os.write(self.fd, text.encode())

    def complete(self, line, keys="\t"):
        """The line after these keys."""
        self.send(line + keys + "\x18")
        until = time.monotonic() + 60
        while not os.path.exists(self.out) and time.monotonic() < until:
            if select.select([self.fd], [], [], 0.05)[0]:
                os.read(self.fd, 65536)
        with open(self.out, encoding="utf-8") as f:
            found = f.read().rstrip("\n")
        os.remove(self.out)
        return found

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


BASH = (". ./penstock.bash; bind 'set bell-style none'\n"
        "show() { printf '%s' \"$READLINE_LINE\" > OUT.new;"
        " mv OUT.new OUT; READLINE_LINE=; READLINE_POINT=0; }\n"
        "bind -r '\\C-x'; bind -x '\"\\C-x\":show'\n")
ZSH = ("fpath=(TMP $fpath); PROMPT=; unsetopt beep\n"
       "autoload -Uz compinit; compinit -u -D\n"
       "bindkey '^I' complete-word; setopt no_auto_menu\n"
       "show() { print -r -- $BUFFER > OUT.new; mv OUT.new OUT; BUFFER= }\n"
       "zle -N show; bindkey '^X' show\n")

TYPED = [
    ("load batch_s", "load batch_size="),
    ("load store=po", "load store=posix "),
    ("load my", "load my\\ file.npy "),
    ("load my\\ fi", "load my\\ file.npy "),
    ("load 'my fi", "load 'my file.npy' "),
    ("load weights=my\\ f", "load weights=my\\ file.npy "),
    ("load a:", "load a:b.npy "),
    ("load it", "load it\\'s.npy "),
    ("load some\\ dir/", "load some\\ dir/z.npy "),
    ("load \\*st", "load \\*star.npy "),
    ("load 'my file.npy' tail=ke", "load 'my file.npy' tail=keep "),
]


def test_typed(tmp):
    env = place(tmp)
    put_files(tmp)
    for command, setup in ((["bash", "--norc", "--noprofile", "-i"], BASH),
                           (["zsh", "-f", "-i"], ZSH)):
        if not shutil.which(command[0]):
            skip(f"{command[0]} is not installed")
            continue
        shell = Typed(tmp, env, command, setup)
        for line, want in TYPED:
            found = shell.complete("penstock " + line)
            check(found == "penstock " + want, f"{command[0]}: {line!r} "
                  f"becomes {found!r}, not {want!r}")
        shell.close()


def test_zsh(tmp):
    if not shutil.which("zsh"):
        skip("zsh is not installed")
        return
    zsh = Typed(tmp, place(tmp), ["zsh", "-f", "-i"], ZSH)
    for line, some, _ in CASES:
        if len(some) > 1:
            continue
        word = next(iter(some))
        start = line[:line.rindex(" ") + 1]
        found = zsh.complete(line)
        # a setting waits for its value, other words are done
        end = "" if word.endswith("=") else " "
        check(found == start + word + end, f"zsh: {line!r} becomes {found!r}")
    found = zsh.complete("penstock formats n", "\t")
    check(found == "penstock formats np", f"zsh: what is common: {found!r}")
    zsh.close()


def test_unknown(tmp):
    p = subprocess.run([PENSTOCK, "--completion", "fihs"], cwd=tmp,
                       capture_output=True, text=True, timeout=60)
    check(p.returncode == 2 and "did you mean 'fish'" in p.stderr, p.stderr)


if __name__ == "__main__":
    main(globals())
