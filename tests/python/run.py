#!/usr/bin/python3
"""Runs one file of these tests; exit code 77: pytest is not installed."""
import sys

try:
    import pytest
except ImportError:
    print("skipped: python3-pytest is not installed")
    sys.exit(77)

code = pytest.main(["-q", "-x", "-rs", "-p", "no:cacheprovider",
                    "--durations=3", *sys.argv[1:]])
# all of a file's tests skipped is a skipped test, as no test is a broken one
sys.exit(int(code))
