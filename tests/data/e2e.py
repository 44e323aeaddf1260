"""What the end-to-end tests in Python share: checks that count, and a temporary
folder for each test."""
import os
import shutil
import subprocess
import sys
import tempfile

failed = 0
skipped = 0


def check(ok, what):
    global failed
    if not ok:
        failed += 1
        print(f"FAILED: {what}", file=sys.stderr)


def skip(reason):
    """Says that a part is left out: the test passes no more, it is skipped."""
    global skipped
    skipped += 1
    print(f"skipped: {reason}", flush=True)


def main(tests):
    """Runs all test_* of a module, or those named on the command line."""
    for name, test in list(tests.items()):
        if not name.startswith("test_") or \
                (len(sys.argv) > 1 and name not in sys.argv[1:]):
            continue
        tmp = tempfile.mkdtemp(prefix="pen-e2e.")
        os.environ["XDG_CACHE_HOME"] = f"{tmp}.cache"
        try:
            test(tmp)
        except (OSError, subprocess.SubprocessError, KeyError, ValueError) as e:
            check(False, f"{name}: {type(e).__name__}: {e}")
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
            shutil.rmtree(f"{tmp}.cache", ignore_errors=True)
    print("ok" if not failed else f"{failed} failed")
    sys.exit(1 if failed else 77 if skipped else 0)
