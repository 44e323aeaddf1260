"""The works to measure: data, batch size, other contenders, and targets."""
import math

from contenders_cells import FILES
from data import Blob, Files, Rows, Tiny
from data_cells import Cells
from data_formats import (Chunks, Dlio, Fasta, Images, Place, Records,
                          Sequences, Text, Volumes)

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

ROWS_1K = Rows("rows_1k", 1_000_000, (256,), "float32")
ROWS_67K = Rows("rows_67k", 20_000, (150, 150, 3), "uint8")
ROWS_602K = Rows("rows_602k", 4_096, (3, 224, 224), "float32")
FILES_16K = Files("files_16k", 20_000, (4096,), "float32", ".npy")
NPZ_UNET3D = Volumes("npz_unet3d", [m * MIB for m in (
    146, 20, 84, 110, 61, 150, 47, 95, 72, 133)])
JPEG_NOISE = Images("jpeg_noise", 4000, 338, 338, False)
JPEG_PHOTO = Images("jpeg_photo", 2000, 500, 375, True)
JPEG_224 = Images("jpeg_224", 2000, 224, 224, True)
TFRECORD = Records("tfrecord_resnet50", 4, 1251, 114_660 - 32)
HDF5_GZIP = Chunks("hdf5_gzip", 2048, (256, 256))
HDF5_MANY = Chunks("hdf5_16k", 16_000, (8, 8))
CSV_DLIO = Text("csv_dlio", 8, 100, 65_536, "uint8")
CSV_FLOAT = Text("csv_float", 2, 200_000, 20, "float64")
NPZ_10M = Files("npz_10m", 16, (2_500_000,), "float32", ".npz")
FASTA_1K = Fasta("fasta_1k", 100_000_020, 1024)
FASTA_131K = Fasta("fasta_131k", 100_000_020, 131_072)
CELLS = Cells("cells_200k", 200_000, 20_000, 1237)
SEQUENCES = Sequences("seqs_1k", 65_472, 1024, 64)
SEQUENCES_EIGHTH = Sequences("seqs_eighth", 130_944, 1024, 64)  # of a GiB
DLIO_NPY4K = Dlio("dlio_npy4k", "npy", 4000, 4 * KIB)
DLIO_NPY110K = Dlio("dlio_npy110k", "npy", 2000, 114_660)
DLIO_JPEG110K = Dlio("dlio_jpeg110k", "jpeg", 2000, 114_660)
DLIO_NPZ10M = Dlio("dlio_npz10m", "npz", 64, 10 * MIB)
DLIO_HDF5_10M = Dlio("dlio_hdf5_10m", "hdf5", 64, 10 * MIB)


def workers(name):
    return [f"{name}_w{w}" for w in (0, 1, 2)]


ROW_PEERS = (workers("torch_default") + workers("torch_batched") +
             ["numpy_memmap", "numpy_take"])
FILE_PEERS = (workers("torch_default") + workers("torch_rawread") +
              ["numpy_load"])


class Work:
    """kind selects the measurement in contenders.py. wanted is a list of
    (contender or prefix of contenders, sign, number): for '>' the ratio of
    penstock to the best of them, for '<' the median of the contender. A peer runs
    again while it has taken less than peer_seconds."""

    def __init__(self, kind, wanted, data=None, batch=0, peers=(), **more):
        self.kind = kind
        self.wanted = wanted
        self.data = data
        self.batch = batch
        self.peers = list(peers)
        self.peer_seconds = more.pop("peer_seconds", math.inf)
        self.more = more


def rows(data, batch, default, batched, limit):
    return Work("rows", [("torch_default", ">", default),
                         ("torch_batched", ">", batched),
                         ("limit", ">", limit)], data, batch, ROW_PEERS)


def direct(bs, size, batch, depth):
    """depth: number of reads in flight that makes the limit fastest."""
    return Work("direct", [("limit", ">", 0.8), ("fio", ">", 0.9)],
                Blob(f"direct_{size // MIB}m", size), batch, bs=bs,
                depth=depth)


def run(data, how, batch, epochs, *wanted, resize=0):
    """how: the way a limit reads the files."""
    return Work("run", [("dlio" + end, ">", want) for end, want in wanted],
                data, batch, epochs=epochs, how=how, resize=resize)


def cells(file, output, chunks, peers, wanted, **more):
    """Blocks of `chunks` chunks of 64 cells."""
    return Work("cells", wanted, CELLS, 1024, peers, peer_seconds=10,
                file=FILES[file], output=output, chunks=chunks, size=64,
                **more)


