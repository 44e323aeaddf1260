#!/usr/bin/python3
"""Trains a small model in PyTorch on arrays x.npy and y.npy in a folder.

    pytorch.py DIRECTORY [EPOCHS]
"""
import sys

import penstock
import torch
from penstock.torch import DataLoader


def train(path, epochs=3):
    torch.manual_seed(0)
    loader = DataLoader(path, batch_size=64, shuffle=True)
    width = penstock.Dataset(path)[0]["x"].size
    model = torch.nn.Sequential(torch.nn.Linear(width, 32), torch.nn.ReLU(),
                                torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        total = seen = 0
        for batch in loader:        # a dict of tensors, ready to use
            x, y = batch["x"].float(), batch["y"].long()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
            seen += len(x)
        print(f"epoch {epoch + 1}: {seen} samples, loss {total / seen:.4f}")


if __name__ == "__main__":
    train(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)
