"""Rules of the house that hold for every file of the package."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "colonnade"
FILES = sorted(SOURCE.rglob("*.py"))
SERIALISERS = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
GENERATOR_MAKERS = {
    "default_rng", "Generator", "SeedSequence", "BitGenerator", "PCG64", "PCG64DXSM", "Philox", "SFC64",
}  # fmt: skip
LINES_OF_A_FILE, LINES_OF_A_FUNCTION = 400, 60


def parsed(path):
    return ast.parse(path.read_text(), filename=str(path))


def imported(tree):
    """Every module that a file imports, anywhere in it, with each package it lies in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def dotted(node):
    """`np.random.rand` of an attribute chain; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return None


def unpickling(tree):
    """What loads or makes pickles: an import, or numpy told to."""
    yield from (name for name in imported(tree) if name.split(".")[0] in SERIALISERS)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.keyword)
            and node.arg == "allow_pickle"
            and ast.unparse(node.value) != "False"
        ):
            yield f"allow_pickle on line {node.value.lineno}"


def global_generators(tree):
    """Uses of generators that everybody shares, so that nobody's seed holds."""
    if "random" in imported(tree):
        yield "import random"
    for node in ast.walk(tree):
        name = dotted(node) if isinstance(node, ast.Attribute) else None
        found = re.fullmatch(r"(?:np|numpy)\.random\.(\w+)", name or "")
        if found and found[1] not in GENERATOR_MAKERS:
            yield name


def too_long(path, tree):
    lines = path.read_text().count("\n")
    if lines > LINES_OF_A_FILE:
        yield f"{lines} lines"
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno + 1
            if length > LINES_OF_A_FUNCTION:
                yield f"{node.name}: {length} lines"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
class TestFile:
    def test_nothing_is_pickled(self, path):
        assert not list(unpickling(parsed(path)))

    def test_no_global_generator(self, path):
        assert not list(global_generators(parsed(path)))

    def test_files_and_functions_stay_short(self, path):
        assert not list(too_long(path, parsed(path)))


@pytest.mark.parametrize(
    "rule, text",
    [
        (unpickling, "import pickle"),
        (unpickling, "def f():\n    from joblib import load"),
        (unpickling, "np.load(path, allow_pickle=True)"),
        (global_generators, "import random"),
        (global_generators, "numpy.random.seed(0)"),
        (global_generators, "x = np.random.rand(3)"),
    ],
)
def test_the_rules_find_what_they_forbid(rule, text):
    assert list(rule(ast.parse(text)))


def test_lawful_code_passes():
    tree = ast.parse(
        "rng = np.random.default_rng(0)\nnp.load(path, allow_pickle=False)\nfrom .random import x"
    )
    assert not [*unpickling(tree), *global_generators(tree)]


def test_a_long_function_is_found(tmp_path):
    path = tmp_path / "long.py"
    path.write_text("def long():\n" + "    pass\n" * 400)
    assert list(too_long(path, parsed(path))) == ["401 lines", "long: 401 lines"]


def test_imports_go_one_way():
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent)) or "lint-imports"
    run = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_no_path_of_one_machine():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    private = re.compile(r"""(?<![\w.$}])/(?:work|root|home|tmp|Users|opt)/\w""")
    texts = [name for name in tracked.split() if Path(name).suffix not in {".png", ".npz", ".parquet"}]
    found = [
        f"{name}: {match[0]}"
        for name in texts
        if (ROOT / name).is_file() and (match := private.search((ROOT / name).read_text()))
    ]
    assert not found
