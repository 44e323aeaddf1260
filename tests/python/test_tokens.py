"""Tokenisers compared with plain Python: one letter, word or merge at a time."""
import collections
import itertools
import json
import math
import os
import random
import subprocess

import numpy as np
import penstock
import pytest

IUPAC = "RYKMSWBDHV"


def sequences(letters="ACGT", n=60, odd=0.02, seed=1):
    rng = random.Random(seed)
    out = []
    for i in range(n):
        m = rng.choice([1, 2, 3, 4, 5, 7, 31, 32, 33, 64, 100, 1023, 1024,
                        1025, 1030, 2500])
        s = rng.choices(letters, k=m)
        for j in range(m):
            if rng.random() < odd:
                s[j] = rng.choice("NnRyUuacgt*-.@ZX")
        out.append("".join(s))
    return out


@pytest.fixture(scope="module")
def seqs():
    return sequences()


@pytest.fixture
def load(tmp_path):
    """Rows of all fields of all sequences from the tokeniser."""
    def run(seqs, whole=False, **settings):
        path = tmp_path / "seqs.txt"
        path.write_text("".join(f"{s},id_{i}\n" for i, s in enumerate(seqs)))
        rows = collections.defaultdict(list)
        for b in penstock.Loader(path, 7, format="lines", threads=2,
                                 **settings):
            for name in b:
                t = b[name]
                if hasattr(t, "values"):
                    v, o = np.asarray(t.values), np.asarray(t.offsets)
                    sh = np.asarray(t.shapes)
                    rows[name] += [v[o[i]:o[i + 1]].reshape(sh[i]).copy()
                                   for i in range(len(o) - 1)]
                else:
                    rows[name] += list(np.asarray(t).copy())
        for name in rows:
            assert len(rows[name]) == len(seqs)
        return rows if whole else rows[next(iter(
            k for k in rows if k in ("seq", "tokens", "onehot")))]
    return run


def same(got, want):
    assert len(got) == len(want)
    for i, (a, b) in enumerate(zip(got, want)):
        assert a.tolist() == list(b), f"row {i}"


# --- characters ---

def chars(s, alphabet="ACGTN", specials=(), upper=True, rna=False,
          ambiguous="n", n="keep"):
    ids = {name: i for i, name in enumerate(specials)}
    unk = ids.get("unk")
    if unk is None:
        unk = len(specials) + (alphabet.index("N") if "N" in alphabet
                               else len(alphabet))
    out = []
    for c in s.upper() if upper else s:
        if rna and c in "Uu":
            c = "T" if c == "U" else "t"
        if c not in alphabet and c.upper() in IUPAC and ambiguous == "n":
            c = "N"
        if c == "N" and n != "keep":
            out.append(ids["pad"] if n == "pad" and "pad" in ids else unk)
        elif c in alphabet:
            out.append(len(specials) + alphabet.index(c))
        else:
            out.append(unk)
    return out


HYENA = ("cls", "sep", "bos", "mask", "pad", "res", "unk")


def test_chars(load, seqs):
    got = load(seqs, tokens="chars")
    assert got[0].dtype == "u1"
    same(got, [chars(s) for s in seqs])
    same(load(seqs, tokens="chars", rna=True),
         [chars(s, rna=True) for s in seqs])
    same(load(seqs, tokens="chars", alphabet="ACGTacgt", case="keep"),
         [chars(s, alphabet="ACGTacgt", upper=False) for s in seqs])
    same(load(seqs, tokens="chars", alphabet="bytes"),
         [list(s.encode()) for s in seqs])
    same(load(seqs, tokens="none"), [list(s.encode()) for s in seqs])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "int64"])
def test_types(load, seqs, dtype):
    for tokens, f in (("chars", chars), ("kmers", kmers)):
        if tokens == "kmers" and dtype == "uint8":
            continue
        got = load(seqs, tokens=tokens, dtype=dtype)
        assert got[0].dtype == dtype
        same(got, [f(s) for s in seqs])