def fasta(data, batch, limit, pysam, pyfaidx):
    """Windows of a chromosome, one number per letter."""
    return Work("decode", [("limit", ">", limit), ("limit_1t", ">", limit),
                           ("pysam", ">", pysam), ("pyfaidx", ">", pyfaidx)],
                data, batch, ["pysam", "pyfaidx"], how="letters",
                settings=(f"format.window={data.row}", "format.last=drop",
                          "format.tokens=chars"))


def h5ad(file, output, chunks, census, limit, *wanted):
    peers = [f"census_w64x{chunks}", f"tuned_w64x{chunks}"]
    if (output, chunks) == ("dense", 256):
        peers.append("annloader")
    return cells(file, output, chunks, peers,
                 [("census", ">", census), ("limit", ">", limit), *wanted])


def zarr(output, want):
    return cells("zarr", output, 256,
                 ["annbatch_w64x256", "annbatch_w256x64"],
                 [("annbatch", ">", want), ("limit", ">", 0.7)])


WORKS = {
    "rows_1k_b256": rows(ROWS_1K, 256, 8, 2.5, 0.75),
    "rows_1k_b1024": rows(ROWS_1K, 1024, 8, 2.5, 0.75),
    "rows_67k": rows(ROWS_67K, 64, 2.5, 1.7, 0.8),
    "rows_602k": rows(ROWS_602K, 32, 5, 1.7, 0.8),
    "files_16k": Work("decode", [("torch_default", ">", 12),
                                 ("limit", ">", 0.8)],
                      FILES_16K, 64, FILE_PEERS, how="mapped"),
    "npz_10m": Work("decode", [("torch_default", ">", 4),
                              ("limit", ">", 0.8)],
                    NPZ_10M, 4, workers("torch_default") + ["numpy_load"],
                    how="crc32"),
    # batches grow until all have held the largest volumes; those of the limit
    # have that size from the start
    "npz_unet3d": Work("decode", [("limit", ">", 0.85),
                                  ("limit_1t", ">", 0.85)],
                       NPZ_UNET3D, 2, ["numpy_npz"], how="crc32",
                       settings=("format.fields=x",), skip=6),
    "jpeg_noise": Work("decode", [("limit", ">", 0.9),
                                  ("limit_1t", ">", 0.9),
                                  ("pillow", ">", 1)],
                       JPEG_NOISE, 32, ["pillow"], how="jpeg"),
    "jpeg_photo": Work("decode", [("limit", ">", 0.9),
                                  ("limit_1t", ">", 0.9),
                                  ("pillow", ">", 1)],
                       JPEG_PHOTO, 32, ["pillow"], how="jpeg"),
    "tfrecord": Work("decode", [("limit", ">", 0.85),
                                ("limit_1t", ">", 0.85)],
                     TFRECORD, 64, how="crc32c"),
    "hdf5_gzip": Work("decode", [("limit", ">", 0.85),
                                 ("limit_1t", ">", 0.85), ("h5py", ">", 4)],
                      HDF5_GZIP, 32, ["h5py"], how="zlib"),
    "hdf5_open": Work("open_chunks", [("penstock", "<", 20)], HDF5_MANY,
                      peers=["h5py_chunk_info"]),
    "csv_dlio": Work("text", [("pandas", ">", 20)], CSV_DLIO, 16, ["pandas"],
                     settings=("format.dtype=uint8",), header=None),
    "csv_float": Work("text", [("pandas", ">", 20)], CSV_FLOAT, 256,
                      ["pandas"], header=0),
    "fasta_1k": fasta(FASTA_1K, 256, 0.65, 20, 10),
    "fasta_131k": fasta(FASTA_131K, 8, 0.85, 10, 5),
    "cells_gzip_dense": h5ad("gzip", "dense", 256, 12, 0.85),
    "cells_gzip_dense_2000": h5ad("gzip", "dense", 2000, 12, 0.85,
                                  ("penstock_memory", "<", 1600)),
    "cells_gzip_csr": h5ad("gzip", "csr", 256, 6, 0.85),
    "cells_gzip_csr_2000": h5ad("gzip", "csr", 2000, 6, 0.85,
                                ("penstock_memory", "<", 1600)),
    "cells_none_dense": h5ad("none", "dense", 256, 15, 0.8),
    "cells_none_csr": h5ad("none", "csr", 256, 8, 0.8),
    "cells_zarr_dense": zarr("dense", 12),
    "cells_zarr_csr": zarr("csr", 3),
    "cells_packed_csr": Work("cells_packed",
                             [("penstock_gzip", ">", 3),
                              ("share_of_gzip", "<", 0.65)],
                             CELLS, 1024, output="csr", chunks=256, size=64),
    "cells_open": Work("cells_open", [("penstock", "<", 100),
                                      ("penstock_warm", "<", 10)],
                       CELLS, peers=["libhdf5"], file=FILES["gzip"],
                       peer_seconds=5),
    # tensors of paragraph vectors, and their vocabulary
    "tokens_dm": Work("tokens", [("limit", ">", 0.5), ("limit_1t", ">", 0.5),
                                 ("dataset", ">", 2000), ("numpy", ">", 20)],
                      SEQUENCES, 16, workers("dataset") + workers("numpy"),
                      how="dm", peer_seconds=10),
    "doc2vec": Work("tokens_model", [("torch_adam", ">", 20),
                                     ("torch_sparse", ">", 20)],
                    SEQUENCES, 4, ["torch_adam", "torch_sparse"],
                    peer_seconds=10),
    "tokens_chars": Work("tokens", [("limit", ">", 0.3),
                                    ("limit_1t", ">", 0.3)],
                         SEQUENCES, 256, ["python", "numpy"], how="chars",
                         peer_seconds=10),
    "tokens_vocab": Work("tokens_vocab", [("limit", ">", 0.8),
                                          ("dataset", ">", 500),
                                          ("numpy", ">", 10)],
                         SEQUENCES_EIGHTH, 256, ["dataset", "counter", "numpy"],
                         peer_seconds=10),
    "ddict_load": Work("ddict_load", [("limit", ">", 0.5)],
                       SEQUENCES_EIGHTH, 1024),
    "python_rows_1k": Work("python_samples", [("command", ">", 0.9),
                                              ("torch_default", ">", 7),
                                              ("torch_batched", ">", 2)],
                           ROWS_1K, 256, workers("torch_default") +
                           workers("torch_batched")),
    "python_jpeg_224": Work("python_samples", [("command", ">", 0.9),
                                               ("torch_pillow", ">", 2.5)],
                            JPEG_224, 32, workers("torch_pillow")),
    "python_overhead": Work("python_overhead", [("penstock", "<", 5)]),
    "python_store_fill": Work("python_store", [("memcpy", ">", 0.8)],
                              batch=256, ways={"penstock": "store_fill",
                                               "memcpy": "memcpy"}),
    "python_store_gather": Work("python_store", [("numpy", ">", 2),
                                                 ("limit", ">", 0.75)],
                                ROWS_1K, 256,
                                ways={"penstock": "store_gather",
                                      "numpy": "numpy_gather"}),
    "python_start": Work("python_start", [("penstock", "<", 50),
                                          ("penstock_first", "<", 20)],
                         ROWS_1K, 256),
    "null_1k": Work("null", [("penstock", "<", 150),
                             ("penstock_batch", "<", 3000)]),
    "open_1m": Work("open", [("penstock", "<", 0.2),
                             ("penstock_memory", "<", 100)],
                    Tiny("open_1m", 1_000_000), peers=["python_scandir"]),
    "shuffle_index": Work("shuffle", [("penstock", "<", 30)],
                          peers=["numpy_permutation", "torch_randperm"],
                          n=1_000_000),
    "direct_4k": direct(4 * KIB, 512 * MIB, 256, 128),
    "direct_128k": direct(128 * KIB, 2 * GIB, 32, 32),
    "direct_1m": direct(MIB, 4 * GIB, 8, 8),
    "run_npy4k": run(DLIO_NPY4K, "mapped", 100, 3, ("", 20), ("_cpu", 20)),
    "run_npz10m": run(DLIO_NPZ10M, "crc32", 4, 5, ("", 5), ("_cpu", 3),
                      resize=2 * MIB),
    "run_npy110k": run(DLIO_NPY110K, "plain", 100, 3),
    "run_jpeg110k": run(DLIO_JPEG110K, "jpeg", 100, 3, ("", 2)),
    "run_hdf5_10m": run(DLIO_HDF5_10M, "plain", 4, 5, resize=2 * MIB),
    "start": Work("start", [("penstock", "<", 20),
                            ("penstock_memory", "<", 20)],
                  Place("start", MIB)),
    "accel64": Work("accelerators", [("penstock_memory", "<", 100)],
                    DLIO_NPY110K, 4, accelerators=64),
    "generate": Work("generate", [("fio", ">", 0.7), ("fio_sync", ">", 0.7)],
                     Place("generate", 5 * GIB), n=200, size=10 * MIB),
    "checkpoint": Work("checkpoint", [("fio", ">", 0.8),
                                      ("penstock_memory", "<", 300)],
                       Place("checkpoint", 5 * GIB), block=4 * MIB),
}
for _name, _work in WORKS.items():
    _work.name = _name
