"""examples/doc2vec compared with the same model in PyTorch: the loss of every
step and the final vectors, for three update rules; the same for any number of
threads."""
import json
import os
import random
import subprocess

import numpy
import penstock
import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
DOC2VEC = os.path.join(os.path.dirname(os.environ["PENSTOCK"]), "..", "..",
                       "examples", "doc2vec")
STEPS = 30
BATCH = 4
SETTINGS = {"format": "lines", "format.tokens": "dm", "format.dtype": "int32",
            "shuffle": True, "seed": 3}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    d = tmp_path_factory.mktemp("doc2vec")
    r = random.Random(5)
    with open(d / "s.txt", "w", encoding="ascii") as f:
        for i in range(STEPS * BATCH):
            n = 13 if i % 17 == 3 else 120  # some are short, as last lines are
            f.write("".join(r.choices("ACGT" if i % 2 else "ACGU",
                                      weights=(1 + i % 3, 1, 2, 1), k=n)))
            f.write(f",design_id_{i + 1}\n")
    subprocess.run([os.environ["PENSTOCK"], "vocab", d / "s.txt",
                    "format=lines", "k=4", "pads=true", "-o", d / "v.txt"],
                   check=True, stdout=subprocess.DEVNULL)
    return d


def doc2vec(d, to, *args):
    p = subprocess.run([DOC2VEC, d / "s.txt", f"format.vocab={d}/v.txt",
                        f"batch_size={BATCH}", "--seed", "3", "--json",
                        "--vectors", d / to, *args],
                       capture_output=True, text=True, timeout=600)
    assert p.returncode == 0, p.stderr
    assert p.stderr == ""  # progress is for terminals
    assert sorted(os.listdir(d / to)) == ["docs.npy", "out.npy", "words.npy",
                                          "words.txt"]
    return json.loads(p.stdout)["epochs"], {
        n: numpy.load(d / to / f"{n}.npy") for n in ("docs", "words", "out")}


class Model(torch.nn.Module):
    """x = D[doc] + sum W[context]; scores = x . O[target and noise]."""

    def __init__(self, start, sparse):
        super().__init__()
        for n, v in start.items():
            table = torch.nn.Embedding(*v.shape, sparse=sparse)
            table.weight.data = torch.from_numpy(v.copy())
            setattr(self, n, table)

    def forward(self, doc, context, guess):
        x = self.docs(doc) + self.words(context).sum(1)
        s = torch.einsum("nd,nkd->nk", x, self.out(guess))
        up = torch.nn.functional.logsigmoid
        return -(up(s[:, 0]) + up(-s[:, 1:]).sum(1) / (s.shape[1] - 1)).mean()


