#!/usr/bin/python3
"""Turns windows of a FASTA file into tokens: k-mers of six letters, each a
number, ready for an embedding.

    tokens.py FILE.fa
"""
import sys

import numpy
import penstock


def main(path):
    loader = penstock.Loader(path, batch_size=64, shuffle=True, window=128,
                             last="drop",
                             tokens="kmers", k=6)
    for batch in loader:
        tokens = numpy.asarray(batch["tokens"])
        break
    print(f"a batch of {tokens.shape[0]} windows with {tokens.shape[1]} "
          f"tokens each, {tokens.dtype}, from {tokens.min()} to "
          f"{tokens.max()}")


if __name__ == "__main__":
    main(sys.argv[1])
