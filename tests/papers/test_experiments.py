"""The experiments' machinery: cells, rows on disk, both clocks, the step search, tables and figures from rows."""

import json
import sys
import xml.etree.ElementTree as ET
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from experiments import datasets, measure, methods, optimum, plot, run, steps  # noqa: E402
from experiments.cells import cell, contest  # noqa: E402
from experiments.figures import convergence, parties, workload  # noqa: E402
from experiments.store import Store  # noqa: E402
from experiments.tables import lossless, processes, ratios, speedup, stragglers  # noqa: E402

from colonnade import World, simulate  # noqa: E402
from colonnade.runtime.world import calibrated  # noqa: E402


@pytest.fixture
def small(monkeypatch, tmp_path):
    """credit91's place taken by 600 generated rows of 12 columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 12)) / np.sqrt(12)
    y = np.where(X @ rng.standard_normal(12) + rng.standard_normal(600) > 0, 1.0, -1.0)
    known = replace(datasets.get("credit91"), read=lambda full: (X, y), scaling="none")
    monkeypatch.setattr(datasets, "get", lambda name: known)
    monkeypatch.setattr(datasets, "CACHE", tmp_path / "cache")
    for cached in (datasets.loaded, optimum._problem):
        cached.cache_clear()
    yield known
    for cached in (datasets.loaded, optimum._problem):
        cached.cache_clear()


def one(method="afsvrg", schedule="synchronous", **settings):
    return cell("credit91", method, schedule, **({"parties": 3, "batch": 32} | settings))


class TestCells:
    def test_the_key_names_the_configuration(self):
        assert one().key == one().key
        assert len({one().key, one(slower=40).key, one(schedule="asynchronous").key, one(seed=1).key}) == 4

    def test_a_contest_differs_in_what_is_compared_only(self):
        twin, prompt, ours, one_lane = contest("url_phishtank", "afsgd")
        assert (twin.parties, twin.target, twin.slower, twin.batch) == (16, 1e-2, 200, 128)
        assert prompt == replace(twin, prompt=True)
        assert ours == replace(twin, schedule="asynchronous")
        assert one_lane == replace(ours, lanes="party")

    def test_targets_are_the_papers(self):
        assert [methods.get(name).target for name in methods.NAMES] == [1e-2, 1e-4, 1e-4]


class TestStore:
    def test_rows_are_there_again(self, tmp_path):
        file = tmp_path / "deep" / "rows.jsonl"
        Store(file).add({"key": "a", "status": "reached"})
        Store(file).add({"key": "b", "status": "passes"})
        assert [row["key"] for row in Store(file)] == ["a", "b"]
        assert Store(file).get("b") == {"key": "b", "status": "passes"}

    def test_a_row_that_was_cut_short_is_none(self, tmp_path):
        file = tmp_path / "rows.jsonl"
        Store(file).add({"key": "a"})
        with file.open("a") as lines:
            lines.write('{"key": "b", "sta')
        assert [row["key"] for row in Store(file)] == ["a"]
        Store(file).add({"key": "c"})
        assert [row["key"] for row in Store(file)] == ["a", "c"]


class TestMeasure:
    def test_the_honest_clock_is_the_trace_of_the_public_run(self, small):
        this = one(target=1e-9, passes=6)
        row = measure.measure(this, 1.0)
        rows, best = optimum.problem(this), optimum.pooled(this)
        report = simulate(
            measure.job(this, 1.0, max_rounds=130), datasets.split_columns(rows.X, 3), rows.labels, World()
        )
        assert row["status"] == "passes"
        gaps = report.trace["objective"] - best.value
        for _, gap in row["honest"][::5]:
            assert np.min(np.abs(gaps - gap)) < 1e-5 * gap

    @pytest.mark.parametrize("schedule, lanes", [("synchronous", "requester"), ("asynchronous", "party")])
    def test_a_cell_ends_at_its_target(self, small, schedule, lanes):
        row = measure.measure(one(schedule=schedule, lanes=lanes), 2.0)
        assert row["status"] == "reached"
        assert row["gap"] <= 1e-4 < row["honest"][-2][1]
        assert row["reached"]["seconds"] == pytest.approx(row["honest"][-1][0], rel=1e-5)
        assert row["reached"]["messages"] > 0
        assert {"machine", "versions", "took", "step", "cell"} <= set(row)
        assert json.loads(json.dumps(row)) == row

    def test_lockstep_takes_as_long_as_its_straggler(self, small):
        """A round: everybody's product, then everybody's step, each of 32 rows of 4 columns."""
        cost = calibrated()
        work = cost.per_call + 32 * 4 * cost.per_nonzero_dense
        row = measure.measure(one(method="afsgd", target=1e-9, passes=1), 0.5)
        rounds = np.arange(1, len(row["honest"]) + 1)
        assert [seconds for seconds, _ in row["honest"][:10]] == pytest.approx(
            list(6 * work * rounds[:10]), rel=1e-4
        )
        prompt = measure.measure(one(method="afsgd", target=1e-9, passes=1, prompt=True), 0.5)
        assert [seconds for seconds, _ in prompt["honest"][:10]] == pytest.approx(
            list(4 * work * rounds[:10]), rel=1e-4
        )
        assert [gap for _, gap in prompt["honest"]] == [gap for _, gap in row["honest"]]

    def test_the_papers_clock_leaves_full_passes_out(self, small):
        cost = calibrated()
        work = cost.per_call + 32 * 4 * cost.per_nonzero_dense
        row = measure.measure(one(), 2.0)
        steps_made = [round(seconds / (6 * work), 2) for seconds, _ in row["papers"]]
        assert steps_made == pytest.approx(np.round(steps_made), abs=0.05)
        assert row["papers_seconds"] < row["reached"]["seconds"]

    def test_the_papers_clock_counts_work_of_the_straggler_not_done_yet(self, small):
        """Asynchronous: equal steps of all parties dated by the fastest, so a third of when the last had made them."""
        row = measure.measure(one(schedule="asynchronous", method="afsgd", target=3e-2), 0.5)
        cost = calibrated()
        a_step = 2 * (cost.per_call + 32 * 4 * cost.per_nonzero_dense)
        assert row["papers"][0][0] == pytest.approx(a_step, rel=1e-4)

    def test_one_clock_ends_sooner(self, small):
        both = one(schedule="asynchronous")
        long, short = (measure.measure(this, 8.0) for this in (both, replace(both, both_clocks=False)))
        assert short["reached"] == long["reached"]
        assert short["workload"]["p0"]["steps"] < long["workload"]["p0"]["steps"]
        assert long["papers_seconds"] > 0

    def test_divergence_is_a_row(self, small):
        row = measure.measure(one(method="afsgd", step=None), 5_000.0)
        assert row["status"] in ("diverged", "passes")
        assert row["reached"] == {}

    def test_an_error_is_a_row_with_its_reason(self, small):
        row = measure.measure(one(batch=601), 1.0)
        assert row["status"] == "error"
        assert "batch_size = 601" in row["detail"]

    def test_what_takes_too_long_is_a_row(self, small, monkeypatch):
        monkeypatch.setattr(measure, "MOST_SECONDS", 0.1)
        row = measure.measure(one(target=-1.0, passes=100_000), 0.5)
        assert row["status"] == "too long"

    def test_predictions_of_the_rows_kept_back(self, small):
        row = measure.measure(one(held_out=True, target=1e-6), 2.0)
        assert row["together"]["accuracy"] == pytest.approx(row["pooled"]["accuracy"], abs=0.01)
        assert row["together"]["AUC"] == pytest.approx(row["pooled"]["AUC"], abs=1e-3)
        assert len(optimum.problem(one(held_out=True)).test_labels) == 120

    def test_quality_of_each_loss(self):
        assert measure.quality("squared", np.array([1.0, 2.0]), np.array([1.0, 4.0])) == {
            "RMSE": pytest.approx(2**0.5)
        }
        scores = np.array([[0.0, 1.0], [3.0, 1.0], [0.0, 2.0]])
        assert measure.quality("multinomial", scores, np.array([1, 1, 1])) == {
            "accuracy": pytest.approx(2 / 3)
        }


class TestSteps:
    @pytest.mark.parametrize("start", range(8))
    @pytest.mark.parametrize("lowest", range(8))
    def test_the_walk_finds_the_valley(self, start, lowest):
        values = tuple(2.0**k for k in range(8))
        asked = []

        def score(step):
            asked.append(step)
            return (False, abs(np.log2(step) - lowest))

        assert steps.climb(values, start, score) == values[lowest]
        assert len(asked) == len(set(asked)) <= abs(start - lowest) + 3

    def test_the_best_step_of_a_set(self, small):
        tried = {}

        def measured(this):
            return tried.setdefault(this.step, measure.measure(this, this.step))

        best = steps.best_step(one(), measured)
        rounds = {step: row["reached"]["rounds"] for step, row in tried.items() if row["reached"]}
        assert best == min(rounds, key=rounds.get)
        assert len(tried) >= 3


def test_a_run_is_resumed_and_rendered(small, tmp_path, monkeypatch):
    file = tmp_path / "rows.jsonl"
    group = [replace(this, parties=3, batch=32) for this in contest("credit91", "afsgd")]
    said = run.run_group(group, file)
    written = file.read_text()
    assert said.startswith("credit91 afsgd 32 step ")
    assert "reached, reached, reached, reached" in said
    monkeypatch.setattr(run, "measure", None, raising=False)
    run.run_group(group, file)
    assert file.read_text() == written


def row_of(this, seconds, reached=True, **more):
    """A row as a run leaves it, by hand."""
    curve = [[0.1 * seconds, 0.3], [seconds, 0.5 * this.target if reached else 0.2]]
    spent = {"computing": 2.0, "communicating": 1.0, "waiting": 1.0, "steps": 100}
    return {
        "key": this.key,
        "cell": asdict(this),
        "step": 4.0,
        "status": "reached" if reached else "passes",
        "gap": curve[-1][1],
        "reached": {"seconds": seconds, "rounds": 77} if reached else {},
        "papers_seconds": 0.5 * seconds if reached else None,
        "honest": curve,
        "papers": curve,
        "workload": {f"p{k}": spent for k in range(this.parties)},
        "together": {"accuracy": 0.8125, "AUC": 0.75},
        "pooled": {"accuracy": 0.8120, "AUC": 0.75},
        "took": 60.0,
        "machine": "a machine",
        "versions": {"python": "3"},
    } | more


def line_of(text, *starts):
    return next(line for line in text.splitlines() if line.startswith("| " + " | ".join(starts) + " |"))


class TestTables:
    def test_a_speed_up_is_synchronous_over_asynchronous(self):
        twin, _, ours, _ = contest("credit91", "afsvrg")
        assert ratios.speedup(row_of(twin, 3.0), row_of(ours, 2.0)) == "1.50"
        assert ratios.speedup(row_of(twin, 3.0), row_of(ours, 2.0), "papers") == "1.50"
        short = row_of(twin, 3.0, reached=False)
        assert ratios.speedup(short, row_of(ours, 2.0, reached=False)) == "~1.50"
        assert ratios.speedup(short, row_of(ours, 2.0)) == "~1.50"
        slow = row_of(ours, 2.0) | {
            "status": "passes",
            "reached": {},
            "honest": [[0.5, 0.3], [1.0, 0.1], [2.0, 0.05]],
        }
        quick = row_of(twin, 3.0) | {"honest": [[0.6, 0.2], [0.8, 0.04], [3.0, 1e-5]]}
        assert ratios.speedup(quick, slow) == "~0.40"
        assert ratios.speedup(row_of(twin, 3.0), None) == "–"

    def test_the_speed_up_table(self):
        runs = contest("credit91", "afsvrg")
        rows = [row_of(this, seconds) for this, seconds in zip(runs, (6.0, 4.0, 2.0, 3.0), strict=True)]
        rows[3] = row_of(runs[3], 3.0, reached=False)
        text = speedup.render(rows, False)["speedup.md"]
        numbers = "3.00 | ~2.00 | 2.00 | 3.00 | ~2.00"
        assert line_of(text, "credit91", "4", "SVRG", "4", "1.93").endswith(
            f"{numbers} | asynchronous, one lane: 50 passes, gap 2.0e-01 |"
        )
        assert line_of(text, "credit91", "4", "SVRG", "4", "2.49")
        assert "| url_phishtank | url | PhishTank addresses in place of url |" in text
        assert "4 runs, 4 minutes of one core on a machine" in text

    def test_the_papers_entries(self):
        for entries in (speedup.PREPRINT, speedup.JOURNAL):
            assert len(entries) == 8
            assert all(1.79 <= value <= 3.70 for values in entries.values() for value in values)
        assert set(speedup.PREPRINT) | set(speedup.JOURNAL) == set(datasets.NAMES)

    def test_stragglers(self):
        runs = contest("credit91", "afsaga", slower=40)
        rows = [row_of(this, seconds) for this, seconds in zip(runs, (2.0, 2.0, 1.0, 4.0), strict=True)]
        text = stragglers.render(rows, False)["stragglers.md"]
        line = line_of(text, "credit91", "4", "SAGA", "40 %", "128", "none")
        assert "| 2.00 | 0.50 | 2.00 | 2.00 | 0.50 |" in line
        assert len(stragglers.contests(True)) > len(stragglers.contests(False))

    def test_losslessness(self):
        this = lossless.cells(False)[0]
        text = lossless.render([row_of(this, 1.0)], False)["lossless.md"]
        assert line_of(text, "credit91", "4", "SVRG", "5.0e-06", "accuracy").endswith(
            "| 0.8125 | 0.8120 | +0.0005 |"
        )

    def test_processes(self):
        couple = processes.couples(False)[0]
        rows = [row_of(this, seconds) for this, seconds in zip(couple, (0.02, 0.01, 0.3, 0.2), strict=True)]
        text = processes.render(rows, False)["processes.md"]
        assert line_of(text, "credit91", "2", "SGD", "asynchronous").endswith(
            "| 10 | 77 | 200 | 77 | 2.00 | 1.50 |"
        )

    @pytest.mark.parametrize(
        "module", [speedup, stragglers, lossless, processes, convergence, workload, parties]
    )
    def test_every_output_renders_without_rows(self, module):
        for text in module.render([], False).values():
            assert len(text) > 300
        keys = [this.key for this in module.cells(False)]
        assert len(keys) == len(set(keys))


class TestFigures:
    def rows(self, module):
        return [row_of(this, 1.0 + place) for place, this in enumerate(module.cells(False))]

    @pytest.mark.parametrize(
        "module, panels, marks, kind",
        [(convergence, 10, 60, "polyline"), (workload, 6, 6 * 8 * 3, "rect"), (parties, 3, 9, "polyline")],
    )
    def test_a_figure_holds_what_the_rows_say(self, module, panels, marks, kind):
        (text,) = module.render(self.rows(module), False).values()
        root = ET.fromstring(text)
        space = "{http://www.w3.org/2000/svg}"
        groups = root.findall(f"{space}g")
        drawn = [
            mark
            for group in groups
            for mark in group.findall(space + kind)
            if mark.get("stroke") != "#dddddd"
        ]
        drawn = [mark for mark in drawn if mark.get("stroke-width") != "1"]
        assert len(groups) == panels
        assert len(drawn) == marks
        numbers = [float(n) for mark in drawn for n in mark.get("points", "").replace(",", " ").split()]
        assert all(0 <= number <= plot.WIDTH for number in numbers)

    def test_scales(self):
        place, ticks = plot.linear(0.0, 10.0, 50.0, 150.0)
        assert ticks == [0.0, 2.5, 5.0, 7.5, 10.0]
        assert place(5.0) == 100.0
        place, ticks = plot.logarithmic(2e-5, 0.3, 200.0, 0.0)
        assert ticks == pytest.approx([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0])
        assert place(1e-5) == 200.0
        assert place(1.0) == pytest.approx(0.0)


def test_the_command_renders_from_rows_alone(tmp_path, capsys):
    Store(tmp_path / "rows.jsonl").add(row_of(speedup.cells(False)[0], 1.0))
    assert run.main(["speedup", "convergence", "--render", "--place", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "wrote speedup.md\nwrote convergence.svg\n"
    assert (tmp_path / "speedup.md").read_text().startswith("# Asynchronous speed-up")
    assert ET.parse(tmp_path / "convergence.svg")
