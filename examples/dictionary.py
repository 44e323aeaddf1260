#!/usr/bin/python3
"""Ranks fill a dictionary with sequences, load batches from it, and train one
model that tells sequences rich in A and T from others: mpirun -n 2 dictionary.py"""
import random

import penstock.torch
import torch
from mpi4py import MPI

RANKS, LENGTH = MPI.COMM_WORLD, 200
ONE_HOT = torch.eye(256)[:, list(b"ACGT")]


def sample(i):  # its class, 0 or 1, and its letters
    return bytes([i % 2, *random.Random(i).choices(b"ACGT", [7, 3, 3, 7] if i % 2 else None, k=LENGTH)])


with penstock.DDict(memory="64MB") as d:
    mine = range(RANKS.rank, 800, RANKS.size)
    d.put_many(mine, [sample(i) for i in mine])
    d.barrier()
    model = torch.nn.Linear(4, 1, bias=False)
    model.weight.data.zero_()
    step = torch.optim.Adam(model.parameters(), lr=0.1)
    loader = penstock.torch.DataLoader(d, batch_size=32 // RANKS.size, shuffle=True, tail="keep",
                                       decode={"x": f"raw:uint8,shape={1 + LENGTH}"})
    for epoch in range(3):
        count = torch.zeros(2)
        for x in (batch["x"].long() for batch in loader):
            score = model(ONE_HOT[x[:, 1:]].mean(1) * 10)[:, 0]
            step.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(score, x[:, 0].float()).backward()
            RANKS.Allreduce(MPI.IN_PLACE, model.weight.grad.numpy())
            step.step()
            count += torch.tensor([len(x), ((score > 0) == (x[:, 0] > 0)).sum()])
        seen, right = RANKS.allreduce(count.numpy())
        if not RANKS.rank:
            print(f"epoch {epoch + 1}: {RANKS.size} ranks, {seen:.0f} sequences, {right / seen:.3f}")
    loader.close()
