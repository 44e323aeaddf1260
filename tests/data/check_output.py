#!/usr/bin/python3
"""Reads what test_output wrote, as the programs do that such files are for.

usage: check_output.py DIR. Fails with an assertion that names what is wrong.
"""
import datetime
import json
import os
import sys

import numpy as np

top = sys.argv[1]


def unique(pairs):
    d = dict(pairs)
    assert len(d) == len(pairs), f"a key twice in {[k for k, _ in pairs]}"
    return d


def no_nan(x):
    raise AssertionError(f"{x} is not JSON")


def load(*path):
    with open(os.path.join(top, *path), encoding="utf-8") as f:
        return json.load(f, object_pairs_hook=unique, parse_constant=no_nan)


def when(s):
    return datetime.datetime.strptime(s, "%Y-%m-%dT%H:%M:%S.%f")


def close(a, b, rel=1e-6):
    assert abs(a - b) <= rel * abs(b) + 1e-12, (a, b)


def events(where, rank):
    """As a replay of DLIO's test suite counts them."""
    o = load(where, f"{rank}_output.json")
    s = load(where, f"{rank}_per_epoch_stats.json")
    n = dict(fetch_iter=0, compute=0, eval=0, epoch=0, train=0, capture=0,
             restart=0)
    for k, e in o.items():
        if not k.isdigit():
            continue
        n["epoch"] += 1
        for what, name in (("load", "fetch_iter"), ("compute", "compute")):
            n[name] += sum(len(v) for v in e.get(what, {}).values())
        n["eval"] += 1 if "eval" in e.get("load", {}) else 0
    for k, e in s.items():
        if k.isdigit():
            n["train"] += any(b.startswith("block") for b in e)
            n["capture"] += sum(b.startswith("save_ckpt") for b in e)
            n["restart"] += sum(b.startswith("load_ckpt") for b in e)
    return n


def dlio_block(out, stats, key, batch, start=1, end=0):
    """DLIO's formulas, over the lists it keeps."""
    compute, proc = (np.array(out[k][key]) for k in ("compute", "proc"))
    last = len(compute) - 1 - end
    wall = (when(stats[key]["end"]) - when(stats[key]["start"])).total_seconds()
    total = wall - proc[:start].sum() - proc[last + 1:].sum()
    return (100 * compute[start:last + 1].sum() / total,
            (len(compute) - 2) / total * batch)


def check_rank(where, rank):
    out = load(where, f"{rank}_output.json")
    stats = load(where, f"{rank}_per_epoch_stats.json")
    assert list(k for k in out if k.isdigit()) == ["1", "2"]
    for k in ("host_memory_GB", "host_cpu_count", "host_processor_name",
              "potential_caching", "host_cpuinfo", "host_meminfo",
              "hostname"):
        assert k in out, k
    assert out["host_meminfo"]["MemTotal"].endswith(" kB")
    assert "processor" not in out["host_cpuinfo"]
    # hostile text of /proc came through as text
    assert out["1"]["host_meminfo"] == {"MemTotal": "1 kB",
                                        "a ?quoted? key": '"<b>\\'}
    for e in "1", "2":
        for block in (b for b in stats[e] if b.startswith("block")):
            au, rate = dlio_block(out[e], stats[e], block, 4)
            close(out[e]["au"][block], au, 1e-5)
            close(out[e]["dlio_throughput"][block], rate, 1e-5)
            d = stats[e][block]
            assert d["duration"] == "%.2f" % (
                when(d["end"]) - when(d["start"])).total_seconds()
            assert np.allclose(np.array(out[e]["load"][block]) +
                               out[e]["compute"][block],
                               out[e]["proc"][block])
    assert len(out["1"]["load"]["eval"]) == 4
    assert stats["1"]["save_ckpt1"]["duration"] == 2  # no string
    close(stats["1"]["load_ckpt1"]["throughput"], 1.0)
    close(stats["1"]["load_ckpt1"]["dlio_throughput"],
          .5 / stats["1"]["load_ckpt1"]["duration"])
    assert events(where, rank) == dict(fetch_iter=19, compute=19, eval=1,
                                       epoch=2, train=2, capture=1, restart=1)


