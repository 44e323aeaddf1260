#!/usr/bin/python3
"""What a run shows on a terminal while it goes, seen through tmux: lines that
fit, drawn in place, and gone at the end; and without a terminal."""
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

if not shutil.which("tmux"):
    print("skipped: tmux is not installed")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main, skip  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
TRAIN = ["run", "default_small", "dataset.num_files_train=64",
         "workflow.evaluation=false", "train.computation_time=0.02"]
LABELS = ["epoch", "", "rate", "delivered", "utilisation", "queue",
          "batch wait", "machine", "last minute"]
COLOUR = re.compile("\x1b\\[[0-9;]*m")


class Pane:
    """A command in a terminal of a given size."""

    n = 0

    def __init__(self, tmp, size, env, args):
        Pane.n += 1
        self.tmux = ["tmux", "-u", "-f", "/dev/null", "-S",
                     f"{tmp}/tmux{Pane.n}"]
        news = f"{tmp}/news{Pane.n}"    # whatever is written to the terminal
        os.mkfifo(news)
        self.news = os.open(news, os.O_RDWR | os.O_NONBLOCK)
        words = [f"{k}={v}" for k, v in env.items()] + [PENSTOCK, *args]
        line = "cd {}; echo above; env -u NO_COLOR -u COLUMNS {}; " \
            "echo exit=$?; read x".format(tmp, " ".join(words))
        self.do("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]),
                line, ";", "pipe-pane", f"exec cat >{news}")

    def do(self, *args):
        return subprocess.run([*self.tmux, *args], check=True, timeout=600,
                              capture_output=True, text=True).stdout

    def screen(self, *how):
        return self.do("capture-pane", "-p", *how)

    def wait(self):
        """Until something new is there, all of it, or could be."""
        longest = 0.5
        while select.select([self.news], [], [], longest)[0]:
            os.read(self.news, 1 << 20)
            longest = 0.02

    def until(self, word):
        """Screens until the word is on one; all that differ."""
        seen = [""]
        while True:
            now = self.screen()
            if now != seen[-1]:
                seen.append(now)
            if word in now:
                return seen[1:]
            self.wait()

    def close(self):
        os.close(self.news)
        subprocess.run([*self.tmux, "kill-server"], check=False,
                       capture_output=True)


def look_at(screen, width, utf8):
    """The block on a screen: its lines are there, once each, and fit."""
    lines = screen.rstrip("\n").split("\n")
    check(lines[0] == "above", f"what was above is gone:\n{screen}")
    block = lines[1:]
    want = LABELS if utf8 else LABELS[:-1]
    check(len(want) - 1 <= len(block) <= len(want),
          f"{len(block)} lines:\n{screen}")
    for line, label in zip(block, want):
        check(line.startswith("  " + label), f"not '{label}': {line!r}")
        check(len(line) <= width - 2, f"{len(line)} columns: {line!r}")
    check(re.search(r"epoch \d+ of \d+, \d+ of 16 steps", block[0]), block[0])
    check(re.search(r"\d %, .* left", block[1]), block[1])
    check(("#" in block[1] or "-" in block[1]) != utf8,
          f"the bar's characters: {block[1]!r}")
    check(re.search(r"[\d.]+( k)? samples/s now, .* mean", block[2]), block[2])
    check(re.search(r"[\d.]+ % now, [\d.]+ % mean", block[4]), block[4])
    check(re.search(r"\d of \d+ batches ready", block[5]), block[5])
    check(re.search(r"p50 .*s, p99 .*s$", block[6]), block[6])
    check(re.search(r"of \d+ CPUs, .*B of memory", block[7]), block[7])


def after(pane, code):
    """The result alone is on the screen."""
    last = pane.until("exit=")[-1]
    check(f"exit={code}" in last, last)
    check("batches ready" not in last and "last minute" not in last,
          f"the block is still there:\n{last}")
    check("utilisation" in last and "result.json" in last, last)
    return last


def to_the_end(tmp):
    pane = Pane(tmp, (100, 30), {"LC_ALL": "C.UTF-8"},
                [*TRAIN, "train.epochs=11", "output.folder=out"])
    try:
        seen = [s for s in pane.until("exit=") if "batches ready" in s]
        check(len(seen) > 1, "it was drawn once at most")
        for s in seen:
            look_at(s, 100, True)
        lines = after(pane, 0).splitlines()
        check(lines[0] == "above" and lines[1].startswith("default_small: 1 "),
              "\n".join(lines))
    finally:
        pane.close()


def small_and_interrupted(tmp):
    pane = Pane(tmp, (60, 20), {"LC_ALL": "C"},
                [*TRAIN, "train.epochs=100000", "output.folder=out"])
    try:
        seen = pane.until("batches ready")
        first = seen[-1]
        check(COLOUR.search(pane.screen("-e")), "there are colours")
        look_at(first, 60, False)
        while pane.screen() == first:
            pane.wait()
        look_at(pane.screen(), 60, False)
        pane.do("send-keys", "C-c")
        check("(interrupted" in after(pane, 130), "it says so")
    finally:
        pane.close()


