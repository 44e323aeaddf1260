"""The same samples from Python, in two ways:

dataset  a Dataset that splits a line word by word, as the examples of paragraph
         vectors on DNA do: lists of strings, noise drawn for each target, and a
         dictionary lookup at the end
numpy    the fastest way in NumPy: numbers throughout, all targets at a time

Sequences are in memory and have the same length, so that batches can be stacked;
both favour these contenders."""
import collections

import numpy as np

from tools import timed

K, SIDE, NOISE = 4, 3, 5
MOST = 512  # sequences to read


def frames(s):
    return [[s[i:i + K] for i in range(j, len(s) - K + 1, K)]
            for j in range(K)]


def padded(s):
    return "X" * K * SIDE + s + "Y" * K * SIDE


class Vocabulary:
    def __init__(self, seqs):
        seen = collections.Counter(
            w for s in seqs for f in frames(s) for w in f)
        words = sorted(set(seen) | {
            w for s in seqs for f in frames(padded(s)) for w in f})
        self.ids = {w: i for i, w in enumerate(words)}
        self.words = words
        p = np.array([seen[w] for w in words], float) ** 0.75
        self.p = p / p.sum()


class Items:
    """One item per sequence."""

    def __init__(self, seqs, vocabulary=None):
        self.seqs, self.v = seqs, vocabulary

    def __len__(self):
        return len(self.seqs)


class Words(Items):
    """By operations on strings."""

    def __getitem__(self, i):
        import torch
        docs, targets, contexts, noises = [], [], [], []
        v = self.v
        for words in frames(padded(self.seqs[i])):
            for at in range(SIDE, len(words) - SIDE):
                docs.append(i)
                targets.append(words[at])
                contexts.append([words[at + d] for d in
                                 range(-SIDE, SIDE + 1) if d])
                noise = np.random.choice(len(v.words), NOISE, p=v.p).tolist()
                noises.append([words[at]] + [v.words[n] for n in noise])
        return (torch.tensor(docs),
                torch.tensor([v.ids[w] for w in targets]),
                torch.tensor([[v.ids[w] for w in c] for c in contexts]),
                torch.tensor([[v.ids[w] for w in c] for c in noises]))


class Numbers(Items):
    """The same by operations on arrays."""

    def __init__(self, seqs, vocabulary):
        super().__init__(seqs, vocabulary)
        self.code = np.zeros(256, np.int64)
        for i, c in enumerate(b"ACGTUXY"):
            self.code[c] = i
        self.table = np.zeros(8 ** K, np.int64)
        for w, i in vocabulary.ids.items():
            self.table[int(self.words(w.encode())[0])] = i
        self.cum = np.cumsum(vocabulary.p)
        self.rng = np.random.default_rng(1)

    def words(self, s):
        c = self.code[np.frombuffer(s, "u1")]
        n = len(c) - K + 1
        return ((c[:n] * 8 + c[1:n + 1]) * 8 + c[2:n + 2]) * 8 + c[3:n + 3]

    def __getitem__(self, i):
        import torch
        ids = self.table[self.words(padded(self.seqs[i]).encode())]
        at = np.concatenate([np.arange(j + K * SIDE, len(ids) - K * SIDE, K)
                             for j in range(K)])
        side = np.array([d * K for d in range(-SIDE, SIDE + 1) if d])
        target = ids[at]
        noise = np.searchsorted(self.cum, self.rng.random((len(at), NOISE)))
        return tuple(map(torch.from_numpy, (
            np.full(len(at), i), target, ids[at[:, None] + side],
            np.concatenate((target[:, None], noise), 1))))


def batches(items, batch, workers):
    from torch.utils.data import DataLoader
    loader = DataLoader(items, batch, shuffle=True, num_workers=workers,
                        persistent_workers=workers > 0, drop_last=True)
    while True:
        for b in loader:
            yield len(b[0])


def characters(seqs, name, batch):
    table = np.full(256, 4, np.uint8)
    for i, c in enumerate(b"ACGT"):
        table[c] = i
    words = {c: i for i, c in enumerate("ACGTN")}
    while True:
        for at in range(0, len(seqs) - batch + 1, batch):
            some = seqs[at:at + batch]
            if name == "numpy":
                np.stack([table[np.frombuffer(s.encode(), "u1")]
                          for s in some])
            else:
                np.array([[words.get(c, 4) for c in s] for s in some], "u1")
            yield batch


class Frames(Items):
    """The words in all frames, joined letter by letter, as in the published data
    set."""

    def __getitem__(self, i):
        letters = list(self.seqs[i])
        return [["".join(letters[j] for j in range(i, i + K))
                 for i in range(frame, len(letters) - K + 1, K)]
                for frame in range(K)]


def count_dataset(seqs):
    """Counts letters and words in batches of 4 from a DataLoader without workers,
    which is the fastest setting."""
    from torch.utils.data import DataLoader
    letters, seen = set(), collections.Counter()
    for batch in DataLoader(Frames(seqs), 4, collate_fn=list):
        for frame in (f for item in batch for f in item):
            for word in frame:
                letters.update(word)
            seen.update(frame)


def vocabularies(seqs, name):
    numbers = Numbers(seqs, Vocabulary(seqs[:1]))
    while True:
        if name == "numpy":
            for s in seqs:
                np.bincount(numbers.words(s.encode()), minlength=8 ** K)
        elif name == "counter":
            collections.Counter(w for s in seqs for f in frames(s) for w in f)
        else:
            count_dataset(seqs)
        yield len(seqs)


def steps(seqs, docs, update):
    """One step per sequence of the same model in PyTorch, with prepared tensors.
    adam updates all rows in every step, like the published model."""
    import torch
    torch.set_num_threads(2)
    v = Vocabulary(seqs)
    items = [Numbers(seqs, v)[i] for i in range(64)]
    sparse = update == "sparse"
    tables = [torch.nn.Embedding(n, 24, sparse=sparse)
              for n in (docs, len(v.words), len(v.words))]
    tables[2].weight.data.zero_()
    how = torch.optim.SparseAdam if sparse else torch.optim.Adam
    step = how([t.weight for t in tables], lr=0.1)
    log = torch.nn.functional.logsigmoid
    while True:
        for doc, _, context, guess in items:
            step.zero_grad()
            x = tables[0](doc) + tables[1](context).sum(1)
            s = torch.bmm(tables[2](guess), x[:, :, None])[:, :, 0]
            loss = -(log(s[:, 0]) + log(-s[:, 1:]).sum(1) / NOISE).mean()
            loss.backward()
            step.step()
            yield 1


def measure(work, path, name, seconds):
    seqs = [s.decode() for s in work.data.lines(path, MOST)]
    if work.kind == "tokens_model":
        found = steps(seqs, work.data.n, name.split("_")[1])
    elif work.kind == "tokens_vocab":
        found = vocabularies(seqs[:64], name)
    elif work.more["how"] == "chars":
        found = characters(seqs, name, work.batch)
    else:
        kind, workers = name.rsplit("_w", 1)
        items = {"dataset": Words, "numpy": Numbers}[kind]
        found = batches(items(seqs, Vocabulary(seqs)), work.batch,
                        int(workers))
    next(found)
    return timed(lambda: next(found), seconds)
