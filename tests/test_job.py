"""Jobs that make no sense are refused when they are made, in one sentence with the remedy."""

import msgspec
import pytest

import colonnade as cn
from colonnade.errors import ConfigurationError
from colonnade.job import check_names, plan

NAMES = ("bank", "shop", "club")

REFUSED = {
    "loss": ({"loss": "logistik"}, r"loss = 'logistik': did you mean 'logistic'"),
    "method": ({"method": "adam"}, r"method = 'adam': known: auto, afsgd"),
    "schedule": ({"schedule": "synchron"}, r"did you mean 'synchronous'"),
    "sharing": ({"sharing": "all"}, r"sharing = 'all'"),
    "aggregation": ({"aggregation": "pairwize"}, r"did you mean 'pairwise'"),
    "negative alpha": ({"alpha": -1.0}, "alpha = -1.0"),
    "infinite alpha": ({"alpha": float("inf")}, "alpha = inf"),
    "nan alpha": ({"alpha": float("nan")}, "alpha = nan"),
    "true alpha": ({"alpha": True}, "alpha = True"),
    "empty batch": ({"batch_size": 0}, "batch_size = 0: give a whole number"),
    "half a batch": ({"batch_size": 1.5}, "batch_size = 1.5"),
    "no step": ({"step": 0.0}, 'step = 0.0: give a positive number, or "auto"'),
    "a word for a step": ({"step": "fast"}, "step = 'fast'"),
    "overshooting": ({"step": 20.0, "alpha": 0.05}, r"step \* alpha = 1 is not below 1.*lower the step"),
    "negative tol": ({"tol": -1e-9}, "tol"),
    "negative rounds": ({"max_rounds": -1}, "max_rounds = -1"),
    "no seconds": ({"max_seconds": 0}, "max_seconds = 0: give seconds above 0"),
    "no timeout": ({"timeout": 0}, "timeout"),
    "a random seed": ({"random_state": None}, "random_state = None"),
    "nobody": ({"parties": 0}, "parties = 0"),
    "true parties": ({"parties": True}, "parties = True"),
    "twice": ({"parties": ("bank", "bank")}, "'bank' is named twice"),
    "a path": ({"parties": ("../bank",)}, "letters, digits"),
    "no labels": ({"labels": ()}, r"labels = \[\]: name at least one"),
    "own, together": (
        {"sharing": "own", "schedule": "synchronous"},
        r'one total for everybody.*use sharing = "push"',
    ),
    "no intercept to penalise": (
        {"penalise_intercept": True, "fit_intercept": False},
        "needs fit_intercept = true",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(case):
    fields, words = REFUSED[case]
    with pytest.raises(ConfigurationError, match=words):
        cn.Job(**fields)


def refused(words, job=None, names=NAMES, rows=1_000, **more):
    with pytest.raises(ConfigurationError, match=words):
        plan(job or cn.Job(**more), names, rows, 1)


def test_what_makes_no_sense_for_these_parties_is_refused():
    refused(r"\['bank'\], the blocks are \['bank', 'shop', 'club'\]", parties=("bank",))
    refused("same order", parties=("shop", "bank", "club"))
    refused("the job is for 2 parties and there are 3 blocks", parties=2)
    refused("labels names 'shopp', which is no party: did you mean 'shop'", labels=("shopp",))
    refused("batch_size = 128 is larger than the 100 rows", rows=100)
    refused("\"own\" while 'shop' holds no labels", sharing="own", labels=("bank",))
    refused('"two-tree" needs three parties.*"pairwise"', names=("a", "b"), aggregation="two-tree")
    refused("'bank' is named twice", names=("bank", "bank"))


def test_unknown_fields_are_refused():
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"los": "squared"}, cn.Job)


@pytest.mark.parametrize(
    "fields, sharing, requesters, receivers",
    [
        ({}, "own", NAMES, ()),
        ({"sharing": "push"}, "push", ("bank",), ("shop", "club")),
        ({"schedule": "synchronous"}, "push", ("bank",), ("shop", "club")),
        ({"labels": ("shop",)}, "push", ("shop",), ("bank", "club")),
        ({"labels": ("club", "bank")}, "push", ("bank", "club"), ("shop",)),
        ({"labels": ("club", "bank"), "schedule": "synchronous"}, "push", ("bank",), ("shop", "club")),
    ],
)
def test_who_asks_and_who_is_told(fields, sharing, requesters, receivers):
    agreed = plan(cn.Job(**fields), NAMES, 1_000, 1)
    assert (agreed.sharing, agreed.requesters, agreed.receivers) == (sharing, requesters, receivers)
    assert agreed.coordinator == agreed.labels[0] == requesters[0]


def test_the_order_of_labels_in_a_job_does_not_matter():
    one, other = (plan(cn.Job(labels=labels), NAMES, 1_000, 1) for labels in (NAMES, NAMES[::-1]))
    assert one.labels == other.labels == NAMES


def test_labels_of_the_job_come_before_those_of_the_tables():
    assert plan(cn.Job(), NAMES, 1_000, 1, labels=("shop",)).labels == ("shop",)
    assert plan(cn.Job(labels=("club",)), NAMES, 1_000, 1, labels=("shop",)).labels == ("club",)


@pytest.mark.parametrize("field", cn.Job.__struct_fields__)
def test_parties_that_differ_in_any_field_do_not_meet(field):
    other = {
        "loss": "squared",
        "method": "afsgd",
        "schedule": "synchronous",
        "sharing": "push",
        "aggregation": "plain",
        "parties": NAMES,
        "labels": ("bank",),
        "fit_intercept": False,
        "penalise_intercept": True,
        "step": 0.5,
    }.get(field, 7)
    one, two = cn.Job(), cn.Job(**{field: other})
    assert one.digest() != two.digest()
    assert plan(one, NAMES, 1_000, 1).digest() != plan(two, NAMES, 1_000, 1).digest()


def test_a_digest_is_that_of_the_job_alone():
    assert cn.Job(alpha=0.5, tol=0.0).digest() == cn.Job(tol=0.0, alpha=0.5).digest()


def test_many_parties_are_named_quickly():
    check_names([f"p{number}" for number in range(1_000)])


def test_classes_count_for_the_multinomial_loss_only():
    assert plan(cn.Job(), NAMES, 1_000, 2).classes == 1
    assert plan(cn.Job(loss="multinomial"), NAMES, 1_000, 3).classes == 3
