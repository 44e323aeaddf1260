"""Sequences to numbers: penstock, and loops in plain C over the same file."""
import os
import shutil

from tools import Missing, rate, run_json


def vocabulary(tools, path):
    """The command that makes it, and where."""
    out = os.path.join(tools.scratch.name, "words.txt")
    return [tools.penstock_path, "vocab", path, "format=lines", "pads=true",
            "-o", out, "--json"], out


def tokens(tools, work, path):
    how = work.more["how"]
    settings = ["format=lines", f"format.tokens={how}"]
    if how == "dm":
        command, out = vocabulary(tools, path)
        run_json(command)
        settings.append(f"format.vocab={out}")
    listed = tools.write_list([(0, work.data.bytes(path), 0, path)])

    def limit(threads):
        return lambda: rate(tools.limits("tokens", how, path, work.batch,
                                         threads, tools.seconds))

    def penstock(threads):
        def measure():
            samples, seconds, _ = tools.load(
                work.data.n, path, f"batch_size={work.batch}", "shuffle=true",
                f"threads={threads}", *settings)
            return samples / seconds
        return measure

    t = tools.threads
    out = {"penstock": penstock(t), "limit": limit(t)}
    if t > 1:
        out.update({"penstock_1t": penstock(1), "limit_1t": limit(1)})
    return "samples/s", out, lambda: tools.limits("warm", listed)


def vocab(tools, work, path):
    """From opening the data, index and all, to the finished file."""
    command, _ = vocabulary(tools, path)
    listed = tools.write_list([(0, work.data.bytes(path), 0, path)])

    def penstock():
        r = run_json([*command, "index_cache=off"])
        return r["sequences"] / r["seconds"]

    def limit(threads):
        return lambda: rate(tools.limits("tokens", "vocab", path, work.batch,
                                         threads, tools.seconds))

    return "samples/s", {"penstock": penstock,
                         "limit": limit(tools.threads)}, \
        lambda: tools.limits("warm", listed)


def doc2vec(tools, work, path):
    """Steps of a model over batches that the loader makes meanwhile."""
    command, out = vocabulary(tools, path)
    run_json(command)
    listed = tools.write_list([(0, work.data.bytes(path), 0, path)])
    program = os.path.join(tools.build, "examples", "doc2vec")

    def penstock(update, steps):
        def measure():
            r = run_json([program, path, f"format.vocab={out}",
                          f"batch_size={work.batch}", "--update", update,
                          "--steps", str(steps // work.batch), "--json"])
            e = r["epochs"][0]
            return e["samples"] / e["seconds"]
        return measure

    return "samples/s", {"penstock": penstock("sparse", 8192),
                         "penstock_dense": penstock("adam", 256)}, \
        lambda: tools.limits("warm", listed)


def dictionary(tools, work, path):
    """Files a second into a dictionary of 4 ranks, without an index and with
    one from before, beside 4 processes that only read and copy."""
    if not shutil.which("mpirun"):
        raise Missing("mpirun is not here")
    cache = os.path.join(tools.scratch.name, "index")

    def penstock(keep):
        def measure():
            if not keep:
                shutil.rmtree(cache, ignore_errors=True)
            r = run_json(["mpirun", "--allow-run-as-root", "--oversubscribe",
                          "-n", "4", tools.penstock_path, "ddict", "load",
                          path, "format=lines", f"index_cache={cache}",
                          "--json"])
            return 1 / r["seconds"]
        return measure

    return "files/s", {
        "penstock": penstock(False), "penstock_indexed": penstock(True),
        "limit": lambda: rate(tools.limits("place", path, 4, tools.seconds))
    }, None


KINDS = {"ddict_load": dictionary, "tokens": tokens,
         "tokens_model": doc2vec, "tokens_vocab": vocab}