def plain(tmp):
    """No colours where they are not wanted, no block where the terminal is
    dumb."""
    pane = Pane(tmp, (100, 30), {"LC_ALL": "C.UTF-8", "NO_COLOR": 1,
                                 "COLUMNS": 70},
                [*TRAIN, "train.epochs=100000", "output.folder=a"])
    try:
        pane.until("batches ready")
        check(not COLOUR.search(pane.screen("-e")), "NO_COLOR")
        look_at(pane.screen(), 70, True)
        pane.do("send-keys", "C-c")
        after(pane, 130)
    finally:
        pane.close()
    pane = Pane(tmp, (100, 30), {"TERM": "dumb"},
                [*TRAIN, "train.epochs=9", "output.folder=b"])
    try:
        check(not [s for s in pane.until("exit=") if "CPUs," in s], "dumb")
        check(not COLOUR.search(pane.screen("-e")), "dumb: no colours")
    finally:
        pane.close()


def ranks(tmp):
    """mpirun reads what its ranks print through pipes: one of them says now and
    then how it goes, and that it is one of several."""
    if not shutil.which("mpirun"):
        skip("mpirun is not installed")
        return
    subprocess.run([PENSTOCK, "gen", f"{tmp}/d", "files=64", "shape=64"],
                   check=True, capture_output=True)
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2",
              PENSTOCK]
    jobs = [[*TRAIN, "train.epochs=32", "output.folder=ranks"],
            ["load", "d", "epochs=0", "--seconds", "12"],
            ["load", "d", "epochs=0", "--seconds", "12", "cache=ddict"]]
    lines = [r"epoch \d+ of 32, \d+ of 8 steps \(.* %, .* left\), .* "
             r"samples/s, .*B/s, utilisation .* %", r"loading, .* left\), .* "
             r"samples/s, .*B/s", r"loading, .* left\), .* samples/s, .*B/s"]
    # launchers that start together fail if they share a directory
    own = [tempfile.mkdtemp(prefix="mpi.", dir=tmp) for _ in jobs]
    ran = [subprocess.Popen([*mpirun, *args], cwd=tmp, text=True,
                            env={**os.environ,
                                 "OMPI_MCA_orte_tmpdir_base": where},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
           for args, where in zip(jobs, own)]
    for p, line in zip(ran, lines):
        try:
            _, err = p.communicate(timeout=600)
        finally:
            p.kill()
        said = [x for x in err.splitlines() if x.startswith("penstock:")]
        check(not p.returncode and said, f"{p.args}: {p.returncode}: {err}")
        for x in said:
            check(re.fullmatch(rf"penstock: {line}, \d+ of \d+ batches ready "
                               r"\(first of 2 ranks\)", x), repr(x))
        # of both, they would come in pairs
        done = [x.split("(")[0] for x in said]
        check(len(set(done)) == len(done), f"{said}")
        check("\x1b" not in err, repr(err))


def load(tmp):
    subprocess.run([PENSTOCK, "gen", f"{tmp}/d", "files=64", "shape=64"],
                   check=True, capture_output=True)
    pane = Pane(tmp, (100, 30), {"LC_ALL": "C.UTF-8"},
                ["load", "d", "epochs=0", "--seconds", "100000"])
    try:
        first = pane.until("batches ready")[-1]
        check(re.search(r"loading, \d+ of 100,000 seconds", first), first)
        check("27 h 46 min left" in first, first)
        pane.do("send-keys", "C-c")
        last = pane.until("exit=")[-1]
        check("exit=130" in last and "Summary" in last, last)
        check("batches ready" not in last, last)
    finally:
        pane.close()


def test_all(tmp):
    """Without a terminal there is a line now and then; the first one takes ten
    seconds, and all that a terminal shows is looked at meanwhile."""
    file = subprocess.Popen([PENSTOCK, *TRAIN, "train.epochs=100000",
                             "output.folder=file", "dataset.data_folder=f"],
                            cwd=tmp, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        for look in (to_the_end, small_and_interrupted, plain, load, ranks):
            os.mkdir(f"{tmp}/{look.__name__}")
            look(f"{tmp}/{look.__name__}")
        line = file.stderr.readline()
        file.send_signal(signal.SIGINT)
        _, rest = file.communicate(timeout=600)
    finally:
        file.kill()
    check(re.fullmatch(r"penstock: epoch \d+ of 100000, \d+ of 16 steps \(.* %,"
                       r" .* left\), .* samples/s, .*B/s, utilisation .* %, "
                       r"\d+ of \d+ batches ready\n", line), repr(line))
    check("\x1b" not in rest, repr(rest))


main(globals())
