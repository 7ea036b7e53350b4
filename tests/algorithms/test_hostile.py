"""A peer that breaks the protocol in the middle of a run: its link ends, the outcome names it, memory stays bounded."""

import tracemalloc

import numpy as np
import pytest

import colonnade as cn
from colonnade.algorithms.party import Party
from colonnade.core.blocks import as_block
from colonnade.federation import run
from colonnade.job import plan
from colonnade.runtime.network import NetworkHost
from colonnade.runtime.simulated import Simulation
from colonnade.wire import messages as m
from colonnade.wire.codec import encode
from spine import problem

NAMES = ("p0", "p1", "p2", "p3")
WHEN = 2e-3
FAR = 10**6
ROWS = np.arange(5, dtype="<u4").tobytes()


class Stage:
    """A run of four parties in which one of them says, at some instant, what it should not."""

    def __init__(self, speaker, aggregation="plain", labels=None, **more):
        table = problem()
        settings = {"alpha": 0.05, "batch_size": 20, "step": 0.3, "tol": 0.0, "max_rounds": 2_000}
        job = cn.Job(aggregation=aggregation, labels=labels, **{**settings, **more})
        self.simulation = Simulation(cn.World(latency=1e-5), NAMES)
        self.plan = plan(job, NAMES, 120, 1)
        self.parties = {
            name: Party(
                self.simulation.hosts[name],
                self.plan,
                as_block(block),
                table.encoded() if name in self.plan.labels else None,
                b"",
                None,
            )
            for name, block in zip(NAMES, table.blocks(4), strict=True)
        }
        self.speaker = speaker

    @property
    def incarnation(self):
        return self.parties[self.speaker].peers.incarnation

    def say(self, *messages, to="p1"):
        """Past all checks of the speaker's own side."""
        host = self.simulation.hosts[self.speaker]
        link = host.connect(to).result()
        for message in messages:
            link.write(message if isinstance(message, bytes) else encode(message))

    def play(self, act, when=WHEN):
        self.simulation.clock.at(when, lambda _: act(), None)
        finished = {name: party.begin() for name, party in self.parties.items()}
        self.simulation.run(finished)
        return {name: promise.result() for name, promise in finished.items() if name != self.speaker}

    def ask(self, **changed):
        own = self.parties[self.speaker].exchange
        fields = {
            "requester": NAMES.index(self.speaker),
            "incarnation": self.incarnation,
            "round": own.current_round + FAR,
            "what": m.SCORES,
            "after": 0,
            "done": 0,
            "start": 0,
            "stop": 0,
            "rows": ROWS,
        }
        return m.Ask(**{**fields, **changed})

    def push(self, **changed):
        fields = {
            "incarnation": self.incarnation,
            "round": FAR,
            "learnt": 0,
            "start": 0,
            "values": bytes(40),
        }
        return m.Push(**{**fields, **changed})


def assert_blamed(results, speaker, words=""):
    for name, result in results.items():
        assert result.outcome == "peer lost", (name, result.outcome, result.detail)
        assert f"peer lost: {speaker} (" in result.detail, (name, result.detail)
        assert np.all(np.isfinite(result.weights))
    assert any(words in result.detail for result in results.values()), results["p1"].detail


SAID = {
    "garbage": (lambda s: b"\xff\x00garbage", "no message of this protocol"),
    "nothing": (lambda s: b"", "no message of this protocol"),
    "half a message": (lambda s: encode(s.ask())[:-3], "no message of this protocol"),
    "a long array": (lambda s: b"\x9f" * 3_000, "no message of this protocol"),
    "another hello": (
        lambda s: m.Hello(1, bytes(32), "p2", 0, 120, bytes(32), b""),
        "sent Hello while OPEN",
    ),
    "a row check again": (lambda s: m.RowCheck(bytes(32)), "sent RowCheck while OPEN"),
    "a share nobody asked for": (lambda s: m.Share(1, 0, FAR, 0, bytes(40)), "we did not ask it"),
    "a mask without masks": (lambda s: m.Mask(1, 0, FAR, 0, bytes(40)), "sent Mask while OPEN"),
    "a row that is not there": (
        lambda s: s.ask(rows=np.array([120], "<u4").tobytes()),
        "row 120 of 120",
    ),
    "too many rows": (lambda s: s.ask(rows=np.zeros(21, "<u4").tobytes()), "more than a batch of 20"),
    "a range that is none": (lambda s: s.ask(rows=b"", start=7, stop=7), "rows 7 to 7"),
    "an unknown quantity": (lambda s: s.ask(what=9, rows=b""), "no quantity 9"),
    "another's sum": (lambda s: s.ask(requester=3), "not theirs to pass on"),
    "our own sum": (lambda s: s.ask(requester=1), "a sum of our own"),
    "an old round": (lambda s: s.ask(round=1), "again"),
    "another incarnation": (lambda s: s.ask(incarnation=s.incarnation ^ 1), "incarnation"),
    "a push": (lambda s: s.push(), "only the coordinator's totals move others"),
    "stop": (lambda s: m.Stop("converged", "done", None), "sent Stop while OPEN"),
    "a retreat": (lambda s: m.Retreat(0, 0.0), "sent Retreat while OPEN"),
    "a pace": (lambda s: m.Pace(1e300), "sent Pace while OPEN"),
    "a bye": (lambda s: m.Bye(), "sent Bye while OPEN"),
    "stopped too early": (lambda s: m.Stopped(), "sent Stopped while OPEN"),
    "a halt with another's outcome": (lambda s: m.Halt("converged", "trust me"), "outcome that is none"),
}


