#!/usr/bin/python3
"""Runs one file of these tests; exit code 77: something was skipped."""
import sys


class Skips:
    """A plugin that keeps why tests, or whole files, were skipped."""

    def __init__(self):
        self.reasons = set()

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            self.reasons.add(report.longrepr[2])

    def pytest_collectreport(self, report):
        if report.skipped:
            self.reasons.add(report.longrepr[2])


def main():
    try:
        import pytest
    except ImportError:
        print("skipped: python3-pytest is not installed")
        return 77
    skips = Skips()
    code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider",
                            "--durations=3", *sys.argv[1:]], [skips]))
    for reason in sorted(skips.reasons):
        print("skipped:", reason.removeprefix("Skipped: "))
    # pytest says 5 when all of it was skipped while it looked for tests
    return 77 if skips.reasons and code in (0, 5) else code


if __name__ == "__main__":  # and not again in a spawned process
    sys.exit(main())
