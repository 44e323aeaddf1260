"""Other loaders, and penstock from Python, for the experiments of penstock bench
and for bench/run.py. A request is a line of JSON; the answer is lines of JSON,
the last with "end". One process serves all requests, because importing PyTorch
takes longer than most of them. Each request runs in a fork, because the state
of malloc after earlier requests changes results by a factor of four. The code
follows the documentation of each loader, and favours it where there is a
choice: workers run and arrays are in memory when the clock starts."""
import ctypes
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time

sys.path[:] = [p for p in sys.path if p not in ("", ".")]
now = time.perf_counter
SPIN = 0.0002
OUT = 1


def say(**what):
    os.write(OUT, (json.dumps(what) + "\n").encode())


def die_with_parent(*unused):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def wait_until(when):
    """Sleeps, then spins, because sleeps end late."""
    left = when - now() - SPIN
    if left > 0:
        time.sleep(left)
    while now() < when:
        pass


class Items:
    """One row per index, or the result of a function of it."""

    def __init__(self, x, make=None):
        self.x, self.make = x, make

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.make(self.x[i]) if self.make else self.x[i]


class Slow:
    """Collates in the worker and takes the loading time of a batch. Waiting once
    per batch favours loaders that are called once per sample."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, rows):
        from torch.utils.data import default_collate
        until = now() + self.seconds * len(rows)
        batch = default_collate(rows)
        wait_until(until)
        return batch


class Mapping(Items):
    """Rows of a dictionary of tensors, fetched a batch at a time."""

    def __init__(self, x):
        super().__init__({"x": x})

    def __len__(self):
        return len(self.x["x"])

    def __getitems__(self, ids):
        return {k: v[ids] for k, v in self.x.items()}


def rows_of(q):
    """The array as a tensor; mapped for one variant, else in memory."""
    import numpy
    import torch
    torch.set_num_threads(1)
    mapped = q["variant"].endswith(" mapped")
    x = numpy.load(q["path"], mmap_mode="c" if mapped else None)
    x.reshape(-1).view("u1")[::4096].sum()
    return torch.from_numpy(x)


def data_loader(q, items, **more):
    from torch.utils.data import DataLoader
    n = q["workers"]
    return DataLoader(items, num_workers=n, shuffle=q["shuffle"] or None,
                      worker_init_fn=die_with_parent if n else None,
                      batch_size=q["batch"], **more)


def batched(q, items):
    from torch.utils.data import (BatchSampler, DataLoader, RandomSampler,
                                  SequentialSampler)
    n = q["workers"]
    order = (RandomSampler if q["shuffle"] else SequentialSampler)(items)
    return DataLoader(items, batch_size=None, num_workers=n,
                      worker_init_fn=die_with_parent if n else None,
                      sampler=BatchSampler(order, q["batch"], False))


def mapping(q, x):
    """PyTorch before 2.0 does not call __getitems__, so the sampler returns
    batches of indices; the calls are the same."""
    items = Mapping(x)

    class Whole:
        def __len__(self):
            return len(items)

        def __getitem__(self, ids):
            return items.__getitems__(ids)

    return (b["x"] for b in batched(q, Whole()))


def slices(q, x):
    import torch
    if q["shuffle"]:
        return (x[i] for i in torch.randperm(len(x)).split(q["batch"]))
    return iter(x.split(q["batch"]))


def own_loader(q):
    import penstock
    loader = penstock.Loader(q["path"], batch_size=q["batch"],
                             shuffle=bool(q["shuffle"]),
                             threads=q["workers"] or 1)
    return (next(iter(b.torch().values())) for b in loader)


def batches_of(q):
    """The iterable of batches of a variant."""
    variant = q["variant"]
    if variant == "penstock from Python":
        import torch
        torch.set_num_threads(1)
        return own_loader(q)
    x = rows_of(q)
    if variant == "DataLoader list":
        return data_loader(q, Items([row.clone() for row in x]))
    if variant == "DataLoader batched":
        return batched(q, Items(x))
    if variant == "DataLoader mapping":
        return mapping(q, x)
    if variant == "slicing":
        return slices(q, x)
    if q["load_s"]:
        return data_loader(q, Items(x), collate_fn=Slow(q["load_s"]))
    return data_loader(q, Items(x))


def tally(q):
    """A function that sums up a batch."""
    if q["floats"]:
        return lambda b: int(b.sum())
    import numpy

    def words(b):
        b = b.numpy().reshape(-1).view("u1")
        whole = b.nbytes % 4 == 0
        return int((b.view("u4") if whole else b).sum(dtype=numpy.uint64))
    return words


def steps(q):
    """A training loop without a model."""
    source = batches_of(q)
    add = tally(q)
    say(ready=True)
    if q["memory"]:
        time.sleep(0.1)
    it = iter(source)
    if q["cached"]:
        kept = [next(it) for _ in range(q["cached"])]
        it = (kept[i % len(kept)] for i in range(q["steps"]))
    start = now()
    samples = total = 0
    waited = 0.0
    compute = q["compute_s"]
    for _ in range(q["steps"]):
        asked = now()
        batch = next(it)
        got = now()
        waited += got - asked
        samples += len(batch)
        total += add(batch)
        if compute:
            wait_until(got + compute)
    took = now() - start
    say(samples=samples, content_sum=str(total % 2**64), seconds=took,
        step_s=took / q["steps"], wait_s=waited / q["steps"], end=True)


def assemble(q):
    """Joins blocks into one array."""
    import numpy
    import torch
    torch.set_num_threads(1)
    n, per = q["length"], q["block_bytes"] // 4
    blocks = [torch.ones(1, per) for _ in range(n)]
    for i, b in enumerate(blocks):
        b[0, 0] = i
    variant = q["variant"]
    scratch = out = None
    if variant == "reused":
        out = torch.full((n, per), 2.0)
    if variant == "TensorStore":
        import penstock
        scratch = tempfile.mkdtemp(prefix="penstock-bench.")
    try:
        start = now()
        if variant == "torch.cat":
            out = torch.cat(blocks)
        elif variant == "np.concatenate":
            out = numpy.concatenate([b.numpy() for b in blocks])
        elif variant == "TensorStore":
            store = penstock.TensorStore.create(
                scratch + "/s", {"x": ((per,), "f4")}, n)
            for i, b in enumerate(blocks):
                store[i] = {"x": b[0]}
            out = store[:]["x"]
        else:
            if out is None:
                out = torch.empty(n, per)
            for i, b in enumerate(blocks):
                out[i] = b[0]
        took = now() - start
        total = int(numpy.asarray(out).sum(dtype="f8"))
        if variant == "TensorStore":
            store.discard()
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    # last: the caller may kill this process after the answer
    say(samples=len(out), content_sum=str(total), seconds=took, end=True)


def loads(name):
    """Whether a module can be imported. Tries it in a fork, because the import
    may end the process, as with a sanitizer build."""
    pid = os.fork()
    if not pid:
        try:
            __import__(name)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def probe(q):
    sys.path[:0] = [p for p in [q.get("module")] if p]
    found = {}
    for name in ("numpy", "torch", "penstock"):
        found[name] = ""
        try:
            if name != "penstock" or loads(name):
                found[name] = str(__import__(name).__version__)
        except Exception:  # an import may fail in any way
            pass
    say(**found, end=True)


def answer(q):
    {"steps": steps, "assemble": assemble}[q["what"]](q)


def serve(answer, probe=None):
    """Answers requests, each in a separate process. Standard output goes to
    standard error, so that libraries cannot print into an answer."""
    global OUT
    OUT = os.dup(1)
    os.dup2(2, 1)
    while line := sys.stdin.readline():
        q = json.loads(line)
        if probe and q["what"] == "probe":
            probe(q)
            continue
        pid = os.fork()
        if not pid:
            die_with_parent()
            try:
                answer(q)
            except Exception as e:  # reported in one line
                say(error=f"{type(e).__name__}: {e}"[:180], end=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
                worker.join()
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        if status:
            say(error=f"ended by signal {status & 127}", end=True)


if __name__ == "__main__":
    die_with_parent()
    serve(answer, probe)
