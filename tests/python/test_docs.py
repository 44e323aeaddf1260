"""Every example in the documentation is run."""
import doctest
import importlib
import os
import re
import subprocess
import sys

import numpy as np
import penstock
import pytest

SOURCE = os.environ.get("SOURCE") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", ".."))


def have(name):
    try:
        importlib.import_module(name)
        return True
    except ImportError:
        return False


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with what the examples read."""
    x = np.arange(8000, dtype="f4").reshape(1000, 8)
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "x.npy", x)
    np.save(tmp_path / "x.npy", x)
    if have("anndata"):
        import test_cells
        (tmp_path / "cells").mkdir()
        test_cells.make(tmp_path / "cells" / "a.h5ad", 200,
                        [f"g{i}" for i in range(50)], 0)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["penstock", "penstock._loader",
                                  "penstock._dataset", "penstock._tensors",
                                  "penstock._cells", "penstock._ddict",
                                  "penstock.torch"])
def test_docstrings(name, place):
    if name == "penstock._cells" and not have("anndata"):
        pytest.skip("python3-anndata is not installed")
    if name == "penstock.torch" and not have("torch"):
        pytest.skip("python3-torch is not installed")
    module = importlib.import_module(name)
    failed, count = doctest.testmod(module, extraglobs={
        "penstock": penstock, "numpy": np, "data": place,
        "cells": place / "cells", "loader": penstock.Loader("x.npy", 256)})
    assert count and not failed


def blocks(file):
    with open(os.path.join(SOURCE, file), encoding="utf-8") as f:
        text = f.read()
    return re.findall(r"^```python *(\w*)\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize("file", ["docs/python.md", "README.md"])
def test_snippets(file, place):
    space = {}
    found = blocks(file)
    assert found
    missing = set()
    for needs, code in found:
        package = {"cells": "anndata", "torch": "torch"}.get(needs)
        if package and not have(package):
            missing.add(package)
            continue
        exec(compile(code, file, "exec"), space)
    if missing:
        pytest.skip(f"python3-{', '.join(sorted(missing))} is not installed")


def test_import_is_light():
    """Neither NumPy nor PyTorch, nor threads, before they are needed."""
    code = """if True:
        import sys
        import penstock
        heavy = {'numpy', 'torch', 'threading', 'scipy', 'json', 'inspect',
                 'typing', 're'} & set(sys.modules)
        print(sorted(heavy))
        """
    p = subprocess.run([sys.executable, "-S", "-c", code], text=True,
                       capture_output=True, check=True)
    assert p.stdout == "[]\n"


def test_everything_named_is_there():
    if not have("torch"):
        pytest.skip("python3-torch is not installed")
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None
        assert name in dir(penstock)
    with pytest.raises(AttributeError):
        penstock.nothing


def test_stubs_name_what_is_there():
    """The .pyi files have the same classes and methods as the module."""
    import ast
    where = os.path.dirname(penstock.__file__)
    for file, module in (("__init__.pyi", penstock),):
        with open(os.path.join(where, file), encoding="utf-8") as f:
            tree = ast.parse(f.read())
        classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
        assert len(classes) > 8
        for c in classes:
            real = getattr(module, c.name)
            for n in c.body:
                name = getattr(n, "name", None) or getattr(
                    getattr(n, "target", None), "id", None)
                if name and not hasattr(real, name):
                    assert name in ("batch_size", "rank", "world"), \
                        f"{c.name}.{name} is not there"