@pytest.mark.parametrize("said", SAID)
def test_what_may_not_be_said_ends_the_link_and_names_who_said_it(said):
    stage = Stage("p2", aggregation="pairwise")
    make, words = SAID[said]
    results = stage.play(lambda: stage.say(make(stage)))
    assert_blamed(results, "p2", words)


def test_one_who_holds_no_labels_may_not_ask():
    stage = Stage("p2", labels=("p0", "p1"), aggregation="pairwise")
    assert_blamed(stage.play(lambda: stage.say(stage.ask())), "p2", "asks for no sums")


@pytest.mark.parametrize("aggregation", ["plain", "two-tree", "pairwise"])
def test_a_share_sent_twice_is_refused(aggregation, monkeypatch):
    from colonnade.runtime.simulated import SimulatedLink

    spoken = SimulatedLink.write
    share = encode(m.Share(0, 0, 1, 0, b""))[:2]

    def twice(link, frame):
        spoken(link, frame)
        if link._sender.name == "p2" and link._clock.now > WHEN and bytes(frame[1:2]) == share[1:2]:
            spoken(link, frame)

    monkeypatch.setattr(SimulatedLink, "write", twice)
    assert_blamed(Stage("p2", aggregation).play(lambda: None), "p2", "p2")


@pytest.mark.parametrize("cut", [0, 8, -8, 4])
@pytest.mark.parametrize("aggregation", ["plain", "two-tree", "pairwise"])
def test_words_of_another_size_are_refused(aggregation, cut, monkeypatch):
    def resized(*fields):
        *head, words = fields
        words = bytes(words)
        return m.Share(*head, words[:cut] if cut <= 0 else words + bytes(cut))

    stage = Stage("p2", aggregation)
    sent = stage.parties["p2"].peers.send_all

    def send_all(positions, message):
        if type(message) is m.Share and stage.simulation.clock.now > WHEN:
            message = resized(
                message.requester, message.incarnation, message.round, message.start, message.words
            )
        sent(positions, message)

    stage.parties["p2"].peers.send_all = send_all
    assert_blamed(stage.play(lambda: None), "p2")


def masks_parent(stage, of, requester):
    """To whom `of` sends masks in the requester's tree."""
    exchange = stage.parties[of].exchange
    return exchange._tree(requester)[1][0]


@pytest.mark.parametrize("requester", [0, 1, 3])
def test_early_masks_of_the_wrong_size_end_the_link_of_who_sent_them(requester):
    stage = Stage("p2", "two-tree")
    parent = masks_parent(stage, "p2", requester)
    asking = stage.parties[NAMES[requester]]

    def act():
        following = asking.exchange.current_round + 1
        stage.say(m.Mask(requester, asking.peers.incarnation, following, 0, bytes(24)), to=NAMES[parent])

    results = stage.play(act)
    assert_blamed(results, "p2", "" if parent == requester else "24 bytes came where 160")


def test_a_flood_of_masks_for_rounds_to_come_is_bounded():
    stage = Stage("p2", "two-tree", batch_size=100)
    requester = next(r for r in (0, 1, 3) if masks_parent(stage, "p2", r) != r)
    parent = masks_parent(stage, "p2", requester)
    incarnation = stage.parties[NAMES[requester]].peers.incarnation

    def act():
        stage.say(
            *(m.Mask(requester, incarnation, FAR + number, 0, bytes(800)) for number in range(5_000)),
            to=NAMES[parent],
        )

    results = stage.play(act)
    assert_blamed(results, "p2", "opened")
    assert len(stage.parties[NAMES[parent]].exchange._open) < 40


