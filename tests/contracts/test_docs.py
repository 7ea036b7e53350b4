"""Every code block in README and docs is run, and every link leads somewhere.

`python` blocks of a page run one after the other with the names of those before; `toml` blocks are read as
job or party files; the commands of `console` blocks run in a folder with the demo's tables (of few flights).
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from colonnade.cli.jobfile import JobFile, PartyFile
from colonnade.cli.settings import build

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PICTURES = {"text", "mermaid"}
"""Blocks that are looked at, not run."""


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int


def blocks(path):
    """The fenced blocks of a page."""
    found, start = [], None
    for number, line in enumerate(path.read_text().split("\n"), start=1):
        if not line.lstrip().startswith("```"):
            if start:
                found[-1].append(line)
        elif start:
            start = None
        else:
            start = (line.strip().strip("`"), number)
            found.append([*start])
    return [Block(language, "\n".join(lines), line) for language, line, *lines in found]


def pages_with(language):
    found = [page for page in PAGES if any(block.language == language for block in blocks(page))]
    return pytest.mark.parametrize("page", found, ids=name_of)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def of(page, language):
    return [block for block in blocks(page) if block.language == language]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with a small demo/ in it, and .venv/bin where a clone has it."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import demo_tables

    monkeypatch.chdir(tmp_path)
    demo_tables.write(Path("demo"), every=400)
    Path(".venv").mkdir()
    Path(".venv/bin").symlink_to(Path(sys.executable).parent)
    return tmp_path


@pages_with("python")
def test_python(page, folder):
    names = {"__name__": "__main__"}
    for block in of(page, "python"):
        place = "\n" * block.line  # so that a traceback names the page's own line
        exec(compile(place + block.text, str(page), "exec"), names)


@pages_with("console")
def test_console(page, folder):
    commands = [
        line[2:] for block in of(page, "console") for line in block.text.split("\n") if line.startswith("$ ")
    ]
    assert commands, "a console block has a line that starts with '$ '"
    for command in commands:
        run(command, folder)


def run(command, folder):
    """Run what the package offers; of the repository's own long commands, see that they are there."""
    words = shlex.split(command, comments=True)
    first = words[0].removeprefix(".venv/bin/")
    if first.startswith(("scripts/", ".ci/")):
        assert os.access(ROOT / first, os.X_OK), f"{first}: no such script"
    elif words[1:2] == ["-m"] and first == "python":
        assert find_module(words[2]), f"{words[2]}: no such module"
    elif first == "colonnade":
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            command, shell=True, cwd=folder, capture_output=True, text=True, env={**os.environ, "PATH": path}
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    else:
        pytest.fail(f"{command}: a command that nobody tries")


def find_module(name):
    return (ROOT / name.replace(".", "/")).with_suffix(".py").exists() or find_spec(name)


def test_every_block_is_of_a_kind_that_is_tried():
    tried = {"python", "console", "toml"} | PICTURES
    assert [
        (name_of(page), block) for page in PAGES for block in blocks(page) if block.language not in tried
    ] == []


LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in LINK.findall(prose):
        if not link.startswith(("https://", "#")):
            assert (page.parent / link.split("#")[0]).exists(), f"{name_of(page)} leads to {link}"


def test_every_page_is_on_the_index():
    listed = set(LINK.findall((ROOT / "docs" / "index.md").read_text()))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - listed <= {"index.md"}


@pages_with("toml")
def test_toml(page):
    for block in of(page, "toml"):
        data = tomllib.loads(block.text)
        if {"job", "parties", "local"} & set(data):
            build(JobFile, data, name_of(page))
        else:
            build(PartyFile, {"table": "any.csv"} | data, name_of(page))
