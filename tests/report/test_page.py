"""The page shows the report's numbers, and nothing in it can run or fetch."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from sample_report import a_report

from colonnade.errors import DataError
from colonnade.job import Job
from colonnade.privacy.exposure import Finding
from colonnade.record import OUTCOMES, Trace
from colonnade.report import page, text

EVIL = """<script>alert(1)</script>"'></style><img src=x onerror=alert(1)>{{ 7 * 7 }}"""


class Elements(HTMLParser):
    """Tags, attributes and text of a page, every element closed where it was opened."""

    EMPTY = frozenset({"meta", "input", "br", "line", "circle", "polyline"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.text += " "

    def handle_data(self, data):
        self.text += data if "style" not in self.open else ""


def test_the_page_shows_what_the_report_holds():
    shown = " ".join(Elements(page.render(a_report())).text.split())
    for piece in (
        "Converged to within 5 × 10⁻⁷ of the optimum",
        "300 rows",
        "gap to the pooled optimum 7.8 × 10⁻⁸",
        "seconds 150 s",
        "together 0.720",
        "shop 4,321",
        "sum (-4), age (0.5)",
        "models/shop.npz",
        "the intercept is bank’s",
        "method afsaga",
    ):
        assert piece in shown
    assert shown.index("Shop can read labels.") < shown.index("Bank asked twice.")


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_has_a_page_and_lines(outcome):
    report = a_report(outcome=outcome, certificate=None)
    assert Elements(page.render(report)).tags
    assert text(report).splitlines()[0] in page.render(report)
    assert "The certificate met tol." in page.render(report)


def test_untrusted_names_are_text_and_nothing_is_fetched_or_run():
    report = a_report(
        outcome="refused",
        detail=EVIL,
        columns={"bank": [EVIL, EVIL], "shop": [EVIL]},
        chosen={EVIL: EVIL, "labels": ["bank"]},
        exposure=[Finding("note", EVIL, EVIL, EVIL)],
        reference={"optimum": 0.4, "measure": EVIL, "scores": {EVIL: 0.5}},
        versions={EVIL: EVIL},
        world=EVIL,
    )
    html = page.render(report)
    elements = Elements(html)
    assert elements.text.count(EVIL) >= 12
    assert not {"script", "img", "link", "iframe", "object", "base", "a"} & set(elements.tags)
    assert not [name for name, _ in elements.attributes if name in {"src", "href"} or name.startswith("on")]
    assert "url(" not in html
    assert "@import" not in html
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in elements.attributes
    assert len(html) < 1_000_000


def test_the_gap_is_drawn_where_it_is():
    report = a_report()
    charts = page.charts(report)
    assert list(charts) == [f"{x} {y}" for x in ("seconds", "rounds", "passes") for y in ("log", "linear")]
    drawn = charts["seconds log"]
    points = np.array([pair.split(",") for pair in drawn.points.split()], dtype=float)
    seconds = drawn.x.low + (points[:, 0] - drawn.x.start) / (drawn.x.stop - drawn.x.start) * drawn.x.high
    height = (points[:, 1] - drawn.y.start) / (drawn.y.stop - drawn.y.start)
    exponent = np.log10(drawn.y.low) + height * np.log10(drawn.y.high / drawn.y.low)
    expected = np.log10(np.interp(seconds, report.trace["seconds"], report.trace["objective"] - 0.4))
    np.testing.assert_allclose(exponent, expected, atol=0.02)
    assert drawn.x.high == report.trace["seconds"][-1]


def test_without_an_optimum_the_objective_is_drawn():
    report = a_report(reference=None)
    assert list(page.charts(report)) == ["seconds linear", "rounds linear", "passes linear"]
    assert "Gap" not in Elements(page.render(report)).text


@pytest.mark.parametrize("rows", [[], [(0, 0, 0, 0, 0, 0, 0.7)], [(0, 0, 0, 0, 0, 0, np.nan)] * 3])
def test_a_run_too_short_to_draw_still_has_a_page(rows):
    report = replace(a_report(trace=Trace.from_rows(rows), objective=np.nan), workload={}, received={})
    shown = Elements(page.render(report)).text
    assert "too short to draw" in shown
    assert "unknown" in shown


def test_an_unmasked_run_says_so_loudly():
    assert "Not masked" in page.render(a_report(job=Job(aggregation="plain", batch_size=10)))


def test_a_page_replaces_the_old_one_or_is_refused(tmp_path):
    target = tmp_path / "report.html"
    target.write_text("old")
    assert page.write(a_report(), target) == target
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(DataError, match=r"could not be written to .*nowhere"):
        page.write(a_report(), tmp_path / "nowhere" / "report.html")


def test_many_parties_are_cut_short_and_counted():
    many = {f"p{i}": np.ones(1) for i in range(100)}
    html = page.render(a_report(weights=many, columns={}))
    assert "and 36 others" in html
    assert "p99" not in html
