"""Progress: a line a second at most, a table on a terminal, JSON for machines."""

import io
import json

import pytest
from rich.console import Console

from colonnade.cli.progress import JsonProgress, LiveProgress, PlainProgress, progress, summary

EVENT = {
    "rounds": 1234,
    "objective": 0.5,
    "certificate": 1e-3,
    "computing": 0.5,
    "communicating": 0.25,
    "waiting": 0.25,
}


def test_plain_lines_come_at_most_once_a_second(capsys):
    now = [0.0]
    shown = PlainProgress("bank", clock=lambda: now[0])
    for tick in range(35):
        now[0] = tick / 10
        shown.watch("bank", EVENT)
        shown.watch("shop", EVENT)
    shown.close()
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["1,234 rounds, objective about 0.500000, certified gap 1.00e-03"] * 3


def test_what_is_not_known_is_left_out():
    assert summary({"rounds": 3, "objective": None, "certificate": None}) == "3 rounds"


def test_json_events_name_their_party(capsys):
    JsonProgress().watch("bank", EVENT)
    assert json.loads(capsys.readouterr().out) == {"event": "progress", "party": "bank", **EVENT}


def test_the_table_shows_shares_of_time_and_escapes_names(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr("rich.live.get_console", lambda: Console(file=screen, force_terminal=True, width=80))
    shown = LiveProgress("bank")
    shown.watch("bank", EVENT)
    shown.watch("[red]shop", {**EVENT, "computing": 0, "communicating": 0, "waiting": 0})
    shown.close()
    for words in ("1,234 rounds", "computing", "50%", "[red]shop", "0%"):
        assert words in screen.getvalue()


@pytest.mark.parametrize(
    "terminal, json, kind",
    [(True, False, LiveProgress), (False, False, PlainProgress), (True, True, JsonProgress)],
)
def test_the_kind_follows_from_where_it_is_read(monkeypatch, terminal, json, kind):
    monkeypatch.setattr("sys.stdout", type("Stream", (io.StringIO,), {"isatty": lambda _: terminal})())
    shown = progress("bank", json)
    shown.close()
    assert isinstance(shown, kind)
