"""examples/doc2vec over ranks: one model, the same for any number of ranks and
threads; checkpoints; ranks that fail or are killed; vectors that tell two
classes apart."""
import json
import os
import random
import shutil
import signal
import subprocess

import numpy
import pytest

DOC2VEC = os.path.join(os.path.dirname(os.environ["PENSTOCK"]), "..", "..",
                       "examples", "doc2vec")
MPIRUN = os.path.join(os.environ["SOURCE"], "tests", "mpirun")
NAMES = ("docs", "words", "out")
N = 145  # sequences: the last batch has 1, fewer than there are ranks

pytestmark = [
    pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun"),
    pytest.mark.skipif("thread" in os.environ.get("SANITIZE", ""),
                       reason="MPI is not built for ThreadSanitizer")]


def write(d, n, length, weights):
    """n sequences of each of two kinds, mixed, and their labels."""
    r = random.Random(7)
    rows = [(r.choices("ACGT", weights=w, k=length), c)
            for c, w in enumerate(weights) for _ in range(n)]
    r.shuffle(rows)
    with open(d / "s.txt", "w", encoding="ascii") as f:
        f.writelines(f"{''.join(s)},id_{i}\n" for i, (s, _) in enumerate(rows))
    with open(d / "labels", "w", encoding="ascii") as f:
        f.writelines(f"{'AT' if c else 'uniform'}\n" for _, c in rows)
    subprocess.run([os.environ["PENSTOCK"], "vocab", d / "s.txt",
                    "format=lines", "k=4", "pads=true", "-o", d / "v.txt"],
                   check=True, stdout=subprocess.DEVNULL)
    return d


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    d = tmp_path_factory.mktemp("ranks")
    write(d, 73, 120, ((1, 1, 1, 1), (35, 15, 15, 35)))
    with open(d / "s.txt", encoding="ascii") as f:
        lines = f.readlines()[:N]
    with open(d / "s.txt", "w", encoding="ascii") as f:
        f.writelines(lines)
    return d


def command(d, n, *args):
    ranks = [MPIRUN, "-n", str(n)] if n else []
    return [*ranks, DOC2VEC, str(d / "s.txt"), f"format.vocab={d}/v.txt",
            *map(str, args)]


def run(d, n, *args, code=0):
    p = subprocess.run(command(d, n, *args), capture_output=True, text=True,
                       timeout=600, check=False)
    assert (p.returncode != 0) == bool(code), (p.returncode, p.stderr)
    return p


def train(d, n, to, *args):
    """The epochs and the vectors of a run on n ranks with batches of 12."""
    p = run(d, n, f"batch_size={12 // (n or 1)}", "--json", "--epochs", 2,
            "--vectors", d / to, *args)
    assert sorted(os.listdir(d / to)) == ["docs.npy", "out.npy", "words.npy",
                                          "words.txt"]
    return json.loads(p.stdout)["epochs"], {
        k: numpy.load(d / to / f"{k}.npy") for k in NAMES}


def same(a, b):
    assert [e["loss"] for e in a[0]] == [e["loss"] for e in b[0]]
    assert [e["content"] for e in a[0]] == [e["content"] for e in b[0]]
    for k in NAMES:
        assert (a[1][k] == b[1][k]).all(), k


@pytest.fixture(scope="module")
def alone(data):
    return train(data, 0, "alone", "--train-threads", 1)


@pytest.mark.parametrize("n,threads,update", [(1, 2, "sparse"), (2, 1, "sparse"),
                                              (3, 1, "sparse"), (4, 2, "sparse"),
                                              (2, 1, "adam")])
def test_any_number(data, alone, n, threads, update):
    """Bit by bit the same, also with deterministic=true spelled out."""
    want = alone if update == "sparse" else \
        train(data, 0, "adam", "--update", update)
    same(want, train(data, n, f"n{n}{update}", "--train-threads", threads,
                     "--update", update, "deterministic=true"))


def test_floats(data, alone):
    """deterministic=false: floats on the wire, almost the same."""
    for n in (2, 3):
        e, _ = train(data, n, f"f{n}", "deterministic=false")
        for a, b in zip(alone[0], e):
            assert abs(a["loss"] / b["loss"] - 1) < 1e-5
            assert a["content"] == b["content"]


def test_cache(data, alone):
    """From the memory of the ranks."""
    same(alone, train(data, 2, "cache", "cache=ddict"))


def test_resume(data, alone):
    """Stopped within an epoch, continued on another number of ranks."""
    for first, then in ((0, 2), (3, 0), (2, 4)):
        file = data / f"state{first}"
        run(data, first, f"batch_size={12 // (first or 1)}", "--epochs", 2,
            "--steps", 5, "--checkpoint", file)
        got = train(data, then, f"r{then}", "--resume", file)
        assert [e["loss"] for e in got[0]] == [e["loss"] for e in alone[0]]
        for k in NAMES:
            assert (got[1][k] == alone[1][k]).all(), k
    # every few batches; and at the end, to be continued
    run(data, 2, "batch_size=6", "--epochs", 1, "--every", 4, "--checkpoint",
        data / "end")
    got = train(data, 0, "more", "--resume", data / "end")
    assert len(got[0]) == 1 and got[0][0]["epoch"] == 1
    assert (got[1]["docs"] == alone[1]["docs"]).all()


