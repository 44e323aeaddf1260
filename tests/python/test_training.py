"""A model learns the same from PyTorch's loader and from ours, when both give
the same order: the losses are equal, step for step."""
import numpy as np
import penstock
import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from penstock.torch import DataLoader   # noqa: E402
from torch.utils import data as tud     # noqa: E402


def train(model, loader, inputs, epochs=2):
    torch.manual_seed(0)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.05)
    step = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(epochs):
        for batch in loader:
            x, y = inputs(batch)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            step.zero_grad()
            loss.backward()
            step.step()
            losses.append(loss.item())
    return losses


def order(n, epoch_seed):
    return torch.randperm(n, generator=torch.Generator().manual_seed(
        epoch_seed)).tolist()


class Order:
    """The same order for both, another every epoch."""

    def __init__(self, n):
        self.n, self.epoch = n, 0

    def __iter__(self):
        self.epoch += 1
        return iter(order(self.n, self.epoch))

    def __len__(self):
        return self.n


def test_logistic_regression(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    x = (rng.normal(size=(600, 20)) + y[:, None] * 0.8).astype("f4")
    np.savez(tmp_path / "a.npz", x=x, y=y)

    class Rows(tud.Dataset):
        def __len__(self):
            return 600

        def __getitem__(self, i):
            return {"x": x[i], "y": y[i]}

    def inputs(b):
        return b["x"], b["y"]
    model = torch.nn.Linear(20, 2)
    theirs = train(model, tud.DataLoader(Rows(), 32, sampler=Order(600)),
                   inputs)
    ours = train(model, DataLoader(tmp_path / "a.npz", 32, samples="first",
                                   sampler=Order(600)), inputs)
    assert ours == theirs
    assert np.mean(ours[-10:]) < 0.7 * ours[0]
    # and with the engine's own order, through a loader and a hook
    loader = penstock.Loader(tmp_path / "a.npz", 32, True, samples="first",
                             transform="torch")
    again = train(model, loader, inputs)
    assert np.mean(again[-10:]) < 0.7 * again[0]


def test_cnn_on_jpegs(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for i in range(80):
        a = rng.integers(0, 90, (32, 32, 3)).astype("u1")
        a[:, :16] += np.uint8(100 * (i % 2))    # the class is what is bright
        Image.fromarray(a).save(tmp_path / f"{i:03}.jpg", quality=90)
    paths = sorted(tmp_path.glob("*.jpg"))

    class Pictures(tud.Dataset):
        def __len__(self):
            return 80

        def __getitem__(self, i):
            return {"x": np.asarray(Image.open(paths[i])), "i": i}

    def model():
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 5, 2), torch.nn.ReLU(),
            torch.nn.Conv2d(4, 8, 3, 2), torch.nn.ReLU(),
            torch.nn.Flatten(), torch.nn.LazyLinear(2))

    def picture(x):
        return x.permute(0, 3, 1, 2).float() / 255 - 0.3

    net = model()
    net(torch.zeros(1, 3, 32, 32))
    theirs = train(net, tud.DataLoader(Pictures(), 8, sampler=Order(80)),
                   lambda b: (picture(b["x"]), b["i"] % 2), 3)
    rows = iter(i for e in range(1, 4) for i in order(80, e))
    ours = train(net, DataLoader(tmp_path, 8, format="jpeg",
                                 sampler=Order(80)),
                 lambda b: (picture(b["x" if "x" in b else "image"]),
                            torch.tensor([next(rows) % 2 for _ in range(8)])),
                 3)
    # both decode with libjpeg-turbo, so that pixels are equal, too
    assert ours == theirs
    assert np.mean(ours[-10:]) < 0.8 * ours[0]
