#!/usr/bin/python3
"""Checkpoints against what others make of them.

    check_checkpoint.py layout FILE   cases and their files, recomputed
    check_checkpoint.py zip FILE N..  members and sizes, by zipfile
    check_checkpoint.py load DIR      torch.load of DIR/*.pt, against DIR/want,
                                      there and in all folders below
    check_checkpoint.py both DIR      then torch.save of the same over them
"""
import os
import sys
import zipfile

DTYPES = ["int8", "uint8", "fp16", "bf16", "fp32", "fp64"]


def layer(c, index):
    """Sizes of the tensors of one layer, by the transformer's formula."""
    h, f, tp = c["hidden"], c["ffn"], c["tp"]
    kv = h // c["heads"] * c["kv"]
    shard = c["dp"] if c["zero"] == 3 else 1
    if index in (0, c["layers"] + 1):
        whole = [(h * c["vocab"], tp)]
    elif index == c["layers"] + 2:
        whole = [(h, 1)]
    else:
        whole = [(h, 1), (h * (h + 2 * kv), tp), (h * h, tp), (h, 1),
                 (2 * h * f, tp), (h * f, tp)]
    return [n // by // shard for n, by in whole]


def stage(c, pp_rank):
    """The layers of a pipeline stage."""
    counts = [c["layers"] // c["pp"] + (i < c["layers"] % c["pp"])
              for i in range(c["pp"])]
    first = 1 + sum(counts[:pp_rank])
    out = list(range(first, first + counts[pp_rank]))
    if not c["lp"]:
        if pp_rank == 0:
            out = [0] + out
        if pp_rank == c["pp"] - 1:
            out += [c["layers"] + 1, c["layers"] + 2]
    return out


def tensors(prefix, sizes, dtype, keep_empty=False):
    return [f"{prefix}{i}:{dtype}:{n}" for i, n in enumerate(sizes)
            if n > 0 or keep_empty]


def layer_tensors(c, index, prefix):
    if c["lp"]:
        return [f"{prefix}{i}:int8:{n // c['tp']}"
                for i, n in enumerate(c["lp"]) if n > 0]
    return tensors(prefix, layer(c, index), c["mdt"])


def all_layers(c, mine):
    out = []
    for i, index in enumerate(mine):
        if c["lp"] and i:
            out.append(f"{index}=")
        else:
            out += [f"{index}{{"] + layer_tensors(c, index, "") + ["}"]
    return out


def optimizer(c, parallel):
    if c["og"]:
        out = []
        for i, n in enumerate(c["og"]):
            if n > 0:
                out += [f"{i}{{", f"a:int8:{n}", f"b:int8:{n}", "}"]
        return out + [f"combined:int8:{sum(c['og'])}"]
    if c["layers"] <= 0:
        return []
    h, v, f = c["hidden"], c["vocab"], c["ffn"]
    kv = h // c["heads"] * c["kv"]
    whole = v * h + h + v * h + c["layers"] * (
        h + h * (h + 2 * kv) + h * h + h + 2 * f * h + f * h)
    share = whole // (parallel * (c["dp"] if c["zero"] else 1))
    return tensors("", [share, 5 * h] * 3, c["odt"]) if share else []


def files(c, rank):
    parallel = c["tp"] * c["pp"]
    dp, mp, pp = rank // parallel, rank % parallel, rank // c["tp"] % c["pp"]
    out = []
    if c["zero"] == 0 and rank >= parallel:
        return out
    if c["size"] and not c["transformer"]:
        out.append((f"model_states-{rank}", [f"a:int8:{c['size']}"]))
    mine = stage(c, pp) if c["layers"] > 0 else []
    both = f"zero_pp_rank_{dp}_mp_rank_{mp}"
    if mine and c["zero"] in (0, 3):
        out.append((f"{both}_model_states", all_layers(c, mine)))
    elif mine and dp == 0 and c["pp"] > 1:
        out += [(f"layer_{i}-model_{mp}_model_states",
                 layer_tensors(c, i, "")) for i in mine]
    elif mine and dp == 0:
        out.append((f"model_{mp}_model_states", all_layers(c, mine)))
    states = optimizer(c, parallel)
    if states:
        out.append((f"{both}_optim_states", states))
    return out


def parse_case(words):
    c = {}
    for word in words:
        key, value = word.split("=")
        if key in ("lp", "og"):
            c[key] = [int(x) for x in value.split(",") if x]
        elif key in ("mdt", "odt"):
            c[key] = DTYPES[int(value)]
        else:
            c[key] = int(value)
    return c


def dlio_size(c):
    """What DLIO reports as the size of a checkpoint, in bytes: not what is
    listed, one model of several, and layers of replicas that write none."""
    width = {"int8": 1, "uint8": 1, "fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8}
    parallel = c["tp"] * c["pp"]
    model = optim = 0
    for rank in range(c["world"]):
        if c["zero"] == 0 and rank >= parallel:
            continue
        if c["layers"] > 0 and not c["lp"] and not (
                c["zero"] == 1 and rank // parallel):
            model += sum(n * width[c["mdt"]]
                         for i in stage(c, rank // c["tp"] % c["pp"])
                         for n in layer(c, i))
        if not c["og"]:
            optim += sum(int(t.split(":")[2]) * width[c["odt"]]
                         for t in optimizer(c, parallel))
    if c["size"] and not c["transformer"]:
        model = c["size"]
    return model + optim


def layout(path):
    cases = 0
    with open(path, encoding="ascii") as f:
        lines = f.read().splitlines()
    while lines:
        words = lines.pop(0).split()
        assert words.pop(0) == "case"
        c = parse_case(words)
        cases += 1
        for rank in range(c["world"]):
            for name, items in files(c, rank):
                want = f"{rank} {name}.pt {','.join(items)}"
                got = lines.pop(0)
                assert got == want, f"{c}\n got {got}\nwant {want}"
        assert lines.pop(0) == "end " + str(dlio_size(c)), c
    assert cases > 100, cases


def check_zip(path, sizes):
    with zipfile.ZipFile(path) as z:
        found = {i.filename: i for i in z.infolist()}
        for i, n in enumerate(sizes):
            assert found[f"archive/data/{i}"].file_size == int(n)
        assert z.read("archive/version") == b"3\n"
        assert z.read("archive/byteorder") == b"little"
        assert z.read("archive/data.pkl")[:2] == b"\x80\x02"


def torch_dtype(torch, name):
    return {"int8": torch.int8, "uint8": torch.uint8, "fp16": torch.float16,
            "bf16": torch.bfloat16, "fp32": torch.float32,
            "fp64": torch.float64}[name]


def build(torch, items):
    """The dict that a line of the layout describes, of ones."""
    root, here, first = {}, None, None
    for item in items:
        if item.endswith("{"):
            here = root[str(item[:-1])] = {}
            first = here if first is None else first
        elif item == "}":
            here = None
        elif item.endswith("="):
            root[str(item[:-1])] = first
        else:
            key, dtype, n = item.split(":")
            # numbers as keys are made anew each time, names are constants
            key = sys.intern(key) if key.isalpha() else str(int(key))
            (root if here is None else here)[key] = torch.ones(
                int(n), dtype=torch_dtype(torch, dtype))
    return root


def wanted(root):
    found = 0
    for where, _, names in os.walk(root):
        if "want" not in names:
            continue
        found += 1
        with open(os.path.join(where, "want"), encoding="ascii") as f:
            for line in f:
                name, ones, items = (line.rstrip("\n").split(" ") + [""])[:3]
                yield (os.path.join(where, name), int(ones),
                       [i for i in items.split(",") if i])
    assert found, root


def same(torch, a, b, values):
    assert list(a) == list(b), (list(a), list(b))
    for key in a:
        if isinstance(a[key], dict):
            same(torch, a[key], b[key], values)
            continue
        assert a[key].dtype == b[key].dtype and a[key].shape == b[key].shape
        assert a[key].is_contiguous()
        assert not values or torch.equal(a[key], b[key])


def load(root):
    import io
    import torch
    for path, ones, items in wanted(root):
        want, found = build(torch, items), torch.load(path)
        same(torch, found, want, ones)
        buffer = io.BytesIO()
        torch.save(want, buffer)
        with zipfile.ZipFile(buffer) as a, zipfile.ZipFile(path) as b:
            assert a.read("archive/data.pkl") == b.read("archive/data.pkl")
            assert b.testzip() is None
            for i in b.infolist():
                with open(path, "rb") as f:
                    f.seek(i.header_offset + 26)
                    head = f.read(4)
                at = i.header_offset + 30 + head[0] + 256 * head[1] \
                    + head[2] + 256 * head[3]
                assert at % 64 == 0, (i.filename, at)


def save(root):
    import torch
    for path, _, items in wanted(root):
        with open(path, "wb") as f:
            torch.save(build(torch, items), f)


def main():
    what, rest = sys.argv[1], sys.argv[2:]
    if what == "layout":
        layout(rest[0])
    elif what == "zip":
        check_zip(rest[0], rest[1:])
    elif what == "load":
        load(rest[0])
    elif what == "both":
        load(rest[0])
        save(rest[0])


if __name__ == "__main__":
    main()
