#!/usr/bin/python3
"""Ranks of one job share every global batch. Each rank loads its slice, and
together they load every sample of the epoch.

    mpirun -n 4 ranks.py PATH
"""
import sys

import penstock
from mpi4py import MPI


def main(path):
    ranks = MPI.COMM_WORLD
    loader = penstock.Loader(path, batch_size=16, shuffle=True, tail="keep")
    mine = [int(i) for batch in loader for i in batch.ids]
    everything = ranks.gather(mine)
    if ranks.rank == 0:
        ids = sorted(i for part in everything for i in part)
        assert ids == list(range(len(ids))), "a sample is missing or repeated"
        print(f"{ranks.size} ranks loaded {len(ids)} samples: "
              + ", ".join(str(len(part)) for part in everything))


if __name__ == "__main__":
    main(sys.argv[1])