def test_hyenadna(load, seqs):
    got = load(seqs, model="hyenadna")
    want = [chars(s, specials=HYENA, ambiguous="unk") for s in seqs]
    assert chars("ACGTN", specials=HYENA) == [7, 8, 9, 10, 11]
    same(got, want)
    same(load(seqs, model="hyenadna", n="pad"),
         [chars(s, specials=HYENA, ambiguous="unk", n="pad") for s in seqs])
    # truncated to 40 with CLS and SEP, padded on the left
    got = load(seqs, model="hyenadna", length=40, begin="cls", end="sep")
    want = [[0] + w[:38] + [1] for w in want]
    same(got, [[4] * (40 - len(w)) + w for w in want])
    assert {g.shape for g in got} == {(40,)}
    got = load(seqs, model="hyenadna", length=40, begin="bos", pad="right",
               cut="left", dtype="int64")
    want = [[2] + chars(s, specials=HYENA, ambiguous="unk")[-39:]
            for s in seqs]
    same(got, [w + [4] * (40 - len(w)) for w in want])


def test_max_length(load, seqs):
    same(load(seqs, tokens="chars", max_length=33),
         [chars(s)[:33] for s in seqs])
    same(load(seqs, tokens="none", max_length=5, cut="left"),
         [list(s.encode())[-5:] for s in seqs])
    same(load(seqs, tokens="none", length=5),
         [(list(s.encode())[:5] + [0] * 5)[:5] for s in seqs])


def test_padded_batches(load, seqs):
    got = load(seqs, tokens="chars", shapes="padded")
    for g, s in zip(got, seqs):
        assert g[:len(s)].tolist() == chars(s)


# --- one-hot ---

@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int32"])
def test_onehot(load, seqs, dtype):
    gap = 0.25 if "float" in dtype else 0
    got = load(seqs, tokens="onehot", dtype=dtype, gap=gap)
    for g, s in zip(got, seqs):
        want = np.full((len(s), 4), gap, dtype)
        for i, c in enumerate(s.upper()):
            if c in "ACGT":
                want[i] = 0
                want[i, "ACGT".index(c)] = 1
        assert g.dtype == dtype and np.array_equal(g, want)
    got = load(seqs, tokens="onehot", dtype=dtype, length=50)
    assert {g.shape for g in got} == {(50, 4)}
    short = [i for i, s in enumerate(seqs) if len(s) < 50]
    assert short and all(not got[i][len(seqs[i]):].any() for i in short)


# --- words ---

def kmers(s, k=4, stride=1, alphabet="ACGT", specials=()):
    base = len(specials)
    unk = base + len(alphabet) ** k
    if "unk" in specials:
        unk = specials.index("unk")
    out = []
    s = s.upper()
    if "N" in alphabet:
        s = "".join("N" if c in IUPAC else c for c in s)
    for i in range(0, len(s) - k + 1, stride):
        v = 0
        for c in s[i:i + k]:
            v = -1 if v < 0 or c not in alphabet else (
                v * len(alphabet) + alphabet.index(c))
        out.append(unk if v < 0 else base + v)
    return out


@pytest.mark.parametrize("k", range(1, 13))
def test_kmers(load, seqs, k):
    same(load(seqs, tokens="kmers", k=k), [kmers(s, k) for s in seqs])
    same(load(seqs, tokens="kmers", k=k, stride=k),
         [kmers(s, k, k) for s in seqs])
    same(load(seqs, tokens="frames", k=k),
         [[w for j in range(k) for w in kmers(s[j:], k, k)] for s in seqs])


def test_strides(load, seqs):
    for k, stride in ((5, 2), (3, 7), (6, 1000)):
        same(load(seqs, tokens="kmers", k=k, stride=stride, alphabet="ACGTN"),
             [kmers(s, k, stride, "ACGTN") for s in seqs])
    same(load(seqs, tokens="kmers", k=3, max_length=9, cut="left"),
         [kmers(s, 3)[-9:] for s in seqs])
    same(load(seqs, tokens="frames", k=3, max_length=9, cut="left"),
         [[w for j in range(3) for w in kmers(s[j:], 3, 3)][-9:]
          for s in seqs])


