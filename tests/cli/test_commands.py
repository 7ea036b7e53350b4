"""The commands end to end: what they print, what they leave, how they exit."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import colonnade.cli
from colonnade import __version__
from colonnade.cli.inputs import gather
from colonnade.record import load

ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "COLONNADE_DEBUG"}


def command(*arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "colonnade", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        **more,
    )


def pooled(inputs):
    """scikit-learn on all columns together: the weights in the order of the blocks."""
    X = np.hstack([np.asarray(block) for block in inputs.blocks.values()])
    model = LogisticRegression(C=1 / (len(X) * inputs.job.alpha), tol=1e-10, max_iter=10_000)
    return model.fit(X, inputs.labels).coef_[0]


def test_simulate_trains_the_pooled_model_and_keeps_the_run(folder, colonnade):
    code, said, complaint = colonnade("simulate", folder.job, "--latency", "5ms", "--tol", "1e-11")
    assert (code, complaint) == (0, "")
    run = folder.path / "runs" / "job-1"
    report = load(run)
    np.testing.assert_allclose(
        np.concatenate([report.weights["bank"], report.weights["shop"]]),
        pooled(gather(Path(folder.job), {})),
        atol=1e-4,
    )
    assert report.world_settings["latency"] == 0.005
    assert (run / "report.html").stat().st_size > 10_000
    assert json.loads((run / "models" / "shop.prepare.json").read_bytes())["columns"] == ["spend", "city"]
    for words in (
        "120 rows; bank 2 columns, shop 3 columns",
        "Converged",
        "AUC on the training rows",
        str(run),
    ):
        assert words in said
    assert colonnade("simulate", folder.job, "--max-rounds", "3", "--tol", "0")[0] == 0
    assert load(folder.path / "runs" / "job-2").outcome == "budget"


def test_train_runs_a_process_a_party(folder, colonnade):
    code, said, complaint = colonnade("train", folder.job, "--out", folder.path / "here")
    assert (code, complaint) == (0, "")
    report = load(folder.path / "here")
    assert (report.world, report.outcome) == ("processes", "converged")
    assert "Converged" in said


def test_json_is_one_object_a_line(folder, colonnade):
    code, said, _ = colonnade("simulate", folder.job, "--json", "--latency", "20ms")
    events = [json.loads(line) for line in said.splitlines()]
    assert code == 0
    assert [event["event"] for event in events[:: len(events) - 1]] == ["start", "end"]
    assert {event["event"] for event in events[1:-1]} == {"progress"}
    assert events[0]["columns"] == {"bank": 2, "shop": 3}
    end = events[-1]
    assert end["outcome"] == "converged"
    assert 0.5 < end["fit"]["scores"]["together"] <= 1
    assert all(Path(model).is_file() for model in end["models"].values())


def test_report_shows_a_run_again(folder, colonnade):
    colonnade("simulate", folder.job, "--max-rounds", "5", "--out", folder.path / "run")
    page = folder.path / "page.html"
    code, said, _ = colonnade("report", folder.path / "run", "--out", page)
    assert code == 0
    assert "budget" in said
    assert page.is_file()
    code, _, complaint = colonnade("report", folder.path)
    assert code == 1
    assert "holds no report.json" in complaint


def test_check_says_what_it_would_cost_and_tell(folder, colonnade):
    code, said, complaint = colonnade("check", folder.job)
    assert (code, complaint) == (0, "")
    for words in (
        "ready: 120 rows",
        "bank: 2 columns, dense, holds the label",
        "expected: ",
        "an assumption",
        "warning: ",
    ):
        assert words in said
    code, said, _ = colonnade("check", folder.job, "--json", "--max-rounds", "100")
    event = json.loads(said)
    assert code == 0
    assert event["cost"]["rounds"] == pytest.approx(100, abs=1)
    assert {"severity", "party", "about", "sentence"} == set(event["exposure"][0])


def test_unmasked_sums_are_loud(folder, colonnade):
    for name in ("check", "simulate"):
        code, _, complaint = colonnade(name, folder.job, "--aggregation", "plain", "--max-rounds", "3")
        assert code == 0
        assert "NOT MASKED: each party sees its neighbours' shares" in complaint


def test_a_run_that_fails_exits_1_and_keeps_what_was_reached(folder, colonnade):
    code, said, complaint = colonnade("simulate", folder.job, "--step", "90", "--method", "afsgd")
    assert code == 1
    assert complaint.startswith("colonnade: the run failed: ")
    assert complaint.count("\n") == 1
    assert "report:" in said
    assert np.isfinite(load(folder.path / "runs" / "job-1").objective)


@pytest.mark.parametrize(
    "out, words",
    [
        ("bank.csv", "bank.csv is a file: name a folder"),
        ("bank.csv/run", "could not be written to"),
        (".", "which saving would lose: name another folder"),
        ("x" * 300, "File name too long"),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "train"])
def test_a_run_that_could_not_be_kept_is_not_begun(folder, colonnade, command, out, words):
    code, said, complaint = colonnade(command, folder.job, "--out", folder.path / out)
    assert (code, said) == (1, "")
    assert words in complaint
    assert complaint.count("\n") == 1


def test_a_lost_party_is_called_lost_once(folder, colonnade):
    code, _, complaint = colonnade("simulate", folder.job, "--latency", "20s", "--timeout", "1")
    assert code == 1
    assert complaint.count("peer lost") == 1


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "name a command: train, simulate, check, report"),
        (["trian", "job.toml"], "invalid choice: 'trian'"),
        (["train"], "the following arguments are required: job.toml"),
        (["train", "a.toml", "b.toml"], "train takes one file or folder, and there is also 'b.toml'"),
        (
            ["train", "job.toml", "--max-round", "3"],
            "unknown option --max-round of train: did you mean '--max-rounds'?",
        ),
        (["train", "job.toml", "--latency", "3"], "unknown option --latency of train"),
        (["train", "none.toml"], "none.toml: no such file"),
        (["train", "job.toml", "--set", "step"], "--set step: give field=value"),
        (
            ["train", "job.toml", "--set", "stepp=1"],
            "--set stepp: the job has no such field: did you mean 'step'?",
        ),
        (["train", "job.toml", "--batch-size", "many"], "batch_size = 'many': expected a whole number"),
        (["train", "job.toml", "--batch-size", "0"], "job.toml with your options: [job] batch_size = 0"),
        (["simulate", "job.toml", "--latency", "soon"], "--latency = 'soon': give a number"),
        (["simulate", "job.toml", "--latency=-1"], "latency and jitter: give seconds"),
        (["simulate", "job.toml", "--straggler", "bonk=3"], "the world names 'bonk', which is no party"),
        (["simulate", "job.toml", "--straggler", "bank"], "--straggler bank: give party=times"),
        (["simulate", "job.toml", "--lanes", "many"], "lanes = 'many': expected 'requester' or 'party'"),
        (["simulate", "job.toml", "--seed", "x"], "seed = 'x': expected a whole number"),
    ],
)
def test_misuse_is_one_sentence_and_exit_2(folder, colonnade, monkeypatch, arguments, words):
    monkeypatch.chdir(folder.path)
    code, said, complaint = colonnade(*arguments)
    assert (code, said) == (2, "")
    assert words in complaint
    assert complaint.count("\n") == 1


def test_set_and_flags_mean_the_same(folder, colonnade):
    for arguments in (["--set", "max_rounds=7", "--set", "tol=0"], ["--max-rounds", "7", "--tol", "0"]):
        out = folder.path / arguments[0]
        assert colonnade("simulate", folder.job, "--out", out, "--no-fit-intercept", *arguments)[0] == 0
    first, second = (load(folder.path / name) for name in ("--set", "--max-rounds"))
    assert first.job == second.job
    assert (first.job.max_rounds, first.job.fit_intercept) == (7, False)
    assert first.trace.to_bytes() == second.trace.to_bytes()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["train", "--help"], ["simulate", "--help"]]
)
def test_help_and_version(colonnade, arguments):
    code, said, complaint = colonnade(*arguments)
    assert (code, complaint) == (0, "")
    assert (__version__ if arguments == ["--version"] else "usage: colonnade") in said


def test_help_imports_nothing_heavy():
    script = (
        "import sys; from colonnade.cli import main; code = main(['simulate', '--help']);"
        "heavy = {'numpy', 'scipy', 'pyarrow', 'numba', 'sklearn', 'rich', 'cryptography', 'plotly', 'jinja2'};"
        "sys.exit(code or ', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_module_runs_like_the_command(folder):
    process = command("check", folder.path / "none.toml")
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "none.toml: no such file" in complaint
    assert "Traceback" not in complaint


def test_a_reader_that_leaves_early_gets_no_traceback(folder):
    process = command(
        "simulate", folder.job, "--json", "--tol", "0", "--max-rounds", "3000", "--latency", "50ms"
    )
    with process:
        process.stdout.readline()
        process.stdout.close()
        complaint = process.stderr.read()
    assert (process.returncode, complaint) == (1, "")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_or_a_scheduler_s_end_keeps_what_was_reached(folder, sign):
    process = command(
        "train", folder.job, "--json", "--tol", "0", "--max-rounds", "100000000", start_new_session=True
    )
    for line in process.stdout:
        if json.loads(line)["event"] == "progress":
            break
    time.sleep(0.2)
    (os.killpg if sign is signal.SIGINT else os.kill)(process.pid, sign)
    said, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in complaint
    assert json.loads(said.splitlines()[-1])["outcome"] == "interrupted"
    report = load(folder.path / "runs" / "job-1")
    assert report.outcome == "interrupted"
    assert all(np.isfinite(weights).all() for weights in report.weights.values())


def test_ctrl_c_before_a_run_is_quiet(folder, colonnade, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("colonnade.cli.training.gather", interrupt)
    assert colonnade("simulate", folder.job) == (130, "", "colonnade: interrupted\n")


def test_a_bug_is_one_sentence_unless_asked_for_more(folder, colonnade, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("of our own")

    monkeypatch.setattr("colonnade.cli.training.gather", fail)
    monkeypatch.delenv("COLONNADE_DEBUG", raising=False)
    code, _, complaint = colonnade("simulate", folder.job)
    assert code == 1
    assert complaint == "colonnade: a bug: ZeroDivisionError: of our own (COLONNADE_DEBUG=1 shows where)\n"
    monkeypatch.setenv("COLONNADE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        colonnade("simulate", folder.job)


def test_every_command_has_a_room():
    from colonnade.cli.arguments import COMMANDS

    assert set(colonnade.cli.ROOMS) == set(COMMANDS)


def test_check_warns_of_a_column_that_is_far_larger_than_the_others(folder, colonnade):
    assert "times as large" not in colonnade("check", folder.job)[1]
    table = (folder.path / "shop.csv").read_text().splitlines()
    rows = [row.split(",") for row in table[1:]]
    grown = [f"{key},{float(spend) * 5e4},{city}" for key, spend, city in rows]
    folder.write("shop.csv", "\n".join([table[0], *grown, ""]))
    code, said, _ = colonnade("check", folder.job)
    assert code == 0
    assert "warning: shop's column 'spend' is" in said
    assert "set standardise = true under [prepare] in shop.toml" in said