def pieces(batch, parts):
    """The parts of a batch: that share of the targets of every sequence."""
    doc = batch[0].numpy()
    at = [numpy.flatnonzero(doc == i) for i in dict.fromkeys(doc)]
    for k in range(parts):
        rows = numpy.concatenate([a[len(a) * k // parts:len(a) * (k + 1) // parts]
                                  for a in at])
        if len(rows):
            yield [t[torch.from_numpy(rows)] for t in batch]


def batches(d):
    """The example's training data, as rows of targets."""
    loader = penstock.Loader(str(d / "s.txt"), batch_size=BATCH,
                             **{**SETTINGS, "format.vocab": f"{d}/v.txt"})
    for b in loader:
        yield [torch.from_numpy(numpy.asarray(getattr(b[n], "values", b[n])).reshape(-1, *shape)
                                .astype("i8"))
               for n, shape in (("doc_ids", ()), ("context_ids", (6,)),
                                ("target_noise_ids", (6,)))]


def train(d, start, update, rate, parts):
    model = Model(start, update == "sparse")
    how = {"sparse": torch.optim.SparseAdam, "adam": torch.optim.Adam,
           "sgd": torch.optim.SGD}[update]
    step = how(list(model.parameters()), lr=rate)
    losses, n = [], []
    for batch in batches(d):
        for doc, context, guess in pieces(batch, parts):
            step.zero_grad()
            loss = model(doc, context, guess)
            loss.backward()
            step.step()
            losses.append(loss.item())
            n.append(len(doc))
    return losses, n, {k: getattr(model, k).weight.detach().numpy()
                       for k in start}


@pytest.mark.parametrize("update,rate,parts",
                         [("sgd", 0.5, 1), ("sgd", 0.5, 4), ("sparse", 0.1, 1),
                          ("sparse", 0.02, 4), ("adam", 0.1, 1),
                          ("adam", 0.02, 3)])
def test_like_torch(data, update, rate, parts):
    _, start = doc2vec(data, "start", "--steps", "0")
    assert not start["out"].any()
    assert abs(start["docs"].std() - 1 / 24) < 0.05 / 24
    ours, end = doc2vec(data, update, "--update", update, "--rate", str(rate),
                        "--train-threads", "1", "--parts", str(parts))
    losses, n, want = train(data, start, update, rate, parts)
    assert ours[0]["whole"] and ours[0]["targets"] == sum(n)
    numpy.testing.assert_allclose(ours[0]["loss"], numpy.average(losses,
                                                                 weights=n),
                                  rtol=2e-5)
    for k in want:
        off = abs(end[k] - want[k])
        # Adam divides by a root that may be almost zero, which amplifies
        # rounding errors: rarely, and never to the size of a step
        assert (off > 2e-4 + 2e-3 * abs(want[k])).mean() < 1e-3, (update, k)
        assert off.max() < rate / 5, (update, k, off.max())


def test_gradients(data):
    """One step of plain gradient descent, at rate 1, moves by the gradient."""
    _, start = doc2vec(data, "start", "--steps", "0")
    # out starts at zero, where docs and words have no gradient: step first
    _, some = doc2vec(data, "some", "--update", "sgd", "--rate", "20",
                      "--parts", "1", "--steps", "3")
    _, more = doc2vec(data, "more", "--update", "sgd", "--rate", "20",
                      "--parts", "1", "--steps", "4")
    it = batches(data)
    for _ in range(3):
        next(it)
    model = Model(some, False)
    model(*next(it)).backward()
    for k in start:
        got = (some[k] - more[k]) / 20
        want = getattr(model, k).weight.grad.numpy()
        assert abs(want).max() > 1e-4
        numpy.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6,
                                      err_msg=k)


def test_threads_and_epochs(data):
    one, a = doc2vec(data, "t1", "--train-threads", "1", "--epochs", "3")
    two, b = doc2vec(data, "t4", "--train-threads", "4", "--epochs", "3")
    for k in a:
        assert (a[k] == b[k]).all(), k
    assert [e["loss"] for e in one] == [e["loss"] for e in two]
    assert one[2]["loss"] < one[0]["loss"]
    assert len({e["content"] for e in one}) == 1
    assert all(e["samples"] == STEPS * BATCH for e in one)


def test_seeds(data):
    """The same seed gives the same numbers, another seed others."""
    a, b = [doc2vec(data, "s", "--steps", "5") for _ in range(2)]
    c = doc2vec(data, "s", "--steps", "5", "--seed", "4")
    assert a[0][0]["loss"] == b[0][0]["loss"] != c[0][0]["loss"]
    for k in a[1]:
        assert (a[1][k] == b[1][k]).all() and not (a[1][k] == c[1][k]).all()


def test_definition(data):
    """The defaults: three words on each side, five noise words, drawn by
    frequency to the power of 3/4; vectors of 24, with out initially zero."""
    words = [x.split("\t") for x in open(data / "v.txt", encoding="ascii")
             if x[:2] != "# "]
    with open(data / "s.txt", encoding="ascii") as f:
        seqs = [x.split(",")[0] for x in f]
    doc2vec(data, "w", "--steps", "0")
    with open(data / "w" / "words.txt", encoding="ascii") as f:
        assert f.read().split("\n")[:-1] == [w for w, _ in words]
    ids = {w: i for i, (w, _) in enumerate(words)}
    drawn = numpy.zeros(len(words))
    seen = set()
    for doc, context, guess in batches(data):
        assert context.shape[1] == 6 and guess.shape[1] == 6
        drawn += numpy.bincount(guess[:, 1:].reshape(-1).numpy(),
                                minlength=len(words))
        for i in numpy.unique(doc.numpy()):
            seen.add(int(i))
            s = "X" * 12 + seqs[i] + "Y" * 12
            want = [[ids[s[j + 4 * d:j + 4 * d + 4]] for d in range(-3, 4)]
                    for f in range(4) for j in range(12 + f, len(s) - 15, 4)]
            at = (doc == int(i)).numpy()
            got = numpy.insert(context.numpy()[at], 3, guess.numpy()[at, 0], 1)
            assert got.tolist() == want
    assert len(seen) == len(seqs)
    p = numpy.array([float(n) for _, n in words]) ** 0.75
    e = p / p.sum() * drawn.sum()
    chi = ((drawn - e)[p > 0] ** 2 / e[p > 0]).sum()
    free = (p > 0).sum() - 1
    assert not drawn[p == 0].any()
    assert abs(chi - free) < 5 * (2 * free) ** 0.5


