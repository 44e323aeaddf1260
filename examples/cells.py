#!/usr/bin/python3
"""Trains a linear classifier of cell types on single cells from h5ad or zarr:
counts are normalised and log-transformed while batches are made.

    cells.py PATH [COLUMN]      (default: cell_type)
"""
import sys

import penstock
import torch


def main(path, column="cell_type"):
    torch.manual_seed(0)
    loader = penstock.CellLoader(path, batch_size=128, shuffle="block",
                                 obs=[column], normalize=10000, log1p=True)
    classes = loader.classes[column]
    genes = next(iter(loader))["X"].shape[1]
    model = torch.nn.Linear(genes, len(classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        correct = seen = 0
        for batch in loader:
            data = batch.torch()
            x, y = data["X"], data[column].long()
            out = model(x)
            loss = torch.nn.functional.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (out.argmax(1) == y).sum().item()
            seen += len(y)
        print(f"epoch {epoch + 1}: {seen} cells, {len(classes)} classes, "
              f"accuracy {correct / seen:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