def check_summary(where, accelerators, hosts):
    s = load(where, "summary.json")
    # what mlpstorage takes from it
    assert s["num_hosts"] == hosts and s["num_accelerators"] == accelerators
    for memory, cpus in zip(s["host_memory_GB"], s["host_cpu_count"]):
        assert memory > 0.1 and cpus >= 1
    assert len(s["host_memory_GB"]) == len(s["host_cpu_count"]) == hosts
    assert when(s["start"]) < when(s["end"])
    m = s["metric"]
    for split, runs in ("train", 2), ("eval", 1):
        for what, unit in (("au", "percentage"),
                           ("throughput", "samples_per_second")):
            v = m[f"{split}_{what}_{unit}"]
            assert len(v) == runs
            close(m[f"{split}_{what}_mean_{unit}"], np.mean(v))
            close(m[f"{split}_{what}_stdev_{unit}"], np.std(v))
        assert m[f"{split}_au_meet_expectation"] == "fail"
        # a record of 1 MiB, whatever of it is delivered or read
        for stat in "mean", "stdev":
            close(m[f"{split}_io_{stat}_MB_per_second"],
                  m[f"{split}_throughput_{stat}_samples_per_second"])
            assert f"{split}_delivered_{stat}_MB_per_second" in m
    # 4000 bytes are read for 20 samples of every accelerator of a rank
    assert 0 < m["train_read_mean_MB_per_second"] < \
        .01 * m["train_io_mean_MB_per_second"]
    assert m["eval_read_mean_MB_per_second"] == 0
    close(m["dlio_train_throughput_mean_samples_per_second"],
          np.mean(m["dlio_train_throughput_samples_per_second"]))
    for what in "save", "load":
        for key in ("io_mean_GB_per_second", "io_stdev_GB_per_second",
                    "duration_mean_seconds", "duration_stdev_seconds"):
            assert f"{what}_checkpoint_{key}" in m
            assert f"dlio_{what}_checkpoint_{key}" in m
    close(m["checkpoint_size_GB"], .5)  # as DLIO counts
    close(m["checkpoint_written_GB"], 1 if hosts == 1 else 3)
    assert s["potential_caching"] == [1] * hosts
    assert s["epochs"] == 2 and s["num_files_train"] == 64
    assert s["num_samples_per_file"] == 1 and s["num_files_eval"] == 8
    assert s["host_cpuinfo"] and s["host_meminfo"] and s["hostname"]
    close(s["data_size_per_host_GB"] * 1024,
          64 if hosts == 1 else 64 // 2)


def check_result(where, accelerators, ranks, hosts):
    r = load(where, "result.json")
    assert r["schema"] == "penstock.result/1" and r["version"]
    assert r["start_unix"] == 1763239746.5 and r["end_unix"] == 1763239946.25
    assert when(r["start"]).microsecond == 500000
    assert r["accelerators"] == accelerators and not r["partial"]
    assert len(r["epochs"]) == 2 and len(r["evaluations"]) == 1
    assert len(r["ranks"]) == ranks and len(r["hosts"]) == hosts
    assert sum(h["accelerators"] for h in r["hosts"]) == accelerators
    assert [x["rank"] for x in r["ranks"]] == list(range(ranks))
    close(r["totals"]["au"]["mean"], np.mean([e["au"] for e in r["epochs"]]))
    assert r["totals"]["samples"] == sum(e["samples"] for e in r["epochs"])
    h = r["histograms"]["wait"]
    assert h["count"] == sum(n for _, n in h["buckets"]) == 1000 * ranks
    assert h["max_ns"] == 1000000 and h["buckets"][-1][0] >= 1000000
    assert abs(h["p50_ns"] / 500000 - 1) < .01
    series = r["series"]
    assert series["steps"] == 15 and len(series["t"]) == 15
    assert series["t"] == sorted(series["t"])
    assert all(0 <= a <= 100 for a in series["au"])
    close(series["load_max_s"][0], 1)
    assert [c["number"] for c in r["checkpoints"]["saves"]] == [1]
    assert r["stages"]["read_ns"] == 240 * ranks
    assert r["verdict"].startswith("Fed ")
    why = r["why"]
    assert why["cause"] and why["what"] in r["verdict"]
    close(why["figures"]["read_s"], 240e-9 * ranks)
    close(why["figures"]["seconds"], sum(x["train_s"] for x in r["ranks"]))
    names = {s["key"]: s["value"] for s in r["settings"]}
    assert names["model.name"] == 'a "b" <script>\\ \n\x01 é'
    assert r["overrides"] == ['++workload.x="1"', "workload=y"]
    assert "reader" in r["config"]
    assert r["loader"]["store_reason"] == 'because "of" <this>'
    # no markup gets out raw: the file may be put into a page
    with open(os.path.join(top, where, "result.json"),
              encoding="utf-8") as f:
        assert "<" not in f.read()
    if where == "one":
        w = r["watch"]
        assert w["samples"] and w["samples"][-1]["t"] <= w["seconds"] + 1e-6
        assert {"name", "reads", "read_bytes"} <= set(w["disks"][0])


def check_nesting(where, rank, tracks):
    ev = load(where, f"trace-{rank}.json")
    x = [e for e in ev if e["ph"] == "X"]
    kinds = {(e["cat"], e["name"]) for e in x}
    assert kinds == {("pipeline", "train"), ("pipeline", "evaluate"),
                     ("dataloader", "fetch.iter"), ("compute", "compute"),
                     ("checkpoint", "capture"), ("checkpoint", "restart")}
    assert {e["pid"] for e in x} == {rank}
    assert {e["tid"] for e in x} == tracks
    for t in tracks:
        stack, last = [], 0
        for e in (e for e in x if e["tid"] == t):
            ts = round(e["ts"] * 1000)
            end = ts + round(e["dur"] * 1000)
            assert ts >= last, "out of order"
            last = ts
            while stack and stack[-1] <= ts:
                stack.pop()
            assert not stack or end <= stack[-1], "overlap"
            if end > ts:
                stack.append(end)


def check_big():
    """More steps than events: cut down evenly, and said so."""
    n, steps = 0, []
    with open(os.path.join(top, "big.json"), encoding="utf-8") as f:
        assert f.readline() == "[\n"
        meta = json.loads(f.readline().rstrip(",\n"))
        assert meta["args"]["note"].startswith("499999 of 600000 steps")
        for line in f:
            n += 1
            if n % 50000 == 2:
                steps.append(json.loads(line.rstrip(",\n"))["args"])
    assert n == 1 + 1000000 - 1 + 1, n  # a track's name, events, ']'
    steps = [s["step"] for s in steps if "step" in s]
    assert len(steps) >= 19
    assert np.allclose(np.diff(steps), 30000, atol=3), steps


def check_log():
    with open(os.path.join(top, "dlio.log"), encoding="utf-8") as f:
        lines = f.read().split("\n")
    assert lines[0].startswith("[OUTPUT] ")
    assert lines[0].endswith(" Starting epoch 1: 16 steps expected")
    when(lines[0].split()[1])
    assert lines[1].startswith("[WARNING] ")
    assert lines[1].endswith(" one line  only"), lines[1]
    assert lines[2] == "[OUTPUT] Averaged metric over all steps/epochs"
    assert lines[3] == "[METRIC] " + 58 * "="
    assert lines[4] == "[METRIC] Number of Simulated Accelerators: 2 "
    assert lines[5] == "[METRIC] Training Accelerator Utilization [AU] (%): " \
        "63.5417 (1.0417)"
    labels = [x.split(": ")[0] for x in lines[6:-2]]
    assert labels == ["[METRIC] " + x for x in (
        "Training Throughput (samples/second)",
        "Training I/O Throughput (MB/second)",
        "Training Bytes Read (MB/second)", "train_au_meet_expectation",
        "Checkpoint save duration (seconds)",
        "Checkpoint save I/O Throughput (GB/second)",
        "Checkpoint load duration (seconds)",
        "Checkpoint load I/O Throughput (GB/second)",
        "Eval Accelerator Utilization [AU] (%)",
        "Eval Throughput (samples/second)", "Eval Throughput (MB/second)",
        "Eval Bytes Read (MB/second)", "eval_au_meet_expectation")], labels
    assert lines[-2:] == ["[METRIC] " + 58 * "=", ""]


for rank in 0, 1:
    check_rank("one", rank)
for rank in range(6):
    check_rank("three", rank)
check_summary("one", 2, 1)
check_summary("three", 6, 2)
check_result("one", 2, 1, 1)
check_result("three", 6, 3, 2)
check_nesting("one", 0, {0, 1})
check_nesting("three", 2, {3, 4, 5})
check_log()
check_big()
# checkpoints only: one epoch, nothing loaded in it
assert events("checkpoints", 0) == dict(fetch_iter=0, compute=0, eval=0,
                                        epoch=1, train=0, capture=2, restart=1)
assert load("checkpoints", "summary.json")["epochs"] == 0
assert set(load("checkpoints", "0_output.json")["1"]["load"]) == set()
assert "train_au_percentage" not in load("checkpoints",
                                         "summary.json")["metric"]
# nothing at all
assert events("nothing", 0)["epoch"] == 0
print("all well")
