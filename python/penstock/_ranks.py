"""Which rank this process is, and of how many."""
import os
import sys

# (rank, world) as launchers leave them in the environment: torchrun, Open MPI,
# MPICH and Intel MPI, srun. SLURM's job-wide numbers are not asked: in a batch
# script they are set, too, where there is one process.
PLACES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)


def find():
    """(rank, world) from torch.distributed, if it is in use, else from the
    environment of the launcher, else (0, 1)."""
    torch = sys.modules.get("torch.distributed")
    if torch and torch.is_available() and torch.is_initialized():
        return torch.get_rank(), torch.get_world_size()
    for rank, world in PLACES:
        r, w = os.environ.get(rank, ""), os.environ.get(world, "")
        if r.isdigit() and w.isdigit() and int(r) < int(w):
            return int(r), int(w)
    return 0, 1


def settle(rank, world):
    """What was given, or else what is found."""
    if rank is None and world is None:
        return find()
    return rank or 0, 1 if world is None else world
