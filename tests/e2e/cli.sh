#!/bin/bash
# The command itself: help of everything, JSON that is JSON, a man page that
# parses, exit codes, and Ctrl-C.
set -euo pipefail
penstock=${PENSTOCK:?the command}
python=/usr/bin/python3
[ -x "$python" ] || {
	echo "skipped: no Python to read JSON with"
	exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
cd "$dir"

fail() {
	echo "failed: $*" >&2
	exit 1
}

json() { "$python" -m json.tool >/dev/null; }

# help
"$penstock" --help >help || fail "--help"
code=0
"$penstock" >out || code=$?
[ $code = 2 ] || fail "without arguments: exit $code"
"$penstock" --version | grep -qE '^penstock [0-9]+\.[0-9]+' || fail "--version"
commands=$(sed -n 's/^  \([a-z]\{3,\}\)   *[a-z].*/\1/p' help)
[ "$(echo "$commands" | wc -w)" -ge 7 ] || fail "commands: $commands"
for c in $commands; do
	"$penstock" "$c" --help >out 2>err || fail "$c --help"
	[ -s out ] && [ ! -s err ] || fail "$c --help says nothing"
	grep -q "penstock $c" out || fail "$c --help has no usage"
	[ "$(expand out | awk 'length > 80' | wc -l)" = 0 ] ||
		fail "$c --help is wider than 80 columns"
	"$penstock" help "$c" | cmp -s - out || fail "help $c differs"
done

# man page
"$penstock" --man >penstock.1
[ "$(wc -l <penstock.1)" -gt 50 ] || fail "--man is short"
if command -v man >/dev/null; then
	MANWIDTH=80 man --warnings -l penstock.1 >out 2>err || fail "man -l"
	[ ! -s err ] || fail "man warns: $(head -n1 err)"
	grep -q batch_size out || fail "the man page has no settings"
else
	skipped="man is not installed"
fi
# exit codes: the same in the help and in the man page
for code in 0 1 2 3 4 5 130; do
	grep -qE "^ +$code  [a-z]" help || fail "--help has no exit code $code"
	grep -qF "\\fB$code\\fR" penstock.1 || fail "no exit code $code in man"
done

# errors by number
"$penstock" explain >list || fail "explain"
grep -q '^P101: ' list || fail "explain lists no P101"
for number in P101 p101 101; do
	"$penstock" explain $number >out || fail "explain $number"
	grep -q '^P101: ' out && [ "$(wc -l <out)" -ge 3 ] ||
		fail "explain $number: $(cat out)"
	[ "$(awk 'length > 80' out | wc -l)" = 0 ] || fail "explain is wide"
done
code=0
"$penstock" explain P10x 2>err || code=$?
[ $code = 2 ] && grep -q "did you mean 'P10" err || fail "explain P10x: $code"

# with --json an error is a document, too, and the only one
error() {
	local number=$1 want=$2 code=0
	shift 2
	"$penstock" "$@" >out 2>err || code=$?
	[ $code = "$want" ] || fail "$*: exit $code"
	grep -qF "[$number]" err || fail "$*: $(cat err)"
	"$python" -c '
import json, sys
d = json.load(open("out"))
e = d["error"]
assert d["schema"] == "penstock.error/1", d
assert e["code"] == sys.argv[1] and e["exit"] == int(sys.argv[2]), e
where = e["where"] + ": " if e["where"] else ""
line = "penstock: " + where + e["message"] + " [" + e["code"] + "]\n"
assert open("err").read() == line, (line, open("err").read())
' "$number" "$want" || fail "$*: $(cat out)"
}
error P101 4 load nowhere --json
error P101 4 inspect nowhere --json
error P101 4 verify --json nowhere
error P001 2 load . --json --jsn
error P001 2 inspect . bach_size=3 --json
error P004 2 run --json
error P004 2 capacity --json
error P001 2 doctor x=1 --json
error P004 2 compare --json
error P004 2 tune --json
error P004 2 simulate --json
error P101 4 bench prefetch nowhere --json

# the machine: every finding has a verdict, and what is to be changed a reason
"$penstock" doctor . --json >doctor.json || fail "doctor"
"$python" - doctor.json <<'END' || fail "doctor --json"
import json, sys
found = json.load(open(sys.argv[1]))["findings"]
assert {"cpus", "memory", "io_uring", "file system", "space"} <= {f["part"] for f in found}
for f in found:
    assert f["verdict"] in ("ok", "note", "better", "broken") and f["is"], f
    assert "why" in f or "change" not in f, f
END
code=0
"$penstock" doctor nowhere >out || code=$?
[ $code = 1 ] && grep -q "^broken.*nowhere" out || fail "doctor nowhere: $code"

# results
"$penstock" gen d files=64 shape=16 --json | json || fail "gen --json"
"$penstock" load d --json | json || fail "load --json"
"$penstock" load d epochs=3 --batches 3 --json -o r.json >out
json <out || fail "load --json with -o"
json <r.json || fail "-o is no JSON"
"$python" - <<'PY' || fail "figures in the result"
import json
r = json.load(open("r.json"))
assert r["schema"] == "penstock.load/1" and not r["partial"]
assert r["batches"] == 3 and r["samples"] == 64 + 32, r
assert r["data"]["samples"] == 64 and r["data"]["objects"] == 64
assert sum(e["samples"] for e in r["epochs"]) == r["samples"]
assert 0 < sum(e["cpu_s"] for e in r["epochs"]) <= r["cpu_s"] + 1e-6
assert r["payload_bytes"] == r["samples"] * 64, r["payload_bytes"]
assert r["read_bytes"] >= r["payload_bytes"] and r["errors"] == []
PY
# paths are taken in the order given: the first sample is of the first path
"$penstock" gen one.npy samples=8 shape=4 seed=1 >/dev/null
"$penstock" gen two.npy samples=8 shape=4 seed=2 >/dev/null
first() {
	"$penstock" load "$@" format.samples=file subset=0:1 --checksum --json |
		grep '"checksum"'
}
[ "$(first two.npy one.npy)" = "$(first two.npy)" ] || fail "order of paths"
[ "$(first one.npy two.npy)" = "$(first one.npy)" ] || fail "order of paths"
[ "$(first one.npy)" != "$(first two.npy)" ] || fail "two files are one"

"$penstock" inspect d --json | json || fail "inspect --json"
"$penstock" verify d --json | json || fail "verify --json"
for c in formats decoders stores samplers; do
	"$penstock" $c >out || fail "$c"
	[ -s out ] || fail "$c says nothing"
done
# names that JSON has to quote
mkdir 'a"b\c'
cp d/*_of_64.npy 'a"b\c/'
"$penstock" load ./'a"b\c' --json | json || fail "JSON of an odd name"
"$penstock" load d on_error=skip store=fault store.fail_every=5 --json >out
json <out || fail "JSON with errors"
[ "$(grep -c '"code": *"P40' out)" -ge 1 ] || fail "errors have no code"

# Ctrl-C: figures so far, marked as such; it is running once it has read
interrupt() {
	local signal=$1 want=$2 pid code=0
	rm -f part.json
	"$penstock" load d epochs=0 --json -o part.json >out 2>err &
	pid=$!
	while kill -0 $pid 2>/dev/null &&
		! grep -q 'pen-worker' /proc/$pid/task/*/comm 2>/dev/null; do
		:
	done
	kill -s "$signal" $pid
	wait $pid || code=$?
	[ $code = "$want" ] || fail "SIG$signal: exit $code, not $want"
	json <part.json || fail "SIG$signal: the result is no JSON"
	json <out || fail "SIG$signal: the output is no JSON"
	grep -q '"partial": *true' part.json || fail "SIG$signal: not partial"
}
# a job of a script without job control ignores SIGINT unless it is reset
set -m
interrupt INT 130
interrupt TERM 143
[ -z "${skipped:-}" ] || {
	echo "skipped: $skipped"
	exit 77
}
echo "cli: ok"
