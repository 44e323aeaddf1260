#!/bin/bash
# Edge cases of run, capacity and dlio_benchmark: argument forms of DLIO,
# searches that end immediately, empty plans, output that cannot be written, an
# interrupted run.
set -euo pipefail
penstock=${PENSTOCK:?the command}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
ln -s "$(realpath "$penstock")" dlio_benchmark

fail() {
	echo "failed: $*" >&2
	[ ! -s err ] || cat err >&2
	exit 1
}

# expect CODE TEXT COMMAND...: expects the exit code, and TEXT in the output
expect() {
	local want=$1 text=$2 code=0
	shift 2
	"$@" >out 2>err || code=$?
	[ $code = "$want" ] || fail "$*: exit $code, not $want"
	grep -qF -- "$text" out err || fail "$*: says nothing of '$text'"
}

# DLIO's command line
mkdir -p cf/workload
cat >cf/workload/mine.yaml <<-YAML
	model: {name: mine}
	reader: {batch_size: 3}
YAML
dlio=./dlio_benchmark
expect 0 "usage: dlio_benchmark" $dlio --help
expect 0 "penstock" $dlio --version
for at in --config-dir=cf "--config-dir cf" "-cd cf" -cd=cf; do
	for how in "--cfg job" --cfg=job "-c job"; do
		# shellcheck disable=SC2086
		expect 0 "batch_size: 3" $dlio workload=mine $at $how
	done
done
/usr/bin/python3 -c '
import yaml
assert yaml.safe_load(open("out"))["workload"]["reader"]["batch_size"] == 3'
expect 2 "unknown flag '--wat'" $dlio --wat
expect 2 "needs DIR" $dlio workload=mine --config-dir
expect 0 "3" $dlio workload=mine --config-dir=cf \
	++workload.workflow.query=reader.batch_size

# searches
quick="--seconds 0.05 --repeats 1"
small="train.computation_time=0.001 dataset.num_files_train=24"
# shellcheck disable=SC2086
search() {
	local code=$1 text=$2
	shift 2
	expect "$code" "$text" "$penstock" capacity default_small $quick \
		$small "$@"
}
search 0 "not tried: --max" --max 1 metric.au=0.0001
search 0 "too small for more" metric.au=0.0001
grep -qE "feed 6 " out || fail "24 files, batches of 4: six can be tried"
search 0 "cannot feed one" loader.store=fault loader.store.delay=20ms
search 2 "fewer than one batch" reader.batch_size=25
search 2 "even one" loader.memory=1
search 2 "computing time is 0" train.computation_time=0
search 2 "--seconds" --seconds inf
search 2 "--max" --max 1e9
search 0 "feed 2 " --max 2 metric.au=0.0001 dataset.keep_files=false

# plans
run=("$penstock" run default_small)
plan=("${run[@]}" --dry-run)
expect 2 "only 0 samples, less than a batch" "${plan[@]}" \
	dataset.num_files_train=0
expect 2 "for 16 steps but 17 wanted" "${plan[@]}" train.total_training_steps=17
expect 4 "is free on" "${plan[@]}" dataset.num_files_train=10k \
	dataset.record_length_bytes=1TB
expect 0 "to be read" "${plan[@]}" dataset.num_files_train=10k \
	dataset.record_length_bytes=1TB workflow.generate_data=false
expect 2 "reader.odirect=true" "${plan[@]}" reader.odirect=true \
	loader.store=mmap
expect 2 "loader.store.direct" "${plan[@]}" loader.store=mmap \
	loader.store.direct=true
expect 2 "train.epochs" "${plan[@]}" loader.epochs=3
expect 2 "reader.sample_shuffle" "${plan[@]}" loader.shuffle=true
expect 2 "nothing to do" "${run[@]}" workflow.train=false \
	workflow.generate_data=false
expect 2 "nothing to do" "${run[@]}" workflow.train=false \
	workflow.generate_data=false workflow.checkpoint=true
expect 2 "no device 'none0'" "${run[@]}" workflow.profiling=true \
	profiling.iostat_devices=none0
saving=(workflow.checkpoint=true train.epochs=1)
expect 0 "No checkpoint is written" "${run[@]}" "${saving[@]}" \
	checkpoint.checkpoint_after_epoch=2
expect 0 "No checkpoint is written" "${plan[@]}" "${saving[@]}" \
	checkpoint.steps_between_checkpoints=17
expect 0 "No evaluation is run" "${plan[@]}" dataset.num_files_eval=0
expect 0 "leave none of 16 steps" "${plan[@]}" \
	output.metric.exclude_start_steps=16
expect 0 "not all checkpoints fit" "${plan[@]}" "${saving[@]}" \
	model.model_size_bytes=100TB

# output
expect 0 '"penstock.generate/1"' "${run[@]}" workflow.train=false --json
expect 0 '"penstock.result/1"' "${run[@]}" --json --verbose train.epochs=1
/usr/bin/python3 -c 'import json; json.load(open("out"))'
for cmd in "run default_small train.epochs=1" workloads --help; do
	# shellcheck disable=SC2086
	"$penstock" $cmd >/dev/full 2>err && fail "$cmd > /dev/full"
	grep -q "No space left" err || fail "$cmd > /dev/full: says nothing"
done

# interrupted: a partial result, and the exit code of the signal
code=0
"${run[@]}" train.epochs=1000000 --json >out 2>err &
until grep -q "Ending epoch 1 " runs/default/*/dlio.log 2>/dev/null &&
	[ "$(grep -h "Starting epoch" runs/default/*/dlio.log |
		grep -c "epoch 3:")" -gt 0 ]; do
	kill -0 $! || fail "ended by itself"
done
kill -TERM $!
wait $! || code=$?
[ $code = 143 ] || fail "interrupted: exit $code"
/usr/bin/python3 -c '
import json
d = json.load(open("out"))
assert d["partial"] and len(d["epochs"]) >= 3 and d["epochs"][0]["steps"] == 16'
echo "all as expected"
