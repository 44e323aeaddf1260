#!/bin/bash
# The tables of figures in README.md and docs/ are those that bench/table.py
# makes of bench/results.json.
cd "${SOURCE:-$(dirname "$0")/../..}" || exit 1
exec /usr/bin/python3 -B bench/table.py --check