def test_dnabert(load, seqs):
    sp = ("pad", "unk", "cls", "sep", "mask")
    words = ["".join(w) for w in itertools.product("ATCG", repeat=6)]
    assert kmers(words[100], 6, 1, "ATCG", sp) == [105]
    same(load(seqs, model="dnabert", begin="cls", end="sep"),
         [[2] + kmers(s, 6, 1, "ATCG", sp) + [3] for s in seqs])


def greedy(s, words, unk):
    """The longest match at each position."""
    out, i, most = [], 0, max(map(len, words))
    while i < len(s):
        for n in range(most, 0, -1):
            if s[i:i + n] in words and i + n <= len(s):
                out.append(words[s[i:i + n]])
                i += n
                break
        else:
            out.append(unk)
            i += 1
    return out


def nt_words():
    """The Nucleotide Transformer's vocabulary."""
    w = ["<unk>", "<pad>", "<mask>", "<cls>"]
    w += ["".join(x) for x in itertools.product("ATCG", repeat=6)]
    return w + list("ATCGN")


def test_nucleotide_transformer(load, seqs, tmp_path):
    words = {w: i for i, w in enumerate(nt_words())}
    want = [[3] + greedy(s.upper(), words, 0) for s in seqs]
    got = load(seqs, model="nucleotide_transformer", begin="cls")
    same(got, want)
    assert got[0].dtype == "u2"
    # the same from its file
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(words) + "\n")
    same(load(seqs, tokens="vocab", vocab=path, begin="cls",
              ambiguous="unknown"), want)


def test_vocab(load, seqs, tmp_path):
    rng = random.Random(5)
    names = {"".join(rng.choices("ACGTN", k=rng.randint(1, 9)))
             for _ in range(300)}
    names = ["[PAD]", "[UNK]"] + sorted(names)
    path = tmp_path / "words.json"
    path.write_text(json.dumps({w: i + 3 for i, w in enumerate(names)}))
    words = {w: i + 3 for i, w in enumerate(names) if i > 1}
    same(load(seqs, tokens="vocab", vocab=path, ambiguous="unknown"),
         [greedy(s.upper(), words, 4) for s in seqs])


def test_kmers_of_a_file(load, seqs, tmp_path):
    words = ["".join(w) for w in itertools.product("GATC", repeat=3)][::2]
    path = tmp_path / "words.txt"
    path.write_text("<pad>\n<unk>\n" + "".join(f"{w}\t7\n" for w in words))
    ids = {w: i + 2 for i, w in enumerate(words)}
    same(load(seqs, tokens="kmers", k=3, vocab=path),
         [[ids.get(s.upper()[i:i + 3], 1) for i in range(len(s) - 2)]
          for s in seqs])


@pytest.mark.parametrize("k", [8, 9, 10, 11])
def test_many_words_of_a_file(load, seqs, tmp_path, k):
    """In alphabetical order, as vocab writes them, and in any other."""
    words = sorted({s[i:i + k] for s in seqs for i in range(len(s) - k + 1)
                    if not set(s[i:i + k]) - set("ACGT")})
    assert len(words) > 19000
    words = words[::2] + words[1::14]
    path = tmp_path / "words.txt"
    for order in (sorted, lambda w: random.Random(k).sample(w, len(w))):
        names = ["<pad>", "<unk>"] + order(words)
        path.write_text(f"# penstock vocabulary 1: k={k}\n" +
                        "".join(f"{w}\t{i}\n" for i, w in enumerate(names)))
        ids = {w: i for i, w in enumerate(names)}
        same(load(seqs, tokens="kmers", vocab=path),
             [[ids.get(s.upper()[i:i + k], 1) for i in range(len(s) - k + 1)]
              for s in seqs])


# --- byte-pair merges ---

def bpe(s, ranks, ids, unk):
    s = list(s)
    while True:
        best = min(((ranks[p], i) for i, p in enumerate(zip(s, s[1:]))
                    if p in ranks), default=None)
        if best is None:
            return [ids.get(w, unk) for w in s]
        i = best[1]
        s[i:i + 2] = [s[i] + s[i + 1]]


