"""pip install ./python

In the source tree, CMake builds the library into the module, and nothing else
needs to be installed. Elsewhere the module is linked with an installed
libpenstock, found by pkg-config.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.join(HERE, "..", "CMakeLists.txt")
IN_TREE = os.path.exists(TREE)


def pkg_config(what):
    return subprocess.run(["pkg-config", what, "penstock"], check=True,
                          capture_output=True, text=True).stdout.split()


def version():
    if not IN_TREE:
        return pkg_config("--modversion")[0]
    with open(TREE, encoding="utf-8") as f:
        return re.search(r"project\(penstock VERSION (\S+)", f.read()).group(1)


class Build(build_ext):
    """Build the module with the CMake build of the tree."""

    def build_extension(self, ext):
        if not IN_TREE:
            super().build_extension(ext)
            return
        work = os.path.abspath(os.path.join(self.build_temp, "cmake"))
        os.makedirs(work, exist_ok=True)
        subprocess.run(
            ["cmake", "-S", os.path.dirname(TREE), "-B", work,
             "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
             "-DPEN_PYTHON_STATIC=ON",
             f"-DPython3_EXECUTABLE={sys.executable}"], check=True)
        subprocess.run(["cmake", "--build", work, "--target", "pen_python",
                        "--parallel", str(os.cpu_count() or 1)], check=True)
        to = self.get_ext_fullpath(ext.name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(os.path.join(work, "python", "penstock",
                                 "_penstock.abi3.so"), to)


module = Extension("penstock._penstock", [], py_limited_api=True)
if not IN_TREE:
    module = Extension(
        "penstock._penstock",
        sorted(glob.glob(os.path.join("src", "*.c"))), py_limited_api=True,
        extra_compile_args=pkg_config("--cflags"),
        extra_link_args=pkg_config("--libs"))

setup(version=version(), ext_modules=[module], cmdclass={"build_ext": Build},
      options={"bdist_wheel": {"py_limited_api": "cp311"}})
