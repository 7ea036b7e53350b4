"""Exposure: each rule of what totals, slopes and trees tell, before a run and by the counts after it."""

from __future__ import annotations

import pytest

from colonnade.job import Job, plan
from colonnade.privacy.aggregation import AGGREGATIONS
from colonnade.privacy.exposure import SEVERITIES, expected, observed
from colonnade.privacy.leakage import pairs_that_see
from colonnade.privacy.trees import two_trees

NAMES = ("bank", "shop", "post", "club")
COLUMNS = {"bank": 5, "shop": 3, "post": 4, "club": 7}


def planned(q=3, classes=2, rows=100, **fields):
    return plan(Job(**{"batch_size": 10, **fields}), NAMES[:q], rows, classes)


def told(findings, party=None, severity=None, word=""):
    return [
        finding
        for finding in findings
        if party in (None, finding.party)
        and severity in (None, finding.severity)
        and word in finding.sentence
    ]


def test_findings_are_whole_sentences_and_warnings_come_first():
    for aggregation in ("plain", "two-tree", "pairwise"):
        for labels in (("bank",), NAMES[:3]):
            for loss in ("logistic", "multinomial", "squared"):
                job = planned(aggregation=aggregation, labels=labels, loss=loss, batch_size=1, classes=3)
                found = expected(job, COLUMNS)
                assert found
                order = [SEVERITIES.index(finding.severity) for finding in found]
                assert order == sorted(order)
                for finding in found:
                    assert finding.sentence[0].isupper() or finding.sentence.startswith(NAMES)
                    assert finding.sentence.endswith(".")
                    assert "{" not in finding.sentence
                    assert finding.party
                    assert finding.about


def test_one_party_alone_tells_nobody():
    assert expected(planned(1), COLUMNS) == []
    assert observed(planned(1), COLUMNS, {"bank": {"totals": 9}}) == []


@pytest.mark.parametrize(
    "loss, says",
    [("logistic", "the labels of these"), ("multinomial", "class"), ("squared", "how far from its label")],
)
def test_slopes_tell_the_labels_to_those_without(loss, says):
    job = planned(labels=("bank",), loss=loss, classes=3)
    found = told(expected(job, COLUMNS), severity="warning", word="slope")
    assert {finding.party for finding in found} == {"shop", "post"}
    assert {finding.about for finding in found} == {"bank"}
    assert all(says in finding.sentence for finding in found)


def test_slopes_that_were_sent_are_counted_and_those_that_were_not_are_not_mentioned():
    found = observed(planned(labels=("bank",)), COLUMNS, {"shop": {"slopes": 12345}})
    (finding,) = told(found, word="slopes")
    assert finding.party == "shop"
    assert "12,345" in finding.sentence


def test_nobody_is_sent_slopes_where_all_hold_labels():
    for sharing in ("own", "push"):
        assert told(expected(planned(sharing=sharing), COLUMNS), word="slope") == []


@pytest.mark.parametrize("aggregation", ["pairwise", "plain"])
def test_two_parties_tell_each_other_their_share(aggregation):
    job = planned(2, aggregation=aggregation)
    found = told(expected(job, COLUMNS), severity="warning", word="With two parties")
    assert [(finding.party, finding.about) for finding in found] == [("bank", "shop"), ("shop", "bank")]
    counted = told(observed(job, COLUMNS, {"bank": {"scores": 40}}), word="With two parties")
    assert [finding.party for finding in counted] == ["bank"]
    assert "40 row scores" in counted[0].sentence
    assert told(expected(planned(3), COLUMNS), word="With two parties") == []


def test_squared_slopes_do_not_tell_scores():
    for loss, knows in [("squared", {"bank"}), ("logistic", {"bank", "shop"})]:
        found = told(expected(planned(2, labels=("bank",), loss=loss), COLUMNS), word="With two parties")
        assert {finding.party for finding in found} == knows


@pytest.mark.parametrize(
    "q, party, classes, loss, needed",
    [
        (4, "club", 2, "logistic", 12),
        (3, "bank", 2, "logistic", 7),
        (4, "club", 3, "multinomial", 4),
        (3, "bank", 4, "multinomial", 2),
    ],
)
def test_totals_of_all_rows_span_the_others_columns(q, party, classes, loss, needed):
    """Each full pass gives one number a row, or one a class."""
    job = planned(q, loss=loss, classes=classes)
    (finding,) = told(expected(job, COLUMNS), party=party, word="totals of all rows")
    assert finding.severity == "note"
    assert f"at {needed} different weights" in finding.sentence


