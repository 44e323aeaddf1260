#!/usr/bin/python3
"""Runs one file of these tests; exit code 77: pytest is not installed."""
import sys


def main():
    try:
        import pytest
    except ImportError:
        print("skipped: python3-pytest is not installed")
        return 77
    return int(pytest.main(["-q", "-x", "-rs", "-p", "no:cacheprovider",
                            "--durations=3", *sys.argv[1:]]))


if __name__ == "__main__":  # and not again in a spawned process
    sys.exit(main())