def test_bad_checkpoint(data):
    run(data, 0, "--steps", 1, "--checkpoint", data / "good")
    with open(data / "good", "rb") as f:
        good = f.read()
    for name, content, says in (
            ("cut", good[:-9], "complete"), ("long", good + b"x", "damaged"),
            ("bit", good[:5000] + bytes([good[5000] ^ 1]) + good[5001:],
             "damaged"), ("other", b"x" * len(good), "not a checkpoint")):
        with open(data / name, "wb") as f:
            f.write(content)
        for n in (0, 2):
            p = run(data, n, "--resume", data / name, code=1)
            assert says in p.stderr, (name, p.stderr)
    p = run(data, 0, "--resume", data / "good", "--dim", 8, code=1)
    assert "--dim" in p.stderr
    p = run(data, 0, "--resume", data / "none", code=1)
    assert "none" in p.stderr
    p = run(data, 0, "--steps", 1, "--checkpoint", "/proc/none", code=1)
    assert "/proc/none" in p.stderr


def test_one_fails(data):
    """The error of one rank ends all, with its message."""
    bad = [DOC2VEC, str(data / "s.txt"), f"format.vocab={data}/v.txt"]
    p = subprocess.run([*command(data, 1), ":", "-n", "1", *bad, "nothing=5"],
                       capture_output=True, text=True, timeout=600, check=False)
    assert p.returncode and "nothing" in p.stderr and "rank 1" in p.stderr
    # an error within training: vectors that cannot be written
    os.makedirs(data / "half" / "out.npy", exist_ok=True)
    p = run(data, 2, "--vectors", data / "half", code=1)
    assert "out.npy" in p.stderr
    assert not [x for x in os.listdir(data / "half") if x.endswith(".tmp")]


def rank_pid(job, rank):
    want = f"OMPI_COMM_WORLD_RANK={rank}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                group = int(f.read().rsplit(")", 1)[1].split()[3])
            with open(f"/proc/{pid}/environ", "rb") as f:
                if group == os.getsid(job.pid) and \
                        want in f.read().split(b"\0"):
                    return int(pid)
        except (OSError, ValueError):
            continue
    raise AssertionError("no such rank")


@pytest.mark.parametrize("phase", ["open", "train", "write"])
def test_killed(data, phase):
    """A rank is killed while rank 0 waits at a pipe: in each phase all end."""
    d = data / phase
    d.mkdir()
    pipe = {"open": d / "labels", "train": d / "state.tmp",
            "write": d / "out" / "docs.npy.tmp"}[phase]
    args = {"open": ("--labels", d / "labels"),
            "train": ("--checkpoint", d / "state", "--every", 2),
            "write": ("--vectors", d / "out")}[phase]
    (d / "out").mkdir()
    os.mkfifo(pipe)
    with subprocess.Popen(command(data, 3, "batch_size=4", *args),
                          stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                          start_new_session=True) as job:
        # returns when rank 0 has opened the other end
        with open(pipe, "wb" if phase == "open" else "rb"):
            os.kill(rank_pid(job, 1), signal.SIGKILL)
            _, err = job.communicate(timeout=600)
        assert job.returncode != 0 and b"signal 9" in err, err
    assert not os.path.exists(d / "out" / "docs.npy")
    assert not os.path.exists(d / "state")


def test_diverges(data):
    for rate in ("5", "1e5"):
        for n in (0, 2):
            p = run(data, n, "batch_size=6", "--rate", rate, "--vectors",
                    data / "wild", code=1)
            assert "--rate" in p.stderr and "too high" in p.stderr
            assert p.stderr.count("too high") == 1
            assert not os.listdir(data / "wild")


def test_tells_apart(tmp_path):
    """Defaults, one epoch: as good as with scikit-learn's regression."""
    linear = pytest.importorskip("sklearn.linear_model",
                                 reason="python3-sklearn is not installed")
    choose = pytest.importorskip("sklearn.model_selection")
    d = write(tmp_path, 400, 1000, ((1, 1, 1, 1), (35, 15, 15, 35)))
    p = run(d, 0, "--labels", d / "labels", "--json", "--vectors", d / "o")
    got = json.loads(p.stdout)
    assert got["accuracy"] >= 0.95
    assert 0.4 < got["accuracy_shuffled"] < 0.6
    losses = [loss for _, loss in got["epochs"][0]["losses"]]
    assert len(losses) > 10 and losses[-1] < losses[0]
    with open(d / "labels", encoding="ascii") as f:
        y = f.read().split()
    x = numpy.load(d / "o" / "docs.npy")
    model = linear.LogisticRegression(max_iter=1000)
    assert choose.cross_val_score(model, x / x.std(0), y, cv=5).mean() >= 0.95
    random.Random(3).shuffle(y)
    assert 0.4 < choose.cross_val_score(model, x / x.std(0), y,
                                        cv=5).mean() < 0.6


def test_bad_labels(data):
    with open(data / "labels", encoding="ascii") as f:
        good = f.readlines()[:N]
    for content, says in ((good[1:], "144 labels"), (["x\n"] * N, "at least"),
                          (good[:-1] + ["z\n"], "more than two")):
        with open(data / "bad", "w", encoding="ascii") as f:
            f.writelines(content)
        p = run(data, 0, "--labels", data / "bad", code=1)
        assert says in p.stderr and p.stderr.count("\n") == 1
    for args in (("--every", "3"), ("--model", "none", "--labels", "x"),
                 ("--parts", "0"), ("deterministic=perhaps",)):
        p = run(data, 0, *args, code=1)
        assert p.stderr.count("\n") == 1
