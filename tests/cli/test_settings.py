"""Structs from TOML and from flags: one declaration, the same refusals."""

import msgspec
import pytest

from colonnade.cli.arguments import RATES, TIMES, WorldFlags, world_settings
from colonnade.cli.jobfile import JobFile, PartyFile, override
from colonnade.cli.settings import amount, build, options, read_toml
from colonnade.data.preparation import Prepare
from colonnade.errors import ConfigurationError
from colonnade.job import Job


@pytest.mark.parametrize(
    "data, words",
    [
        ({"job": {"batchsize": 3}}, "job.toml: [job] unknown key 'batchsize': did you mean 'batch_size'?"),
        ({"jobs": {}}, "job.toml: unknown key 'jobs': did you mean 'job'?"),
        ({"job": {"batch_size": "many"}}, "[job] batch_size = 'many': expected a whole number"),
        ({"job": {"fit_intercept": 1}}, "[job] fit_intercept = 1: expected true or false"),
        ({"job": {"loss": "logistik"}}, "[job] loss = 'logistik': did you mean 'logistic'?"),
        ({"job": {"step": "fast"}}, "[job] step = 'fast': expected a number or 'auto'"),
        ({"job": {"parties": 2.5}}, "[job] parties = 2.5: expected a list of names or a whole number"),
        ({"job": {"alpha": -1}}, "job.toml: [job] alpha = -1.0: give a number of at least 0"),
        ({"job": {"step": 2, "alpha": 1}}, "step * alpha = 2 is not below 1"),
        ({"job": 3}, "job = 3: expected a section"),
        (
            {"parties": {"bank": {"adress": "x"}}},
            "[parties.bank] unknown key 'adress': did you mean 'address'?",
        ),
        ({"parties": {"bank": {"address": 1}}}, "[parties.bank] address = 1: expected text"),
        ({"local": {}}, "[local] table is missing: give text"),
        ({"local": {"table": "t.csv", "columns": {"a": 3}}}, "[local] columns = {…}: expected a section"),
        ({"local": {"table": "t", "prepare": {"mising": 1}}}, "[local.prepare] unknown key 'mising'"),
    ],
)
def test_a_refused_key_is_named_with_its_section(data, words):
    with pytest.raises(ConfigurationError) as caught:
        build(JobFile, data, "job.toml")
    assert words in str(caught.value)


def test_what_is_right_is_kept():
    file = build(
        JobFile,
        {
            "job": {"parties": ["b", "a"], "step": 1, "labels": ["a"]},
            "parties": {"b": {"columns": [1, "x"]}},
            "local": {"table": "t.svm", "label": True, "columns": {"a": "1:3", "b": [4, "5"]}},
        },
        "job.toml",
    )
    assert file.job == Job(parties=("b", "a"), step=1.0, labels=("a",))
    assert file.parties["b"].columns == (1, "x")
    assert file.local.columns == {"a": "1:3", "b": (4, "5")}
    assert file.local.prepare == Prepare()


@pytest.mark.parametrize("struct", [Job, Prepare, PartyFile, JobFile, WorldFlags])
def test_every_option_says_what_it_is(struct):
    for option in options(struct).values():
        assert option.help, option.name
        assert option.expected
        assert option.flag.startswith("--")


@pytest.mark.parametrize(
    "name, text, value",
    [
        ("step", "0.1", 0.1),
        ("step", "auto", "auto"),
        ("batch_size", "64", 64),
        ("tol", "1e-3", 1e-3),
        ("fit_intercept", "false", False),
        ("labels", "bank", ["bank"]),
        ("labels", "bank, shop", ["bank", "shop"]),
        ("labels", '["bank"]', ["bank"]),
        ("parties", "8", 8),
        ("method", "afsvrg", "afsvrg"),
        ("method", '"afsvrg"', "afsvrg"),
    ],
)
def test_overrides_read_as_toml_or_bare(name, text, value):
    assert override({name: text}) == {name: value}
    assert msgspec.convert(override({name: text}), Job) is not None


def test_an_override_of_an_unknown_field_is_refused():
    with pytest.raises(
        ConfigurationError, match=r"--set stepp: the job has no such field: did you mean 'step'"
    ):
        override({"stepp": "1"})


def test_one_hot_auto_is_no_column():
    assert options(Prepare)["one_hot"].parse("auto") == "auto"
    assert options(Prepare)["one_hot"].parse("city") == ["city"]


@pytest.mark.parametrize(
    "text, units, value",
    [
        ("20ms", TIMES, 0.02),
        ("0.5", TIMES, 0.5),
        ("3 s", TIMES, 3.0),
        ("100Mbit", RATES, 12.5e6),
        ("2MB/s", RATES, 2e6),
    ],
)
def test_amounts(text, units, value):
    assert amount(text, units, "--x") == pytest.approx(value)


@pytest.mark.parametrize("text", ["fast", "20 parsec", "", "ms", "1-2"])
def test_amounts_refused(text):
    with pytest.raises(ConfigurationError, match=r"--latency = .*: give a number"):
        amount(text, TIMES, "--latency")


def test_world_settings_are_those_of_world():
    from colonnade.runtime.world import World

    flags = WorldFlags(latency="20ms", bandwidth="1MB", straggler=("bank=4", "shop=2"), jitter="1ms", seed=3)
    world = World(**world_settings(flags))
    assert (world.latency, world.bandwidth, world.jitter, world.seed) == (0.02, 1e6, 1e-3, 3)
    assert world.speeds == {"bank": 0.25, "shop": 0.5}


@pytest.mark.parametrize("text", ["bank", "bank=", "bank=0", "bank=x", "bank=-1"])
def test_stragglers_refused(text):
    with pytest.raises(ConfigurationError, match="--straggler"):
        world_settings(WorldFlags(straggler=(text,)))


def test_toml_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigurationError, match="no such file"):
        read_toml(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[job\n")
    with pytest.raises(ConfigurationError, match="not TOML"):
        read_toml(tmp_path / "bad.toml")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_toml(tmp_path)
