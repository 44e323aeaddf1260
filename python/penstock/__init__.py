"""Load training data into ready batches, as fast as the hardware allows.

========================= ====================================================
`Loader`                  batches of a data set, epoch by epoch
`CellLoader`              the same for single cells (h5ad, zarr, packed)
`Dataset`                 samples by index
`torch.DataLoader`        a drop-in for PyTorch's DataLoader
`TensorStore`             arrays on disk, filled in place and read by index
`DDict`                   a dictionary in memory that processes share
`Batch`, `Array`, `Ragged` what a loader returns
========================= ====================================================

Examples
--------
>>> import penstock
>>> for batch in penstock.Loader(data / "x.npy", batch_size=500, shuffle=True):
...     print(batch["x"].shape, batch.epoch)
(500, 8) 0
(500, 8) 0

``batch["x"]`` converts to NumPy, PyTorch and others without a copy, with
`numpy.asarray`, `torch.from_dlpack` or `memoryview`; `Batch.numpy` and
`Batch.torch` convert all fields.

Errors are subclasses of `Error` or built-in exceptions (`OSError`,
`MemoryError`, `ValueError`). Their attribute ``code``, such as ``"P101"``,
identifies the kind of error: see docs/errors.md.
"""
from ._penstock import (Array, Batch, DataError, Error, Ragged, SettingError,
                        version as __version__)
from ._loader import Loader

__all__ = ["Array", "Batch", "CellLoader", "DDict", "DataError", "Dataset", "Error",
           "Loader", "Ragged", "SettingError", "TensorStore", "torch"]

_LATER = {"Dataset": "_dataset", "CellLoader": "_cells",
          "Asked": "_ddict", "DDict": "_ddict",
          "RaggedArrays": "_convert",
          "TensorStore": "_tensors"}


def __getattr__(name):
    """Import rarely needed parts on first use."""
    from importlib import import_module
    if name == "torch":
        return import_module(".torch", __name__)
    if name in _LATER:
        value = getattr(import_module("." + _LATER[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'penstock' has no attribute '{name}'")


def __dir__():
    return sorted(set(globals()) | set(__all__))


def _register():
    from collections.abc import Mapping, Sequence
    Mapping.register(Batch)
    Sequence.register(Ragged)


_register()
