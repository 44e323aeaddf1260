#!/bin/bash
# A benchmark in continuous integration: measures loading several times, and
# fails when it is slower than a kept result, beyond noise and by more than 10 %.
#
#   ci.sh DATA KEPT-RESULTS        (makes KEPT-RESULTS when it does not exist)
set -eu
data=$1
kept=$2
now=$(mktemp -d)
trap 'rm -rf "$now"' EXIT

measure() {
	for i in 1 2 3 4 5; do
		mkdir -p "$1/$i"
		penstock load "$data" batch_size=64 shuffle=true epochs=4 \
			-o "$1/$i/result.json" >/dev/null
	done
}

if [ ! -d "$kept" ]; then
	measure "$kept"
	echo "kept the first results in $kept"
	exit 0
fi
measure "$now"
penstock compare "$kept" "$now" --fail-if 'throughput<-10%'
