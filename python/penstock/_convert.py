"""Conversion to NumPy, PyTorch and SciPy. Imported on first use."""
from collections import namedtuple

RaggedArrays = namedtuple("RaggedArrays", "values offsets shapes")


def from_dlpack(capsule):
    """PyTorch's fastest from_dlpack; replaces itself on the first call."""
    global from_dlpack
    import torch
    from_dlpack = getattr(torch._C, "_from_dlpack", None) or \
        torch.utils.dlpack.from_dlpack
    return from_dlpack(capsule)


def torch_other(array):
    """Convert types that DLPack or PyTorch lacks: reinterpret the memory, or
    copy to the next larger type."""
    import torch
    if array.dtype == "bool":
        return torch.frombuffer(array, dtype=torch.uint8).view(
            torch.bool).reshape(array.shape) if array.nbytes else \
            torch.empty(array.shape, dtype=torch.bool)
    wider = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}
    if array.dtype not in wider:
        raise TypeError(f"PyTorch has no {array.dtype}; "
                        f"convert with dtype= or use batch.numpy()")
    a = array.numpy()
    if array.dtype == "uint64" and a.size and int(a.max()) >= 2**63:
        raise OverflowError("PyTorch has no uint64, and the values do not "
                            "fit into int64; use batch.numpy()")
    return torch.from_numpy(a.astype(wider[array.dtype]))


def ragged(r, how):
    return RaggedArrays(*(getattr(x, how)()
                          for x in (r.values, r.offsets, r.shapes)))


def _csr_fields(batch, name):
    names = [k[:-5] for k in batch.keys()
             if k.endswith("_data") and k[:-5] + "_indices" in batch]
    if name is None:
        if not names:
            raise KeyError("the batch has no sparse matrix; load it with "
                           "output=\"csr\"")
        name = names[0]
    elif name not in names:
        raise KeyError(f"no sparse matrix '{name}'; available: "
                       f"{', '.join(names) or 'none'}")
    return batch[name + "_data"], batch[name + "_indices"]


def csr(batch, name=None):
    data, indices = _csr_fields(batch, name)
    return (data.values.numpy(), indices.values.numpy(),
            data.offsets.numpy())


def _ncols(batch, ncols):
    ncols = batch.ncols if ncols is None else ncols
    if not ncols:
        raise ValueError("the number of columns is unknown; pass ncols=")
    return ncols


def scipy_csr(batch, name=None, ncols=None):
    from scipy.sparse import csr_matrix
    data, indices, indptr = csr(batch, name)
    return csr_matrix((data, indices, indptr), copy=False,
                      shape=(batch.nsamples, _ncols(batch, ncols)))


def torch_sparse(batch):
    """batch.torch() for a batch with CSR matrices."""
    out = {}
    for key, array in batch.items():
        name, _, part = key.rpartition("_")
        if part == "data" and name + "_indices" in batch:
            out[name] = torch_csr(batch, name)
        elif part != "indices" or name + "_data" not in batch:
            out[key] = array.torch()
    return out


def torch_csr(batch, name=None, ncols=None):
    import torch
    data, indices = _csr_fields(batch, name)
    return torch.sparse_csr_tensor(
        data.offsets.torch(), indices.values.torch().long(),
        data.values.torch(), size=(batch.nsamples, _ncols(batch, ncols)))
