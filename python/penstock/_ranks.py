"""The rank of this process and the number of ranks."""
import os
import sys

# (rank, world) in the environment of torchrun, Open MPI, MPICH and Intel MPI,
# srun. Slurm's job-wide variables are not used: a batch script has them, too,
# although it is a single process.
PLACES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)


def find():
    """(rank, world) from torch.distributed if it is initialised, otherwise from
    the launcher's environment, otherwise (0, 1)."""
    torch = sys.modules.get("torch.distributed")
    if torch and torch.is_available() and torch.is_initialized():
        return torch.get_rank(), torch.get_world_size()
    for rank, world in PLACES:
        r, w = os.environ.get(rank, ""), os.environ.get(world, "")
        if r.isdigit() and w.isdigit() and int(r) < int(w):
            return int(r), int(w)
    return 0, 1


def settle(rank, world):
    """The given values, or those of `find`."""
    if rank is None and world is None:
        return find()
    return rank or 0, 1 if world is None else world
