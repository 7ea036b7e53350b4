"""The scripts: what can be tried without a second installation."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from colonnade import record

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"


@pytest.fixture(scope="module")
def tables():
    sys.path.insert(0, str(SCRIPTS))
    import demo_tables

    sys.path.remove(str(SCRIPTS))
    return demo_tables


@pytest.fixture(scope="module")
def folder(tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    tables.write(folder)
    return folder


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_shell_scripts_parse():
    shell = [path for path in (*SCRIPTS.iterdir(), ROOT / ".ci" / "run") if is_shell(path)]
    assert {"venv", "test", "check", "build", "demo", "run"} <= {path.name for path in shell}
    for path in shell:
        subprocess.run(["bash", "-n", path], check=True)


def is_shell(path):
    return path.is_file() and not path.suffix and "python" not in path.read_text().split("\n", 1)[0]


class TestTables:
    def test_every_flight_that_arrived_is_in_every_table(self, tables, folder):
        for part, rows in (("", 261_877), ("-test", 65_469)):
            ids = [[row["flight"] for row in read(folder / f"{party}{part}.csv")] for party in tables.PARTIES]
            assert ids[0] == ids[1] == ids[2]
            assert len(set(ids[0])) == len(ids[0]) == rows

    def test_left_joins_leave_gaps(self, folder):
        registry = [*read(folder / "registry.csv"), *read(folder / "registry-test.csv")]
        weather = [*read(folder / "weather.csv"), *read(folder / "weather-test.csv")]
        assert sum(not row["maker"] for row in registry) == 48_329
        assert sum(not row["temp"] for row in weather) == 1_544

    def test_label_is_late_by_more_than_a_quarter_of_an_hour(self, tables, folder):
        late = [row["late"] for part in ("", "-test") for row in read(folder / f"airline{part}.csv")]
        assert late.count("1") == (tables.source("flights.csv.zip").arr_delay > 15).sum()
        assert all("late" not in row for row in read(folder / "weather.csv")[:1])

    def test_columns_after_preparation(self, folder):
        from colonnade.cli.inputs import gather

        names = [name for names in gather(folder / "job.toml", {}).columns.values() for name in names]
        gaps = [name for name in names if name.endswith("=(missing)") and not name.startswith("maker")]
        assert (len(names) - len(gaps), len(gaps)) == (177, 12)

    def test_what_a_user_changed_stays(self, tables, tmp_path):
        tables.write(tmp_path, every=200)
        (tmp_path / "job.toml").write_text("[job]\n")
        before = (tmp_path / "airline.csv").stat().st_mtime_ns
        tables.write(tmp_path, every=200)
        assert (tmp_path / "job.toml").read_text() == "[job]\n"
        assert (tmp_path / "airline.csv").stat().st_mtime_ns == before

    def test_half_a_set_of_tables_is_written_again(self, tables, tmp_path):
        tables.write(tmp_path, every=200)
        (tmp_path / "weather-test.csv").unlink()
        tables.write(tmp_path, every=200)
        assert len(read(tmp_path / "weather-test.csv")) == 327


def test_demo(tmp_path):
    """The whole of it, on a twentieth of the flights."""
    command = [sys.executable, SCRIPTS / "demo.py", "--quick", "--no-open", "--folder", tmp_path]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    alone, together, pooled = (
        float(re.search(f"{name} +([0-9.]+)", run.stdout)[1])
        for name in ("the airline alone", "the three together", "pooled, scikit-learn")
    )
    assert together > alone + 0.02
    assert together == pytest.approx(pooled, abs=0.002)
    report = record.load(tmp_path / "run")
    assert (report.outcome, report.world, report.job.aggregation) == ("converged", "processes", "pairwise")
    assert "let weather and registry read its labels" in run.stdout
    assert "gap to the pooled optimum" in (tmp_path / "report.html").read_text()


class TestBranchCoverage:
    @pytest.mark.parametrize("taken, code", [(95, 0), (94, 1)])
    def test_each_room_needs_95_percent(self, tmp_path, taken, code):
        files = {f"src/colonnade/{room}/a.py": summary(100, 100) for room in ("core", "privacy")}
        files["src/colonnade/wire/a.py"] = summary(taken, 100)
        assert self.gate(tmp_path, files).returncode == code

    def test_a_room_that_was_not_measured_fails(self, tmp_path):
        run = self.gate(tmp_path, {"src/colonnade/core/a.py": summary(10, 10)})
        assert run.returncode == 1
        assert "branch coverage of wire: 0.0 %" in run.stdout

    def gate(self, tmp_path, files):
        path = tmp_path / "coverage.json"
        path.write_text(json.dumps({"files": files}))
        command = [sys.executable, SCRIPTS / "branch_coverage.py", path]
        return subprocess.run(command, capture_output=True, text=True)


def summary(taken, there):
    return {"summary": {"covered_branches": taken, "num_branches": there}}


class TestInstall:
    """`install` of scripts/venv, in a folder where .venv/bin/python notes what it was asked to do."""

    def install(self, folder, extra):
        command = f"set -euo pipefail; source {SCRIPTS}/venv; install {extra}"
        subprocess.run(["bash", "-c", command], cwd=folder, check=True, capture_output=True)
        asked = folder / "asked"
        return asked.read_text().splitlines() if asked.exists() else []

    @pytest.fixture
    def clone(self, tmp_path):
        python = tmp_path / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text('#!/bin/bash\n[[ $1 == -m ]] && echo "$@" >> asked\nexit 0\n')
        python.chmod(0o755)
        (tmp_path / "pyproject.toml").write_text("[project]\n")
        return tmp_path

    def test_once_and_again_when_pyproject_changes(self, clone):
        assert len(self.install(clone, "dev")) == 1
        assert len(self.install(clone, "dev")) == 1
        (clone / "pyproject.toml").write_text("[project]\nname = 'x'\n")
        assert self.install(clone, "dev") == ["-m pip install --quiet --quiet --editable .[dev]"] * 2

    def test_dev_has_the_demo_in_it(self, clone):
        self.install(clone, "dev")
        assert len(self.install(clone, "demo")) == 1

    def test_demo_does_not_have_dev_in_it(self, clone):
        self.install(clone, "demo")
        assert self.install(clone, "dev")[-1].endswith(".[dev]")
