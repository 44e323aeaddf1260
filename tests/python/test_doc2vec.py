"""examples/doc2vec against the same model in PyTorch: loss of every step, and
the vectors after, for three ways to update; the same for any threads."""
import json
import os
import random
import subprocess

import numpy
import penstock
import pytest

torch = pytest.importorskip("torch")
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
                       capture_output=True, text=True, timeout=200)
    assert p.returncode == 0, p.stderr
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


def batches(d):
    """What the example trains on, as rows of targets."""
    loader = penstock.Loader(str(d / "s.txt"), batch_size=BATCH,
                             **{**SETTINGS, "format.vocab": f"{d}/v.txt"})
    for b in loader:
        yield [torch.from_numpy(numpy.asarray(getattr(b[n], "values", b[n])).reshape(-1, *shape)
                                .astype("i8"))
               for n, shape in (("doc_ids", ()), ("context_ids", (6,)),
                                ("target_noise_ids", (6,)))]


def train(d, start, update, rate):
    model = Model(start, update == "sparse")
    how = {"sparse": torch.optim.SparseAdam, "adam": torch.optim.Adam,
           "sgd": torch.optim.SGD}[update]
    step = how(list(model.parameters()), lr=rate)
    losses, n = [], []
    for doc, context, guess in batches(d):
        step.zero_grad()
        loss = model(doc, context, guess)
        loss.backward()
        step.step()
        losses.append(loss.item())
        n.append(len(doc))
    return losses, n, {k: getattr(model, k).weight.detach().numpy()
                       for k in start}


@pytest.mark.parametrize("update,rate", [("sgd", 0.5), ("sparse", 0.1),
                                         ("adam", 0.1)])
def test_like_torch(data, update, rate):
    _, start = doc2vec(data, "start", "--steps", "0")
    assert not start["out"].any()
    assert abs(start["docs"].std() - 1) < 0.05
    ours, end = doc2vec(data, update, "--update", update, "--rate", str(rate),
                        "--train-threads", "1")
    losses, n, want = train(data, start, update, rate)
    assert ours[0]["whole"] and ours[0]["targets"] == sum(n)
    numpy.testing.assert_allclose(ours[0]["loss"], numpy.average(losses,
                                                                 weights=n),
                                  rtol=2e-5)
    for k in want:
        off = abs(end[k] - want[k])
        # Adam divides by the root of what may be almost nothing, and makes
        # a rounding error large: rarely, and never as large as a step
        assert (off > 2e-4 + 2e-3 * abs(want[k])).mean() < 1e-3, (update, k)
        assert off.max() < rate / 5, (update, k, off.max())


def test_gradients(data):
    """One step of plain descent, at rate 1, moves by the gradient."""
    _, start = doc2vec(data, "start", "--steps", "0")
    # out begins at zero, where docs and words have no gradient: go on first
    _, some = doc2vec(data, "some", "--update", "sgd", "--rate", "20",
                      "--steps", "3")
    _, more = doc2vec(data, "more", "--update", "sgd", "--rate", "20",
                      "--steps", "4")
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


def test_refuses(data):
    """Another vocabulary, a part of the data, and no tensors of its kind."""
    for args, says in (([f"{data}/s.txt"], "vocab"),
                       ([f"{data}/s.txt", f"format.vocab={data}/v.txt",
                         "subset=0:50"], "50 of"),
                       (["--model", "cbow", "x"], "cbow"),
                       (["nowhere.txt", "format.vocab=nowhere"], "nowhere")):
        p = subprocess.run([DOC2VEC, *args], capture_output=True, text=True,
                           timeout=60)
        assert p.returncode != 0 and says in p.stderr, (args, p.stderr)