def train(text, n):
    """Learns merges in the simplest way: the most frequent pair, repeatedly."""
    words = [list(t) for t in text]
    merges = []
    for _ in range(n):
        pairs = collections.Counter(
            p for w in words for p in zip(w, w[1:]) if "N" not in p)
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        for w in words:
            i = 0
            while i + 1 < len(w):
                if (w[i], w[i + 1]) == best:
                    w[i:i + 2] = [w[i] + w[i + 1]]
                i += 1
    return merges


@pytest.fixture(scope="module")
def merges():
    rng = random.Random(3)
    text = ["".join(rng.choices("ACGT", weights=(5, 1, 1, 3), k=300))
            for _ in range(10)]
    return train(text, 120)


def names_of(merges):
    names = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"] + list("ACGTN")
    for a, b in merges:
        if a + b not in names:
            names.append(a + b)
    return {w: i for i, w in enumerate(names)}


def some(n=40):
    out = sequences("AAAAACGTTT", n, 0.01, 9)
    return ["A" * 1000, "AT" * 300, "A", "AA", "AAA"] + [s[:700] for s in out]


def test_bpe(load, merges, tmp_path):
    ids, seqs = names_of(merges), some()
    ranks = {m: i for i, m in enumerate(merges)}
    want = [bpe(s.upper(), ranks, ids, 0) for s in seqs]
    (tmp_path / "vocab.json").write_text(json.dumps(ids))
    (tmp_path / "merges.txt").write_text(
        "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    set_ = {"tokens": "bpe", "ambiguous": "unknown"}
    same(load(seqs, vocab=tmp_path / "vocab.json",
              merges=tmp_path / "merges.txt", **set_), want)
    for pairs in ([f"{a} {b}" for a, b in merges], [list(m) for m in merges]):
        (tmp_path / "tokenizer.json").write_text(json.dumps({
            "version": "1.0", "added_tokens": [{"id": 0, "content": "[UNK]"}],
            "model": {"type": "BPE", "dropout": None, "unk_token": "[UNK]",
                      "continuing_subword_prefix": None, "fuse_unk": False,
                      "vocab": ids, "merges": pairs}}))
        same(load(seqs, merges=tmp_path / "tokenizer.json", begin="cls",
                  end="sep", max_length=30, **set_),
             [[1] + w[:28] + [2] for w in want])


def test_bpe_in_any_order(load, merges, tmp_path):
    """Merges that use what later ones make: still applied by rank."""
    merges = merges[:]
    random.Random(1).shuffle(merges)
    ids, seqs = names_of(merges), some(10)
    ranks = {m: i for i, m in enumerate(merges)}
    (tmp_path / "vocab.json").write_text(json.dumps(ids))
    (tmp_path / "merges.txt").write_text(
        "".join(f"{a} {b}\n" for a, b in merges))
    same(load(seqs, tokens="bpe", vocab=tmp_path / "vocab.json",
              merges=tmp_path / "merges.txt", ambiguous="unknown"),
         [bpe(s.upper(), ranks, ids, 0) for s in seqs])


def test_bpe_without_vocabulary(load, merges, tmp_path):
    (tmp_path / "merges.txt").write_text(
        "".join(f"{a} {b}\n" for a, b in merges))
    names = list("ACGT")
    for a, b in merges:
        if a + b not in names:
            names.append(a + b)
    ids = {w: i for i, w in enumerate(names)}
    seqs = [s[:500] for s in sequences("AAACGT", 20, 0)]
    same(load(seqs, tokens="bpe", merges=tmp_path / "merges.txt"),
         [bpe(s, {m: i for i, m in enumerate(merges)}, ids, None)
          for s in seqs])


# --- the paragraph-vector samples ---

def make_vocab(path, out, *settings):
    return subprocess.run([os.environ["PENSTOCK"], "vocab", str(path),
                           "format=lines", "-o", str(out), *settings],
                          check=True, capture_output=True, text=True)


def read_vocab(path):
    lines = [x for x in path.read_text().splitlines() if x[:2] != "# "]
    return [(x.split("\t")[0], int(x.split("\t")[1])) for x in lines]


def frames(s, k):
    return [[s[i:i + k] for i in range(j, len(s) - k + 1, k)]
            for j in range(k)]


def dm(s, doc, ids, k=4, c=3):
    """As its authors define it, without noise: doc, target, context."""
    s = "X" * k * c + s + "Y" * k * c
    docs, targets, contexts = [], [], []
    for words in frames(s, k):
        for i in range(c, len(words) - c):
            docs.append(doc)
            targets.append(ids[words[i]])
            contexts.append([ids[words[i + d]] for d in range(-c, c + 1) if d])
    return docs, targets, contexts


def example(n=40):
    """Half DNA, half RNA, the last of each shorter; and some very short."""
    rng = random.Random(2)
    out = ["".join(rng.choices("ATCG" if i < n // 2 else "AUCG", k=1024))
           for i in range(n)]
    out[n // 2 - 1] = out[n // 2 - 1][:64]
    out[n - 1] = out[n - 1][:64]
    return out + ["ACG", "ACGT", "ACGUA", "A"]


def plain_vocab(seqs, k=4):
    seen, letters = collections.Counter(), set()
    for s in seqs:
        for f in frames(s, k):
            seen.update(f)
    letters = sorted({c for w in seen for c in w})
    out = sorted(seen.items()) + [("X" * k, 0), ("Y" * k, 0)]
    for nx in range(1, k):
        rest = ["".join(w) for w in itertools.product(letters, repeat=k - nx)]
        out += [("X" * nx + w, 0) for w in rest]
        out += [(w + "Y" * nx, 0) for w in rest]
    return out


def test_vocabulary(tmp_path):
    seqs = example(60)
    path = tmp_path / "s.txt"
    path.write_text("".join(f"{s},design_id_{i}\n"
                            for i, s in enumerate(seqs)))
    r = make_vocab(path, tmp_path / "w.txt", "pads=true")
    want = plain_vocab(seqs)
    assert read_vocab(tmp_path / "w.txt") == want
    assert len(want) == 743 and "743 words (431 seen)" in r.stdout
    make_vocab(path, tmp_path / "w.txt", "pads=true", "alphabet=UGTCA")
    assert read_vocab(tmp_path / "w.txt") == want  # in the order of text
    r = json.loads(make_vocab(path, tmp_path / "w.txt", "min_count=120",
                              "specials=unk,pad", "--json").stdout)
    want = [w for w in want if w[1] >= 120]
    assert read_vocab(tmp_path / "w.txt") == [("<unk>", 0), ("<pad>", 0)] + want
    assert r["sequences"] == len(seqs) and r["words"] == len(want) + 2
    assert r["letters"] == sum(map(len, seqs))
    for k in (1, 2, 7, 9, 12):  # the last two do not fit a plain table
        make_vocab(path, tmp_path / "w.txt", f"k={k}")
        seen = collections.Counter(s[i:i + k] for s in seqs
                                   for i in range(len(s) - k + 1))
        assert read_vocab(tmp_path / "w.txt") == sorted(seen.items())


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_dm(load, tmp_path, dtype):
    seqs = example()
    want = plain_vocab(seqs)
    path = tmp_path / "w.txt"
    path.write_text("# penstock vocabulary 1: k=4\n" +
                    "".join(f"{w}\t{n}\n" for w, n in want))
    ids = {w: i for i, (w, _) in enumerate(want)}
    set_ = {"tokens": "dm", "vocab": path, "dtype": dtype, "seed": 5}
    rows = load(seqs, whole=True, **set_)
    again = load(seqs, whole=True, **set_)
    other = load(seqs, whole=True, **{**set_, "seed": 6})
    for i, s in enumerate(seqs):
        docs, targets, contexts = dm(s, i, ids)
        n = max(0, len(s) - 3)
        assert len(targets) == n
        assert rows["doc_ids"][i].dtype == dtype
        assert rows["doc_ids"][i].tolist() == docs
        assert rows["target_ids"][i].tolist() == targets
        assert rows["context_ids"][i].tolist() == contexts
        noise = rows["target_noise_ids"][i]
        assert noise.shape == (n, 6) and noise[:, 0].tolist() == targets
        assert np.array_equal(noise, again["target_noise_ids"][i])
        if n > 10:
            assert not np.array_equal(noise, other["target_noise_ids"][i])
    # draws are in proportion to frequency ^ 0.75
    noise = np.concatenate([r[:, 1:].ravel() for r in rows["target_noise_ids"]])
    got = np.bincount(noise, minlength=len(want))
    p = np.array([n for _, n in want], float) ** 0.75
    p /= p.sum()
    assert not got[p == 0].any()
    e = p[p > 0] * len(noise)
    chi = ((got[p > 0] - e) ** 2 / e).sum()
    free = len(e) - 1
    assert abs(chi - free) < 5 * math.sqrt(2 * free)
    # and the five of a target differ
    pairs = np.concatenate([r[:, 1:] for r in rows["target_noise_ids"]])
    for a, b in itertools.combinations(range(5), 2):
        same_ = (pairs[:, a] == pairs[:, b]).mean()
        assert abs(same_ - (p ** 2).sum()) < 0.003


def test_dm_of_other_sizes(load, tmp_path):
    seqs = example(10)
    for k, c, m in ((3, 2, 0), (4, 3, 2), (5, 1, 7)):
        want = plain_vocab(seqs, k)
        path = tmp_path / "w.txt"
        path.write_text("".join(f"{w}\t{n}\n" for w, n in want))
        ids = {w: i for i, (w, _) in enumerate(want)}
        rows = load(seqs, whole=True, tokens="dm", vocab=path, k=k, context=c,
                    noise=m)
        for i, s in enumerate(seqs):
            docs, targets, contexts = dm(s, i, ids, k, c)
            assert rows["target_ids"][i].tolist() == targets
            assert rows["context_ids"][i].tolist() == contexts
            assert rows["target_noise_ids"][i].shape == (len(targets), m + 1)


def test_errors(load, tmp_path):
    path = tmp_path / "w.txt"
    path.write_text("ACGT\t5\nXXXX\t0\nYYYY\t0\n")
    three = tmp_path / "three.txt"
    three.write_text("# penstock vocabulary 1: k=3\nACG\t5\n")
    for settings, words in (
            ({"tokens": "kmers", "vocab": three, "k": 4}, "have 3 letters"),
            ({"model": "dnabert", "vocab": three}, "have 3 letters"),
            ({"tokens": "dm", "vocab": three, "k": 4}, "have 3 letters"),
            ({"tokens": "chars", "vocab": path}, "cannot be combined with"),
            ({"tokens": "kmers", "merges": path}, "cannot be combined with"),
            ({"tokens": "none", "unknown": "error"}, "cannot be combined with"),
            ({"tokens": "none", "dtype": "int32"}, "uint8"),
            ({"tokens": "dm"}, "vocab"),
            ({"tokens": "dm", "vocab": path}, "no word 'CGAC'"),
            ({"tokens": "dm", "vocab": path, "dtype": "uint8"}, "int32"),
            ({"tokens": "kmers", "dtype": "uint8"}, "too small"),
            ({"tokens": "chars", "begin": "cls"}, "specials"),
            ({"tokens": "onehot", "begin": "cls"}, "remove the setting"),
            ({"tokens": "chars", "unknown": "error"}, "letter 6: 0x2a"),
            ({"tokens": "vocab", "vocab": path}, "no word for letter 1"),
            ({"tokens": "bpe"}, "merges"),
            ({"tokens": "chars", "model": "dnabert"}, "kmers"),
            ({"model": "hyenadna", "length": 1, "begin": "cls",
              "end": "sep"}, "too small for"),
            ({"tokens": "chars", "alphabet": "ACA"}, "twice"),
            ({"tokens": "kmers", "k": 12, "alphabet": "ACDEFGHIKLMNP"},
             "too many")):
        with pytest.raises(penstock.Error) as e:
            load(["CGACG*CGA"], **settings)
        assert words in str(e.value), (settings, str(e.value))


# --- batches by length, and resuming them ---

def rows_of(b, pad):
    """(id, tokens) of a batch of any layout; checks that everything else is
    padding."""
    t = b["tokens"]
    ids = b.ids.tolist()
    if hasattr(t, "values"):
        v, o, _ = t.numpy()
        return [(i, v[o[n]:o[n + 1]].tolist()) for n, i in enumerate(ids)]
    x = t.numpy()
    flat = x.reshape(-1)
    if "tokens.segment" in list(b):
        segment = b["tokens.segment"].numpy().reshape(-1)
        assert (flat[segment == 0] == pad).all()
        assert (segment > 0).sum() == sum(n for n, in t.shapes.tolist())
        starts = t.offsets.tolist()
    else:
        starts = [n * x.shape[1] for n in range(len(ids))]
    out = []
    for n, (i, (k,)) in enumerate(zip(ids, t.shapes.tolist())):
        out.append((i, flat[starts[n]:starts[n] + k].tolist()))
        if "tokens.segment" not in list(b):
            assert (x[n, k:] == pad).all()
    return out


@pytest.mark.parametrize("how", [
    {"pack": 500, "batch_size": 3, "too_long": "cut"},
    {"pack": 300, "batch_size": 9, "too_long": "split"},
    {"batch_tokens": 4000},
    {"batch_tokens": 9000, "shapes": "padded", "pad_multiple": 8,
     "sampler": "bucket"},
    {"batch_size": 5, "shapes": "padded", "sampler": "bucket"},
    {"batch_size": 7, "shapes": "padded"}])
@pytest.mark.parametrize("tokens", ["chars", "bpe"])
def test_batches_and_resume(tmp_path, merges, how, tokens):
    """Every token once, in any batches; and the same batches when resuming at
    any point. The length of bpe rows is not known in advance."""
    seqs = [s[:800] for s in sequences("AACGT", 40, 0.01, 11)]
    path = tmp_path / "s.fa"
    path.write_text("".join(f">s{i}\n{s}\n" for i, s in enumerate(seqs)))
    ids = names_of(merges)
    if tokens == "bpe":
        (tmp_path / "vocab.json").write_text(json.dumps(ids))
        (tmp_path / "merges.txt").write_text(
            "".join(f"{a} {b}\n" for a, b in merges))
        ranks = {m: i for i, m in enumerate(merges)}
        want = [[1] + bpe(s.upper(), ranks, ids, 0) + [2] for s in seqs]
        set_ = {"vocab": tmp_path / "vocab.json",
                "merges": tmp_path / "merges.txt", "ambiguous": "unknown"}
        pad = ids["[PAD]"]
    else:
        sp = ("unk", "cls", "sep", "pad")
        want = [[1] + chars(s, specials=sp) + [2] for s in seqs]
        set_ = {"specials": ",".join(sp)}
        pad = 3
    how = {"shuffle": True, **how} if "sampler" not in how else how
    loader = penstock.Loader(path, threads=2, seed=7, tail="keep",
                             tokens=tokens, begin="cls", end="sep", **set_,
                             **how)
    first, states = [], []
    for b in loader:
        first.append(rows_of(b, pad))
        states.append(loader.state_dict())
    got = collections.defaultdict(list)
    for batch in first:
        for i, row in batch:
            got[i].append(row)
    n, pack = how.get("too_long"), how.get("pack")
    for i, w in enumerate(want):
        whole = [w] if not pack or n == "split" else [w[:pack]]
        if n == "split":
            whole = [w[k:k + pack] for k in range(0, len(w), pack)]
        assert sorted(x for x in got[i] if x) == sorted(whole)
    for k in (0, len(states) // 2, len(states) - 2):
        loader.load_state_dict(states[k])
        assert [rows_of(b, pad) for b in loader] == first[k + 1:]
