#!/bin/sh
# penstock simulate: from measured files to a table and JSON, every assumption
# said; and one line for what cannot be.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export XDG_CACHE_HOME="$dir/cache"

fail() {
	echo "failed: $*" >&2
	exit 1
}

# code, words in the message, arguments
wrong() {
	code=$1 words=$2
	shift 2
	rc=0
	"$PENSTOCK" simulate "$@" > out 2> err || rc=$?
	[ $rc -eq "$code" ] || fail "simulate $*: exit code $rc: $(cat err)"
	[ "$(wc -l < err)" -eq 1 ] || fail "simulate $*: $(cat err)"
	grep -q "$words" err || fail "simulate $*: $(cat err)"
	[ ! -s out ] || fail "simulate $*: printed $(cat out)"
}

"$PENSTOCK" simulate --help | grep -q 'storage=200GB/s,1ms' || fail help

# closed form: 1 GB/s for 16 ranks x 10 batches of 7 x 10 MB, 1.12 s a step
job="steps=10 sample_bytes=10MB batch=7 compute=1ms storage=1GB/s cpu_load=1us"
"$PENSTOCK" simulate $job nodes=2 client=none --json > s.json
/usr/bin/python3 - << 'EOF'
import json
d = json.load(open("s.json"))
assert d["schema"] == "penstock.simulate/1"
row, = d["rows"]
first = row["first"]
assert row["accelerators"] == 16 and row["batches"] == 16 * 10 * 2
assert abs(row["seconds"] - 2 * 11.2) < 0.01, row["seconds"]
assert first["limit"] == "storage" and first["busy"]["storage"] > 0.99
assert first["samples"] == 16 * 10 * 7
assert abs(sum(first[k] for k in ("utilisation", "wait_data", "wait_slowest",
                                  "wait_sync")) - 1) < 1e-6
s = d["settings"]
assert s["storage"]["from"] == "given" and s["ranks"]["from"] == "assumed"
EOF
"$PENSTOCK" simulate $job nodes=2 client=none --json > again.json
cmp s.json again.json || fail "not the same again"

# a workload, and settings of it by their names
"$PENSTOCK" simulate unet3d_h100 steps=5 nodes=1,16 reader.read_threads=2 \
	cache=ddict > text
grep -q 'loader *2 threads (unet3d_h100)' text || fail "$(cat text)"
grep -q '(assumed)' text || fail "$(cat text)"
grep -q 'accelerators compute' text || fail "$(cat text)"
# a cluster too large for the data is said, beside one that is not
"$PENSTOCK" simulate unet3d_h100 nodes=1,64 | grep -q 'less than one full' ||
	fail "no full step"

# what was measured
"$PENSTOCK" gen data samples=8 files=8 shape=64x64 > /dev/null
"$PENSTOCK" load data batch_size=4 threads=2 -o load.json --quiet > /dev/null
"$PENSTOCK" ddict bench values=256 size=4KiB batch=16 time=5ms --json \
	> ddict.json
"$PENSTOCK" simulate compute=5ms nodes=1 samples=6400 cache=ddict \
	--from load.json --from ddict.json --json > m.json
/usr/bin/python3 - << 'EOF'
import json
d, load = json.load(open("m.json")), json.load(open("load.json"))
s = d["settings"]
for k in ("cpu_load", "batch", "threads", "ahead", "sample_bytes"):
    assert s[k]["from"] == "load.json", k
for k in ("cpu_put", "cpu_hit"):
    assert s[k]["from"] == "ddict.json", k
assert s["cpu_ask"]["from"] == "assumed"
each = load["cpu_s"] / load["samples"]
assert abs(s["cpu_load"]["value"] - each) < 1e-3 * each + 1e-9
assert s["batch"]["value"] == 4 and s["threads"]["value"] == 2
EOF

# between machines: half of it was at home, and 1 us of that is known
cat > wire.json << 'EOF'
{"schema": "penstock.ddict.bench/1", "ranks": 2, "size": 4096,
 "transport": "tcp: fast", "ways": [
 {"name": "put_many", "cpu_seconds_each": 1e-6},
 {"name": "get_many, copied", "cpu_seconds_each": 1e-6},
 {"name": "get_many, ahead, copied", "cpu_seconds_each": 5.5e-6}]}
EOF
"$PENSTOCK" simulate compute=5ms nodes=2 steps=9 sample_bytes=4096 batch=8 \
	cache=ddict cpu_hit=1us --from wire.json --json > w.json
/usr/bin/python3 - << 'EOF'
import json
s = json.load(open("w.json"))["settings"]
assert s["cpu_hit"]["value"] == 1e-6 and s["cpu_hit"]["from"] == "given"
assert abs(s["cpu_serve"]["value"] - 5e-6) < 1e-8, s["cpu_serve"]
assert s["cpu_serve"] == s["cpu_ask"]
EOF

# ranks of two machines, with what is on a machine in its shared memory: what
# is at home is as much as there are machines
sed 's/"ranks": 2/"ranks": 4, "machines": 2/; s/tcp: fast/shared memory on a machine, between them tcp/' \
	wire.json > hosts.json
"$PENSTOCK" simulate compute=5ms nodes=2 steps=9 sample_bytes=4096 batch=8 \
	cache=ddict cpu_hit=1us --from hosts.json --json > h.json
cmp w.json h.json > /dev/null || {
	sed 's/hosts.json/wire.json/' h.json | cmp w.json - || fail "two machines"
}

echo '{"schema": "penstock.load/1", "samples": 0}' > none.json
/usr/bin/python3 - << 'EOT'
import json
load, ddict = json.load(open("load.json")), json.load(open("ddict.json"))