@pytest.mark.parametrize(
    "counts, severity", [((6, 0), "info"), ((7, 0), "warning"), ((2, 699), "info"), ((2, 700), "note")]
)
def test_full_passes_are_held_against_the_number_that_suffices(counts, severity):
    received = {"bank": {"full_passes": counts[0], "scores": counts[1]}}
    (finding,) = told(observed(planned(3), COLUMNS, received), party="bank", word="totals of all rows")
    assert finding.severity == severity
    assert "7" in finding.sentence


def test_secret_numbers_of_columns_are_not_guessed():
    known = {"bank": 5}
    (before,) = told(expected(planned(3), known), party="bank", word="totals of all rows")
    assert "as many as the others have columns" in before.sentence
    after = observed(planned(3), known, {"bank": {"full_passes": 10**6, "scores": 10**9}})
    assert told(after, party="bank", word="totals of all rows")[0].severity == "info"


def test_single_rows_are_noticed():
    assert len(told(expected(planned(batch_size=1), COLUMNS), word="one row at a time")) == 3
    assert told(expected(planned(batch_size=2), COLUMNS), word="one row at a time") == []
    (finding,) = told(observed(planned(), COLUMNS, {"shop": {"rows_asked_alone": 3}}), word="single row")
    assert (finding.party, finding.about) == ("shop", "bank, post")


def test_plain_names_every_parent_and_child():
    job = planned(4, aggregation="plain", schedule="synchronous")
    found = {finding.party: finding for finding in told(expected(job, COLUMNS), word="Nothing is masked")}
    assert set(found) == {"bank", "shop"}
    assert (
        "the scores that post computed alone and sums over the few parties that send by way of shop"
        in found["bank"].sentence
    )
    assert found["shop"].about == "club"
    (seen,) = told(observed(job, COLUMNS, {"shop": {"shares_in_clear": 8}}), word="Nothing is masked")
    assert "(8 messages)" in seen.sentence
    everybody = planned(4, aggregation="plain")
    assert {finding.party for finding in told(expected(everybody, COLUMNS), word="Nothing is masked")} == set(
        NAMES
    )


def test_two_tree_lists_the_pairs_by_whom_they_see():
    job = planned(4, aggregation="two-tree", schedule="synchronous")
    found = told(expected(job, COLUMNS), word="put together")
    assert [(finding.about, finding.party) for finding in found] == [
        ("shop", "bank and club"),
        ("post", "bank and club"),
    ]


def test_pairs_are_listed_for_every_requester():
    job = planned(4, aggregation="two-tree", sharing="own")
    seen = set()
    for requester in range(4):
        for pair, victims in pairs_that_see(4, *two_trees(4), requester, told=True).items():
            seen |= {(NAMES[victim], " and ".join(NAMES[party] for party in pair)) for victim in victims}
    found = told(expected(job, COLUMNS), word="put together")
    assert {(finding.about, pair) for finding in found for pair in finding.party.split("; ")} == seen


def test_two_tree_with_many_parties_speaks_in_general():
    names = [f"p{i}" for i in range(70)]
    job = plan(Job(batch_size=10, aggregation="two-tree", schedule="synchronous"), names, 100, 2)
    (finding,) = told(expected(job, dict.fromkeys(names, 1)), word="Certain pairs")
    assert finding.severity == "note"
    assert "and 61 more" in told(expected(job, {}), party="p0", word="totals of all rows")[0].about


def test_pairwise_says_that_only_all_others_together_see_a_share():
    (finding,) = told(expected(planned(3), COLUMNS), word="all the others together")
    assert finding.severity == "info"
    assert told(expected(planned(3, aggregation="plain"), COLUMNS), word="all the others together") == []


def test_what_is_learnt_at_all_is_said():
    assert len(told(expected(planned(3), COLUMNS), severity="info", word="sums over all parties")) == 3
    found = told(observed(planned(3), COLUMNS, {"post": {"scores": 1200}}), word="sums over all parties")
    assert [finding.sentence for finding in found] == ["post learnt 1,200 row scores: sums over all parties."]


def test_plain_edges_are_those_of_the_tree_of_each_requester():
    job = planned(4, aggregation="plain", labels=("post",))
    found = {finding.party: finding for finding in told(expected(job, COLUMNS), word="Nothing is masked")}
    tree = AGGREGATIONS["plain"].tree
    for position, name in enumerate(NAMES):
        children = tree(4, 2, position)[1]
        assert (name in found) == bool(children)
        for child in children:
            assert NAMES[child] in found[name].about
