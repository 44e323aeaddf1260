"""Sequences as text, a line each: half DNA, half RNA, the last line of each
half shorter, and the name of the sequence after a comma."""
import numpy as np


class Sequences:
    def __init__(self, name, n, letters, last):
        self.name = name + ".txt"
        self.n, self.letters, self.last = n, letters, last

    def disk(self):
        return self.n * (self.letters + 18)

    def make(self, path):
        rng = np.random.default_rng(1)
        half = self.n // 2
        with open(path, "wb") as f:
            for i in range(self.n):
                m = self.last if i in (half - 1, self.n - 1) else self.letters
                alphabet = b"ATCG" if i < half else b"AUCG"
                s = np.frombuffer(alphabet, "u1")[rng.integers(0, 4, m)]
                f.write(s.tobytes() + b",design_id_%d\n" % (i + 1))

    def paths(self, path):
        return [path]

    def lines(self, path, most):
        """The first whole sequences."""
        out = []
        with open(path, "rb") as f:
            for line in f:
                s = line.split(b",")[0]
                if len(s) == self.letters:
                    out.append(s)
                if len(out) == most:
                    break
        return out
