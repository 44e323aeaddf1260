#!/usr/bin/python3
"""scripts/test on a small tree: every stage runs, even after a failure; skips
are counted, and those that tests/skips does not allow are failures."""
import os
import re
import shutil
import subprocess
import sys

SOURCE = os.environ.get("SOURCE") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(SOURCE, "tests", "data"))
from e2e import check, main  # noqa: E402

CMAKE = """cmake_minimum_required(VERSION 3.22)
project(x NONE)
include(CTest)
add_custom_target(tests_unrepeated)
add_custom_target(tests_threaded)
function(one name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS threaded)
endfunction()
"""
PRESETS = """{"version": 3, "configurePresets": [
  {"name": "base", "hidden": true, "generator": "Unix Makefiles",
   "binaryDir": "${sourceDir}/build/${presetName}"},
  {"name": "dev", "inherits": "base"}, {"name": "asan", "inherits": "base"},
  {"name": "tsan", "inherits": "base"}], "buildPresets": [
  {"name": "dev", "configurePreset": "dev"},
  {"name": "asan", "configurePreset": "asan"},
  {"name": "tsan", "configurePreset": "tsan"}]}
"""
LAST = re.compile(r"\d+ passed, \d+ failed, \d+ skipped")
FINE = "one(fine true)\n"
SKIP = 'one(leaves sh -c "echo skipped: no moon && exit 77")\n'
LISTED = "leaves\t[ $STAGE = dev ]\tno moon\n"


def run(tmp, tests, skips="", stages=()):
    """Runs scripts/test on these tests: its exit code and output lines."""
    shutil.rmtree(f"{tmp}/t", ignore_errors=True)
    os.makedirs(f"{tmp}/t/scripts")
    os.makedirs(f"{tmp}/t/tests")
    for name in ("build", "test"):
        shutil.copy(f"{SOURCE}/scripts/{name}", f"{tmp}/t/scripts")
    for name, text in (("CMakeLists.txt", CMAKE + tests),
                       ("CMakePresets.json", PRESETS), ("tests/skips", skips)):
        with open(f"{tmp}/t/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    p = subprocess.run([f"{tmp}/t/scripts/test", *stages], text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       timeout=600, check=False)
    return p.returncode, p.stdout.splitlines()


def test_counts(tmp):
    code, said = run(tmp, FINE)
    check(code == 0 and said[-1] == "3 passed, 0 failed, 0 skipped", said)
    code, said = run(tmp, FINE + 'one(broken false)\none(none ./not-there)\n')
    check(code == 1 and said[-1] == "3 passed, 6 failed, 0 skipped", said)
    for stage in ("dev", "asan", "tsan"):
        for name in ("broken", "none"):
            check(f"failed: {stage}: {name}" in said, said)
    # the line that programs parse
    check(sum(bool(LAST.fullmatch(s)) for s in said) == 1, said)
    code, said = run(tmp, "")
    check(code == 1 and said[-1] == "0 passed, 3 failed, 0 skipped", said)


def test_build_fails(tmp):
    bad = 'if(CMAKE_BINARY_DIR MATCHES "asan")\nmessage(FATAL_ERROR "ow")\n' \
          "endif()\n"
    code, said = run(tmp, FINE + bad)
    check(code == 1 and said[-1] == "2 passed, 1 failed, 0 skipped", said)
    check(any("ow" in s for s in said), "the log is shown")


def test_skips(tmp):
    code, said = run(tmp, FINE + SKIP, LISTED, ["dev"])
    check(code == 0 and said[-1] == "1 passed, 0 failed, 1 skipped", said)
    check("skipped: dev: leaves: no moon" in said, said)
    # where the condition does not hold, for another reason, or without one
    code, said = run(tmp, FINE + SKIP, LISTED)
    check(code == 1 and said[-1] == "3 passed, 2 failed, 1 skipped", said)
    for name, why in (("leaves", "no sun"), ("other", "no moon")):
        code, said = run(tmp, FINE + SKIP, f"{name}\ttrue\t{why}\n", ["dev"])
        check(code == 1 and said[-1] == "1 passed, 1 failed, 0 skipped", said)
    code, said = run(tmp, 'one(leaves sh -c "exit 77")\n', LISTED, ["dev"])
    check(code == 1 and said[-1] == "0 passed, 1 failed, 0 skipped", said)
    # an entry for a removed test
    code, said = run(tmp, FINE, "gone\ttrue\tno moon\n")
    check(code == 1 and said[-1] == "3 passed, 1 failed, 0 skipped", said)
    check("failed: dev: tests/skips: no such test: gone" in said, said)
    code, said = run(tmp, FINE, "fine true\n")
    check(code == 1 and "tests/skips:1" in said[-1], said)


def test_pytest(tmp):
    """tests/python/run.py: tests skipped by pytest count as skips."""
    head = "import pytest\n"
    whole = head + 'pytest.importorskip("moon", reason="no moon")\n'
    fine = "def test_a():\n    pass\n"
    part = head + fine + 'def test_b():\n    pytest.skip("no moon")\n'
    bad = part + "def test_c():\n    assert False\n"
    for text, code in ((fine, 0), (whole + fine, 77), (part, 77), (bad, 1),
                       ("", 5)):
        with open(f"{tmp}/test_x.py", "w", encoding="utf-8") as f:
            f.write(text)
        p = subprocess.run(["/usr/bin/python3", "-B",
                            f"{SOURCE}/tests/python/run.py",
                            f"{tmp}/test_x.py"], text=True, timeout=600,
                           stdout=subprocess.PIPE, check=False)
        check(p.returncode == code, f"{text}: {p.returncode}: {p.stdout}")
        check(("skipped: no moon" in p.stdout.splitlines()) ==
              (text not in (fine, "")), p.stdout)


def test_stages(tmp):
    code, said = run(tmp, FINE, stages=["tsan"])
    check(code == 0 and said[-1] == "1 passed, 0 failed, 0 skipped", said)
    code, said = run(tmp, FINE, stages=["moon"])
    check(code == 1 and "the stages are" in said[-1], said)


main(globals())
