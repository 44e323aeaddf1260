#!/usr/bin/python3
"""Stops in the middle of an epoch, and resumes exactly where it stopped: no
sample is repeated, none is lost. The state is small and can be saved with the
model; another number of threads, ranks or samples per batch may continue it.

    resume.py PATH
"""
import json
import sys

import penstock


def loader(path, **settings):
    return penstock.Loader(path, shuffle=True, seed=7, **settings)


def main(path):
    whole = [i for batch in loader(path, batch_size=32) for i in batch.ids]

    first = loader(path, batch_size=32)
    batches = iter(first)
    seen = [i for _ in range(3) for i in next(batches).ids]
    saved = json.dumps(first.state_dict())      # plain numbers

    second = loader(path, batch_size=50, threads=1)
    second.load_state_dict(json.loads(saved))
    seen += [i for batch in second for i in batch.ids]

    assert seen == whole, "the order differs"
    print(f"{len(seen)} samples, each once, in the same order")


if __name__ == "__main__":
    main(sys.argv[1])