def test_much_noise(data):
    """The largest number of noise words of tokens=dm."""
    doc2vec(data, "n", "--steps", "2", "format.noise=64")


def test_terminal(data):
    """Progress is shown only on a terminal."""
    ours, theirs = os.openpty()
    p = subprocess.run([DOC2VEC, data / "s.txt", f"format.vocab={data}/v.txt"],
                       stdout=subprocess.PIPE, stderr=theirs, timeout=600)
    os.close(theirs)
    assert p.returncode == 0
    assert b"\repoch 1: " in os.read(ours, 65536)
    os.close(ours)
    assert b"\r" not in p.stdout and p.stdout.startswith(b"epoch 1: 120 seq")


def test_nothing_half_written(data):
    """If files cannot be renamed, no temporary files are left."""
    d = data / "half"
    os.makedirs(d / "out.npy")
    p = subprocess.run([DOC2VEC, data / "s.txt", f"format.vocab={data}/v.txt",
                        "--steps", "1", "--vectors", d], capture_output=True,
                       text=True, timeout=600)
    assert p.returncode == 1 and p.stderr.count("\n") == 1
    assert "out.npy" in p.stderr
    assert not [x for x in os.listdir(d) if x.endswith(".tmp")]


def test_nowhere_to_write(data):
    """That is reported before training."""
    for where in (data / "s.txt", "/proc/nothing", data / "no" / "where"):
        p = subprocess.run([DOC2VEC, "nowhere.txt", "--vectors", where],
                           capture_output=True, text=True, timeout=600)
        assert p.returncode == 1 and p.stderr.count("\n") == 1
        assert str(where) in p.stderr and not p.stdout


def test_arguments():
    """Errors are reported in one line."""
    for args, says in (([], "no PATH"), (["--dim", "0", "x"], "--dim: '0'"),
                       (["--dim", "2.5", "x"], "whole"),
                       (["--dim", "1025", "x"], "1024"),
                       (["--epochs", "-1", "x"], "--epochs: '-1'"),
                       (["--epochs", "", "x"], "--epochs"),
                       (["--rate", "nan", "x"], "--rate: 'nan'"),
                       (["--seed", "1e99", "x"], "--seed"),
                       (["--train-threads", "0", "x"], "from 1"),
                       (["--update", "momentum", "x"], "sparse, adam"),
                       (["--model", "cbow", "x"], "cbow"),
                       (["--what", "x"], "--what"), (["-z", "x"], "-z"),
                       (["--json=5", "x"], "--json"), (["--dim"], "--dim"),
                       (["x", "nothing=5"], "nothing"),
                       (["nowhere.txt", "format.vocab=nowhere"], "nowhere")):
        p = subprocess.run([DOC2VEC, *args], capture_output=True, text=True,
                           timeout=600)
        assert p.returncode > 0 and p.stderr.count("\n") == 1, (args, p)
        assert says in p.stderr and not p.stdout, (args, p.stderr)


def test_refuses(data):
    """A missing vocabulary, part of the data, and unsuitable tensors."""
    for args, says in (([f"{data}/s.txt"], "vocab"),
                       ([f"{data}/s.txt", f"format.vocab={data}/v.txt",
                         "subset=0:50"], "50 of"),
                       ([f"{data}/s.txt", f"format.vocab={data}/v.txt",
                         "pack=4000"], "nor packed"),
                       ([f"{data}/s.txt", f"format.vocab={data}/v.txt",
                         "shapes=padded"], "neither padded"),
                       (["--model", "cbow", "x"], "cbow"),
                       (["nowhere.txt", "format.vocab=nowhere"], "nowhere")):
        p = subprocess.run([DOC2VEC, *args], capture_output=True, text=True,
                           timeout=600)
        assert p.returncode != 0 and says in p.stderr, (args, p.stderr)
