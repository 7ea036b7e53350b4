"""`import colonnade` and `colonnade --help` stay quick: heavy packages are entered when they are needed."""

import json
import subprocess
import sys

import pytest

import colonnade

HEAVY = {
    "numba",
    "scipy",
    "sklearn",
    "pyarrow",
    "pandas",
    "plotly",
    "jinja2",
    "rich",
    "cryptography",
    "uvloop",
}
BUDGET = 0.3
"""Seconds beyond numpy's own import."""

RUN = """
import json, sys, time
import numpy
start = time.perf_counter()
{code}
print(json.dumps([time.perf_counter() - start, sorted({{name.split(".")[0] for name in sys.modules}})]))
"""


def fresh(code: str) -> tuple[float, set[str]]:
    """Seconds and packages loaded, in a new interpreter with numpy there already."""
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(code=code)], capture_output=True, text=True, check=True
    )
    seconds, packages = json.loads(done.stdout.splitlines()[-1])
    return seconds, set(packages)


HELP = """
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    from colonnade.cli import main
    main(["--help"])
"""


@pytest.mark.parametrize("code", ["import colonnade", "import colonnade; colonnade.Job", HELP])
def test_importing_is_quick_and_brings_nothing_heavy(code):
    runs = [fresh(code) for _ in range(3)]
    assert min(seconds for seconds, _ in runs) < BUDGET
    assert not runs[0][1] & HEAVY


@pytest.mark.parametrize("name", [name for name in colonnade.__all__ if name != "errors"])
def test_every_public_name_is_there(name):
    assert getattr(colonnade, name).__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"no attribute 'Jab'"):
        _ = colonnade.Jab


def test_the_version_is_the_installed_one():
    from importlib.metadata import version

    assert colonnade.__version__ == version("colonnade")