def test_a_flood_of_asks_that_can_never_be_answered_is_bounded():
    """A coordinator that asks for what is to follow steps that nobody will ever take."""
    stage = Stage("p0", "pairwise", schedule="synchronous")

    def act():
        for number in range(2_000):
            stage.say(stage.ask(round=FAR + number, after=2**40))

    results = stage.play(act)
    assert_blamed(results, "p0", "opened")
    assert len(stage.parties["p1"].exchange._open) < 40
    assert len(stage.parties["p1"].exchange._behind) < 40


PUSHED = {
    "a round it never asked for": (lambda s: s.push(learnt=1), "which it did not ask for"),
    "an old round": (lambda s: s.push(round=1, learnt=1), "which it did not ask for"),
    "scores to one without labels": (
        lambda s: s.push(round=s.parties["p0"].exchange.current_round, learnt=0),
        "without labels",
    ),
    "half a row": (lambda s: s.push(learnt=1, values=bytes(41)), "multiple of 8"),
    "more rows than there are": (lambda s: s.push(learnt=1, values=bytes(8 * 121)), "121 rows"),
}


@pytest.mark.parametrize("pushed", PUSHED)
def test_what_the_coordinator_may_not_push_ends_its_link(pushed):
    stage = Stage("p0", labels=("p0",))
    make, words = PUSHED[pushed]
    results = stage.play(lambda: stage.say(make(stage)))
    assert all(result.outcome == "peer lost" for result in results.values())
    assert_blamed({"p1": results["p1"]}, "p0", words)


@pytest.mark.parametrize("method", ["afsgd", "afsaga"])
def test_a_push_comes_once(method):
    stage = Stage("p0", labels=("p0",), method=method)
    sent = stage.parties["p0"].peers.send_all

    def twice(positions, message):
        sent(positions, message)
        if type(message) is m.Push:
            sent(positions, message)

    stage.parties["p0"].peers.send_all = twice
    assert_blamed(stage.play(lambda: None), "p0", "pushed")


def test_a_push_of_fewer_rows_than_were_asked_for_is_refused():
    stage = Stage("p0", labels=("p0",), method="afsgd")
    sent = stage.parties["p0"].peers.send_all

    def fewer(positions, message):
        if type(message) is m.Push:
            message = m.Push(
                message.incarnation, message.round, message.learnt, message.start, message.values[:-8]
            )
        sent(positions, message)

    stage.parties["p0"].peers.send_all = fewer
    assert_blamed(stage.play(lambda: None), "p0", "pushed 19 rows")


def test_memory_stays_bounded_under_everything_that_may_be_said_often():
    """Thousands of asks, each answered: nothing is kept of them."""
    stage = Stage("p2", "pairwise", max_rounds=50)

    def act():
        stage.say(*(stage.ask(round=FAR + number) for number in range(20_000)))

    tracemalloc.start()
    stage.play(act, when=1e-3)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    exchange = stage.parties["p1"].exchange
    assert len(exchange._open) < 40
    assert kept < 2**24


def test_a_long_run_leaves_nothing_behind():
    for labels, aggregation in ((None, "two-tree"), (("p0",), "plain"), (("p1", "p2"), "pairwise")):
        stage = Stage("p3", aggregation, labels, method="afsvrg", max_rounds=600)
        stage.play(lambda: None)
        for party in stage.parties.values():
            exchange = party.exchange
            assert len(exchange._open) <= 4
            assert len(exchange._answered) <= 64
            assert not exchange._behind
            assert len(party.passes._frozen) <= 4
            for peer in party.peers._peers.values():
                assert len(peer.conversation._answers) <= 4


def test_a_key_that_its_identity_did_not_sign_ends_the_run():
    stage = Stage("p2")
    stage.simulation.hosts["p2"].sign = lambda claim: b"forged"
    for result in stage.play(lambda: None).values():
        assert result.outcome == "peer lost"
        assert "p2" in result.detail


@pytest.mark.parametrize(
    "change",
    [lambda claim: claim[:-1] + bytes([claim[-1] ^ 1]), lambda claim: b"another claim"],
    ids=["another key", "anything else"],
)
def test_a_signature_over_something_else_is_refused_over_real_links(monkeypatch, change):
    honest = NetworkHost.sign

    def sign(host, claim):
        return honest(host, change(claim) if host.name == "p1" else claim)

    monkeypatch.setattr(NetworkHost, "sign", sign)
    table = problem()
    report = run(cn.Job(batch_size=20, max_rounds=5), "loopback", table.blocks(2), table.y)
    assert report.outcome == "peer lost"
    assert "its key is not signed by its identity" in report.detail
    assert "p1" in report.detail
