#!/bin/bash
# `config` and `workloads`: Penstock and PyYAML can read the output back;
# arguments may have the forms of DLIO; mistakes cause one line.
set -euo pipefail
penstock=${PENSTOCK:?the command}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
	echo "failed: $*" >&2
	[ ! -s err ] || cat err >&2
	exit 1
}

# expect CODE TEXT COMMAND...: expects the exit code and one line with TEXT on
# stderr
expect() {
	local want=$1 text=$2 code=0
	shift 2
	"$penstock" "$@" >out 2>err || code=$?
	[ $code = "$want" ] || fail "$*: exit $code, not $want"
	[ "$(wc -l <err)" = 1 ] || fail "$*: not one line on stderr"
	grep -qF -- "$text" err || fail "$*: says nothing of '$text'"
}

# has TEXT COMMAND...: succeeds, prints TEXT and nothing on stderr
has() {
	local text=$1
	shift
	"$penstock" "$@" >out 2>err || fail "$*"
	[ ! -s err ] || fail "$*: says something"
	grep -qF -- "$text" out || fail "$*: no '$text'"
}

has "unet3d_h100" workloads
"$penstock" workloads --json >list.json
/usr/bin/python3 -c '
import json
rows = json.load(open("list.json"))
by = {r["name"]: r for r in rows}
assert len(by) == len(rows) >= 48
assert by["unet3d_h100"]["files"] == 168
assert by["unet3d_h100"]["batch_size"] == 7
assert 104 < by["llama3_8b"]["checkpoint_bytes"] / 2**30 < 106
' || fail "workloads --json"

has "# built in: unet3d_h100:" config unet3d_h100
has "epochs: 3  # argument" config workload=unet3d_h100 \
	++workload.train.epochs=3
has "epochs: 3" config unet3d_h100 train.epochs=3 --no-origins
cp out back.yaml
has "epochs: 3" config back.yaml --no-origins
cmp -s out back.yaml || fail "what is printed does not read back"
has '"epochs": 3' config back.yaml --json
/usr/bin/python3 -m json.tool out >/dev/null || fail "--json is none"
if /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
	/usr/bin/python3 -c '
import yaml
c = yaml.safe_load(open("back.yaml"))
assert c["train"]["epochs"] == 3 and c["workflow"]["train"] is True
assert c["reader"]["file_shuffle"] == "seed"
' || fail "PyYAML reads something else"
fi
has "npz" config unet3d_h100 workflow.query=dataset.format
[ "$(cat out)" = npz ] || fail "a query prints the value only"

mkdir -p conf/workload
echo 'dataset: {format: hdf5}' >conf/workload/mine.yaml
has "hdf5  # conf/workload/mine.yaml:1:11" config mine --config-dir=conf
has "format: npz" config default --config-dir conf

expect 2 "did you mean dataset.num_files_train?" \
	config default dataset.num_file_train=3
expect 2 "did you mean unet3d_h100?" config unet3d_h10
expect 2 "no workload given" config
expect 2 "takes one workload" config default unet3d_h100
expect 2 "specified twice" config default workload=unet3d_h100
expect 3 "object stores (s3) are not supported" config default storage.storage_type=s3
expect 4 "No such file" config no/such.yaml
expect 0 "unknown key train.foo is ignored" config default train.foo=1 --lenient
printf 'dataset:\n\tformat: npz\n' >tab.yaml
expect 2 "tab.yaml:2:1: this line is indented with a tab" config tab.yaml
expect 2 "takes no" workloads x
echo "all as expected"