def save(name, doc, **new):
    doc = {k: v for k, v in {**doc, **new}.items() if v is not None}
    json.dump(doc, open(name, "w"))


save("old.json", load, cpu_s=None)
save("negative.json", load, samples=-4)
save("absurd.json", load, batches=1e100)
save("text.json", load, seconds="long")
save("newer.json", load, schema="penstock.load/2")
save("newer_ddict.json", ddict, schema="penstock.ddict.bench/7")
save("hits.json", load, cache={"hits": 5})
save("half.json", ddict, ways=ddict["ways"][:2])
save("size.json", ddict, size=-1)
EOT
head -c 200 load.json > cut.json
echo '{"schema": "penstock.result/1"}' > result.json
echo '{"schema": "penstock.capacity/1"}' > other.json
wrong 2 'no workload given' nodes=1
wrong 2 'nodes=0' unet3d_h100 nodes=0
wrong 2 'write a bandwidth' unet3d_h100 network=fast
wrong 2 'write a bandwidth' unet3d_h100 storage=1GB/s,soon
wrong 2 'out of range' unet3d_h100 ranks=0
wrong 2 'at most' unet3d_h100 nodes=1000000 ranks=64 steps=1
wrong 2 'simulate fewer' unet3d_h100 steps=1e9
wrong 2 'steps=N' unet3d_h100 samples=1
wrong 2 'none.json: samples is 0' unet3d_h100 --from none.json
wrong 2 'old.json: cpu_s is missing' unet3d_h100 --from old.json
wrong 2 'seconds is missing' unet3d_h100 --from text.json
wrong 2 'samples is -4' unet3d_h100 --from negative.json
wrong 2 'batches is 1e+100' unet3d_h100 --from absurd.json
wrong 2 'penstock.load/2.*reads penstock.load/1' unet3d_h100 --from newer.json
wrong 2 'reads penstock.ddict.bench/1' unet3d_h100 --from newer_ddict.json
wrong 2 'without cache=' unet3d_h100 --from hits.json
wrong 2 'are missing; measure' unet3d_h100 --from half.json
wrong 2 'size is -1' unet3d_h100 --from size.json
wrong 2 'result of .penstock run' unet3d_h100 --from result.json
wrong 3 'cut.json' unet3d_h100 --from cut.json
wrong 2 'no workload given' steps=9 sample_bytes=1MB batch=8
wrong 2 'write a bandwidth' unet3d_h100 client=1GB/s,1ms
wrong 2 'write a bandwidth' unet3d_h100 copy=-1GB/s
wrong 2 'write a bandwidth' unet3d_h100 network=0
wrong 2 compute unet3d_h100 compute=-1ms
wrong 2 'out of range' unet3d_h100 depth=0
wrong 2 'out of range' unet3d_h100 spread=0.5
wrong 2 memory unet3d_h100 memory=-5
wrong 4 'gone.json' unet3d_h100 --from gone.json

# data that is measured first: the prediction for this machine is what was
# measured, whatever the data grows to
"$PENSTOCK" gen sixty files=60 shape=64x64 > /dev/null
slow="store=fault store.delay=10ms threads=2 batch_size=4 seconds=3"
"$PENSTOCK" simulate sixty data=1GB $slow --json > m.json || fail "measured"
"$PENSTOCK" simulate sixty data=1GB $slow nodes=1,2 ranks=3 > text
/usr/bin/python3 - << 'EOT' || fail "$(cat m.json)"
import json, os
d = json.load(open("m.json"))
m, row, = d["measured"], d["rows"][0]
assert len(d["rows"]) == 1 and row["accelerators"] == 1, d["rows"]
each = sum(os.path.getsize(f"sixty/{f}") for f in os.listdir("sixty")) / 60
assert abs(m["stored_sample_bytes"] - each) < 1, m
n = d["settings"]["samples"]["value"]
assert abs(n - 1e9 / each) < 2, n
rates = [p["samples_per_s"] for p in m["parts"]]
assert len(rates) == 3 and rates == sorted(rates) and m["storage"], m
took = n / rates[1]
assert 0.8 * took < row["first"]["seconds"] < 1.3 * took, (took, row)
assert row["first_low_s"] <= row["first"]["seconds"] <= row["first_high_s"]
assert d["settings"]["compute"]["from"] == "assumed"
assert d["settings"]["threads"]["from"] == "given"
EOT
grep -q 'An epoch over 1.00 GB on 2 nodes with 3 ranks takes' text ||
	fail "$(cat text)"
grep -q '(measured)' text && grep -q 'extrapolated' text || fail "$(cat text)"
# memory is not sold as storage
wrong 2 'nothing was read' sixty store=ram
wrong 2 'conflicts with samples=' sixty data=1GB samples=5
wrong 2 'data=1 B is less than one sample' sixty data=1 storage=1GB/s
wrong 2 'subset=' sixty subset=0:3
wrong 2 'without data to' unet3d_h100 seconds=5
wrong 4 'nowhere/x' nowhere/x data=1GB
wrong 2 "did you mean 'batch_size'" sixty bach_size=3
if [ "$(stat -f -c %T /dev/shm)" = tmpfs ] && [ -w /dev/shm ]; then
	shm=$(mktemp -d /dev/shm/pen-simulate.XXXXXX)
	cp -r sixty "$shm/"
	wrong 2 'came from memory' "$shm/sixty" seconds=1
	"$PENSTOCK" simulate "$shm/sixty" seconds=1 storage=1GB/s,1ms > text
	grep -q 'storage was not measured' text || fail "$(cat text)"
	rm -r "$shm"
fi
rc=0
"$PENSTOCK" simulate unet3d_h100 --from other.json 2> err && rc=1
[ $rc -eq 0 ] && grep -q other.json err || fail "other.json was taken"
echo ok
