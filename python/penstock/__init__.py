"""Loads training data into batches, as fast as the hardware allows.

>>> import penstock
>>> for batch in penstock.Loader(data / "x.npy", batch_size=500, shuffle=True):
...     print(batch["x"].shape, batch.epoch)
(500, 8) 0
(500, 8) 0

batch["x"] goes to NumPy, PyTorch and others without a copy: numpy.asarray(),
torch.from_dlpack(), memoryview(), or batch.numpy() and batch.torch().
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
    """What not everyone needs is imported when it is first asked for."""
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
