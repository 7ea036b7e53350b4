"""Traces and reports come back as they went, and a good one is never lost."""

import json
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.errors import DataError
from colonnade.job import Job
from colonnade.privacy.exposure import Finding
from colonnade.record import COLUMNS, Report, Trace, load

ROWS = [(0.0, 0, 0, 0, 0, 0, 0.69), (0.25, 1, 32, 3, 9, 800, 0.5), (1 / 3, 2, 64, 6, 18, 1600, np.nan)]


def a_report(**changes) -> Report:
    settings = {
        "job": Job(alpha=1e-3, parties=("bank", "shop")),
        "chosen": {"method": "afsaga", "labels": ["shop"]},
        "world": "simulated",
        "world_settings": {"seed": 3},
        "rows": 64,
        "columns": {"bank": ["a", "b"], "shop": ["<c>"]},
        "classes": [0, 1],
        "trace": Trace.from_rows(ROWS),
        "weights": {"bank": np.array([1 / 3, -2e-300]), "shop": np.array([np.pi])},
        "intercept": 0.1,
        "outcome": "converged",
        "detail": "It is there.",
        "objective": 0.1 + 0.2,
        "certificate": 1e-9,
        "seconds": 0.25,
        "exposure": [Finding("note", "shop", "bank", "…")],
        "workload": {"bank": {"computing": 0.1}},
        "received": {"bank": {"totals": 4}},
        "transcript": [(0.0, "bank", "shop", b"\x00\xff"), (0.5, "shop", "bank", b"")],
        "reference": {"optimum": 0.25},
    }
    return Report(**(settings | changes))


def test_a_trace_has_typed_columns_of_one_length():
    trace = Trace.from_rows(ROWS)
    assert len(trace) == 3
    assert [trace[name].dtype for name in COLUMNS] == list(COLUMNS.values())
    np.testing.assert_array_equal(trace["bytes"], [0, 800, 1600])
    np.testing.assert_array_equal(trace.passes(64), [0, 0.5, 1])
    assert len(Trace.from_rows([])) == 0


@pytest.mark.parametrize("columns", [{"seconds": [1]}, {name: [1] * (name == "rows") for name in COLUMNS}])
def test_a_trace_with_missing_or_uneven_columns_is_refused(columns):
    with pytest.raises(DataError, match=r"columns"):
        Trace(columns)


def test_a_trace_goes_to_pandas_parquet_and_json(tmp_path):
    pyarrow_parquet = pytest.importorskip("pyarrow.parquet")
    trace = Trace.from_rows(ROWS)
    trace.to_parquet(tmp_path / "trace.parquet")
    stored = pyarrow_parquet.read_table(tmp_path / "trace.parquet")
    frame = trace.to_pandas()
    text = trace.to_json(tmp_path / "trace.json")
    parsed = json.loads(text)
    assert (tmp_path / "trace.json").read_text() == text
    for name in COLUMNS:
        np.testing.assert_array_equal(stored[name].to_numpy(), trace[name])
        np.testing.assert_array_equal(frame[name], trace[name])
        np.testing.assert_array_equal(np.array(parsed[name], dtype=float), trace[name])


numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**62)


@given(st.lists(st.tuples(numbers, counts, counts, counts, counts, counts, numbers)))
def test_a_trace_survives_json_to_the_last_bit(rows):
    trace = Trace.from_rows(rows)
    again = Trace.from_json(trace.to_bytes())
    assert again.to_bytes() == trace.to_bytes()
    assert all(again[name].tobytes() == trace[name].tobytes() for name in COLUMNS)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"transcript": None, "certificate": None, "classes": None, "objective": np.nan},
        {"transcript": [], "job": Job(loss="squared", step=0.5, parties=2)},
        {
            "job": Job(loss="multinomial"),
            "classes": ["a", "b", "c"],
            "intercept": np.array([0.1, 0.2, -0.3]),
            "weights": {"bank": np.ones((2, 3)), "shop": np.full((1, 3), 1e-17)},
        },
    ],
    ids=["full", "sparse", "ridge", "multinomial"],
)
def test_a_saved_report_loads_as_it_was(tmp_path, changes):
    report = a_report(**changes)
    again = load(report.save(tmp_path / "run"))
    assert again.trace.to_bytes() == report.trace.to_bytes()
    assert list(again.weights) == list(report.weights)
    for party, weights in report.weights.items():
        np.testing.assert_array_equal(again.weights[party], weights, strict=True)
    for field in {field.name for field in fields(Report)} - {"trace", "weights"}:
        np.testing.assert_equal(getattr(again, field), getattr(report, field))


def test_settings_between_two_parties_and_unknown_numbers_are_kept(tmp_path):
    report = a_report(world_settings={"latency": {("bank", "shop"): 0.5}, "speeds": (1, 2)}, intercept=np.nan)
    again = load(report.save(tmp_path / "run"))
    assert again.world_settings == {"latency": {"bank > shop": 0.5}, "speeds": [1, 2]}
    assert np.isnan(again.intercept)


def test_a_model_file_holds_one_block_and_the_coordinator_the_intercept(tmp_path):
    models = a_report().save(tmp_path) / "models"
    with np.load(models / "bank.npz", allow_pickle=False) as bank, np.load(models / "shop.npz") as shop:
        header = json.loads(str(bank["header"]))
        assert header["party"] == "bank"
        assert header["columns"] == ["a", "b"]
        assert header["classes"] == [0, 1]
        assert header["job"] == a_report().job.digest().hex()
        np.testing.assert_array_equal(bank["weights"], [1 / 3, -2e-300])
        assert "intercept" not in bank
        assert shop["intercept"] == 0.1


def test_saving_again_replaces_the_whole_report(tmp_path):
    a_report().save(tmp_path / "run")
    a_report(outcome="budget", weights={"bank": np.zeros(2)}, transcript=None).save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.outcome == "budget"
    assert again.transcript is None
    assert not (tmp_path / "run" / "models" / "shop.npz").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"thesis\.tex.*name another folder"):
        a_report().save(tmp_path)
    with pytest.raises(DataError, match=r"is a file"):
        a_report().save(tmp_path / "thesis.tex")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_report_that_cannot_be_written_leaves_the_good_one(tmp_path):
    """A file size limit stands in for the full disk: both refuse the write itself."""
    pytest.importorskip("resource")
    a_report().save(tmp_path / "run")
    script = (
        "import resource, sys; import numpy as np; from colonnade.record import load; "
        "report = load(sys.argv[1]); report.weights['bank'] = np.zeros(100_000); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); report.save(sys.argv[1])"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"DataError: the report could not be written to {tmp_path / 'run'}" in done.stderr
    assert load(tmp_path / "run").weights["bank"].shape == (2,)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("broken", ["report.json", "trace.json", "transcript.npz", "models/bank.npz"])
def test_a_broken_report_is_refused_with_the_folder_named(tmp_path, broken):
    a_report().save(tmp_path / "run")
    path = tmp_path / "run" / broken
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match=r"run cannot be read"):
        load(tmp_path / "run")


def test_a_report_reads_no_file_outside_its_folder(tmp_path):
    head = a_report().save(tmp_path / "run") / "report.json"
    head.write_text(head.read_text().replace('"bank"', '"../../bank"'))
    with pytest.raises(DataError, match=r"party name '\.\./\.\./bank'"):
        load(tmp_path / "run")


def test_a_folder_without_a_report_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"no report\.json"):
        load(tmp_path)
