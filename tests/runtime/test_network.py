"""The network host: links, frames, refusals, each under asyncio's own loop and under uvloop."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time

import pytest
from talkers import Talker

from colonnade.errors import ColonnadeError, ConfigurationError
from colonnade.runtime import connection as connection_module
from colonnade.runtime.eventloop import new_event_loop
from colonnade.runtime.identity import client_context, ephemeral_identity, server_context
from colonnade.runtime.mesh import bind
from colonnade.runtime.network import NetworkHost
from colonnade.wire.codec import HELLO_LIMIT

PARTIES = ("bank", "shop", "club")
IDENTITIES = {name: ephemeral_identity(name) for name in (*PARTIES, "thief")}
CERTIFICATES = {name: IDENTITIES[name].certificate_pem for name in PARTIES}


class Net:
    """Hosts of some parties on one event loop, closed at the end of a test."""

    def __init__(self, loop):
        self.loop = loop
        self.hosts = []
        self.servers = {name: bind(("127.0.0.1", 0)) for name in PARTIES}
        self.addresses = {name: server.getsockname() for name, server in self.servers.items()}

    def host(self, name, identity=None, certificates=CERTIFICATES, addresses=None, parties=PARTIES, wait=5.0):
        host = NetworkHost(
            name,
            parties,
            IDENTITIES[identity or name],
            certificates,
            addresses or self.addresses,
            self.loop,
            server=self.servers[name],
            connect_timeout=wait,
        )
        self.hosts.append(host)
        return host

    def talkers(self, *names, **options):
        return [Talker(self.host(name, parties=names, **options)) for name in names]

    def until(self, condition, seconds=5.0):
        async def wait():
            end = time.monotonic() + seconds
            while not condition():
                assert time.monotonic() < end, "this has not happened in time"
                await asyncio.sleep(0.002)

        self.loop.run_until_complete(wait())

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def close(self):
        async def close():
            await asyncio.gather(*(host.close() for host in self.hosts))

        self.run(close())
        for server in self.servers.values():
            server.close()
        self.loop.close()


@pytest.fixture(params=[asyncio.new_event_loop, new_event_loop], ids=["asyncio", "fastest"])
def net(request):
    made = Net(request.param())
    yield made
    made.close()


def linked(*talkers):
    return lambda: all(len(talker.links) == len(talkers) - 1 for talker in talkers)


async def dial(net, name, identity=None):
    """A program of somebody else that dials a party, with or without a certificate."""
    if identity is None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context = client_context(IDENTITIES[identity], [CERTIFICATES[name]])
    return await asyncio.open_connection(*net.addresses[name], ssl=context, server_hostname="")


# links and frames


def test_every_pair_is_linked_and_frames_arrive_whole_and_in_order(net):
    talkers = net.talkers(*PARTIES)
    net.until(linked(*talkers))
    frames = [bytes([i]) * size for i, size in enumerate((0, 1, 4_096, 65_535, 65_537, 2_000_003, 5))]
    for talker in talkers:
        for link in talker.links.values():
            for frame in frames:
                link.write(memoryview(frame))
    net.until(lambda: all(len(talker.frames) == 2 * len(frames) for talker in talkers))
    for talker in talkers:
        for peer in talker.links:
            assert [frame for sender, frame in talker.frames if sender == peer] == frames
        assert talker.host.messages_sent == 2 * len(frames)
        assert talker.host.bytes_sent == 2 * sum(4 + len(frame) for frame in frames)


def test_a_party_alone_has_no_links(net):
    (alone,) = net.talkers("bank")
    with pytest.raises(ConfigurationError, match="no address of 'shop'"):
        alone.host.connect("shop")


def test_frames_that_come_before_listen_wait(net):
    early = net.host("bank", parties=("bank", "shop"))
    shop = Talker(net.host("shop", parties=("bank", "shop")))
    net.until(lambda: shop.links)
    shop.links["bank"].write(b"first")
    net.run(asyncio.sleep(0.05))
    bank = Talker(early)
    shop.links["bank"].write(b"second")
    net.until(lambda: len(bank.frames) == 2)
    assert bank.frames == [("shop", b"first"), ("shop", b"second")]


def test_nagle_is_off_on_both_sides(net):
    talkers = net.talkers("bank", "shop")
    net.until(linked(*talkers))
    for talker in talkers:
        (link,) = talker.links.values()
        raw = link._transport.get_extra_info("socket")
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_the_dialler_waits_for_a_party_that_starts_later(net):
    shop = Talker(net.host("shop", parties=("bank", "shop")))
    address = net.addresses["bank"]
    net.servers["bank"].close()
    net.run(asyncio.sleep(0.1))
    net.servers["bank"] = bind(address)
    bank = Talker(net.host("bank", parties=("bank", "shop")))
    net.until(linked(bank, shop))


def test_an_answer_is_given_within_the_frame_callback(net):
    bank, shop = net.talkers("bank", "shop")
    net.until(linked(bank, shop))
    depth = []
    data_received = shop.links["bank"].data_received

    def answer(peer, frame):
        depth.append(True)
        shop.links[peer].write(b"answer")

    def watched(data):
        before = len(depth)
        data_received(data)
        depth.append(len(depth) > before)

    shop.received = answer
    shop.links["bank"].data_received = watched
    bank.links["shop"].write(b"question")
    net.until(lambda: bank.frames)
    assert bank.frames == [("shop", b"answer")]


# the ends of links


def test_a_peer_that_leaves_is_told_once_and_by_name(net):
    bank, shop, club = net.talkers(*PARTIES)
    net.until(linked(bank, shop, club))
    net.run(shop.host.close())
    net.until(lambda: bank.losses and club.losses)
    assert list(bank.losses) == list(club.losses) == ["shop"]
    assert "shop has gone" in bank.losses["shop"]
    assert not shop.losses, "who closes is not told"
    bank.links["club"].write(b"still here")
    net.until(lambda: club.frames)


def test_what_was_written_before_closing_arrives(net):
    bank, shop = net.talkers("bank", "shop")
    net.until(linked(bank, shop))
    bank.links["shop"].write(b"x" * 3_000_000)
    bank.links["shop"].close()
    net.until(lambda: shop.frames)
    assert len(shop.frames[0][1]) == 3_000_000


def test_writing_to_a_link_that_is_gone_does_nothing(net):
    bank, shop = net.talkers("bank", "shop")
    net.until(linked(bank, shop))
    net.run(shop.host.close())
    net.until(lambda: bank.losses)
    bank.links["shop"].write(b"anybody?")
    assert bank.host.messages_sent == 0


def test_a_frame_that_is_too_long_ends_that_link_alone(net):
    bank, shop, club = net.talkers(*PARTIES)
    net.until(linked(bank, shop, club))
    bank.host.limit("shop", 100)
    shop.links["bank"].write(b"x" * 101)
    net.until(lambda: bank.losses and shop.losses)
    assert "shop announced a frame of 101 bytes: at most 100" in bank.losses["shop"]
    assert list(bank.losses) == ["shop"]
    assert not bank.frames
    club.links["bank"].write(b"y" * 101)
    net.until(lambda: bank.frames)


def test_before_the_party_allows_more_frames_are_as_long_as_a_greeting(net):
    bank, shop = net.talkers("bank", "shop")
    bank.limit = None
    net.until(linked(bank, shop))
    shop.links["bank"].write(b"x" * HELLO_LIMIT)
    shop.links["bank"].write(b"x" * (HELLO_LIMIT + 1))
    net.until(lambda: bank.losses)
    assert len(bank.frames) == 1


def test_a_limit_raised_by_a_greeting_holds_for_what_came_with_it(net):
    bank, shop = net.talkers("bank", "shop")
    bank.limit = None
    net.until(linked(bank, shop))

    def greeted(peer, frame):
        bank.host.limit(peer, 100_000)
        bank.frames.append((peer, bytes(frame)))

    bank.received = greeted
    shop.links["bank"]._transport.write(b"\x05\0\0\0hello" + (50_000).to_bytes(4, "little") + b"x" * 50_000)
    net.until(lambda: len(bank.frames) == 2)
    assert [len(frame) for _, frame in bank.frames] == [5, 50_000]


def test_a_truncated_frame_is_named(net):
    bank, shop = net.talkers("bank", "shop")
    net.until(linked(bank, shop))
    shop.links["bank"]._transport.write((1_000).to_bytes(4, "little") + b"x" * 10)
    shop.links["bank"].close()
    net.until(lambda: bank.losses)
    assert "shop closed the link inside a frame: 10 of 1000 bytes" in bank.losses["shop"]


def test_a_peer_that_does_not_read_is_given_up(net, monkeypatch):
    monkeypatch.setattr(connection_module, "UNSENT_LIMIT", 2**20)
    bank, shop = net.talkers("bank", "shop")
    net.until(linked(bank, shop))
    shop.links["bank"].pause_reading()

    def flood():
        bank.links["shop"].write(b"x" * 2**19)
        return bank.losses

    net.until(flood)
    assert bank.losses["shop"] == "shop does not read: more than 1 MiB wait to be sent"
    assert bank.host.bytes_sent < 64 * 2**20


# who may come in


@pytest.mark.parametrize(
    "identity, expected",
    [
        ("thief", "certificate is not one of the job's"),
        (None, "it showed no certificate"),
        ("shop", "came a second time as 'shop'"),
    ],
)
def test_a_stranger_is_turned_away_and_nobody_else_notices(net, identity, expected):
    bank, shop = net.talkers("bank", "shop")
    net.until(linked(bank, shop))

    async def intrude():
        try:
            reader, writer = await dial(net, "bank", identity)
            writer.write(b"\0\0\0\0")
            await reader.read()
            writer.close()
            await writer.wait_closed()
        except (ssl.SSLError, ConnectionError):
            pass

    net.run(intrude())
    net.until(lambda: bank.host.turned_away)
    ((address, reason),) = bank.host.turned_away
    assert address.startswith("127.0.0.1:")
    assert expected in reason
    shop.links["bank"].write(b"fine")
    net.until(lambda: bank.frames == [("shop", b"fine")])
    assert not bank.losses
    assert not bank.errors


def test_something_that_does_not_speak_tls_is_turned_away(net):
    bank, shop = net.talkers("bank", "shop")
    net.until(linked(bank, shop))

    async def babble():
        reader, writer = await asyncio.open_connection(*net.addresses["bank"])
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await reader.read()
        writer.close()

    net.run(babble())
    net.until(lambda: bank.host.turned_away)
    assert "does not speak TLS" in bank.host.turned_away[0][1]
    assert not bank.losses


def test_the_dialler_is_told_that_its_certificate_is_unknown(net):
    """In TLS 1.3 the dialler's handshake succeeds first; the refusal comes after."""
    bank = Talker(net.host("bank", parties=("bank", "shop")))
    shop = Talker(net.host("shop", "thief", parties=("bank", "shop")))
    net.until(lambda: shop.losses)
    assert shop.losses["bank"] == "bank hung up before it said a word: does it hold our certificate?"
    assert not bank.links
    assert "not one of the job's" in bank.host.turned_away[0][1]


def test_who_listens_is_pinned_too(net):
    swapped = net.addresses | {"bank": net.addresses["shop"], "shop": net.addresses["bank"]}
    Talker(net.host("bank"))
    Talker(net.host("shop"))
    club = Talker(net.host("club", addresses=swapped))
    net.until(lambda: len(club.losses) == 2)
    assert club.losses["bank"] == "bank showed the certificate of 'shop', which is not expected there"
    assert "showed the certificate of 'bank'" in club.losses["shop"]
    with pytest.raises(ColonnadeError, match="showed the certificate"):
        club.host.connect("bank").result()


def test_an_unknown_listener_is_refused_before_a_byte_is_sent(net):
    context = server_context(IDENTITIES["thief"], CERTIFICATES.values())
    shop = Talker(net.host("shop", parties=("bank", "shop")))

    async def pretend():
        server = await asyncio.start_server(
            lambda reader, writer: None, sock=net.servers["bank"], ssl=context
        )
        while not shop.losses:
            await asyncio.sleep(0.002)
        server.close()

    net.run(pretend())
    assert "its certificate is not one of the job's" in shop.losses["bank"]
    assert not shop.links


def test_a_party_that_never_comes_is_named_on_both_sides(net):
    bank = Talker(net.host("bank", parties=("bank", "shop"), wait=0.2))
    net.until(lambda: bank.losses)
    assert bank.losses["shop"] == "shop has not come within 0.2 s; is it running?"
    net.servers["bank"].close()
    shop = Talker(net.host("shop", parties=("bank", "shop"), wait=0.2))
    net.run(bank.host.close())
    net.until(lambda: shop.losses)
    assert shop.losses["bank"].startswith("bank cannot be reached at 127.0.0.1:")


def test_the_same_certificate_for_two_parties_is_refused(net):
    with pytest.raises(ConfigurationError, match="same certificate"):
        net.host("bank", certificates=CERTIFICATES | {"shop": CERTIFICATES["club"]})


def test_a_port_that_is_taken(net):
    address = net.addresses["bank"]
    with pytest.raises(
        ConfigurationError, match=rf"cannot listen at 127.0.0.1:{address[1]} .*stop the program"
    ):
        bind(address)


# the rest of the world


def test_clock_sleep_and_entropy(net):
    (bank,) = net.talkers("bank")
    before = bank.host.now()
    nap = bank.host.sleep(0.02)
    net.until(lambda: nap.ready)
    assert bank.host.now() - before >= 0.015  # uvloop counts milliseconds
    draws = {bank.host.entropy(16) for _ in range(100)}
    assert len(draws) == 100
    assert {len(draw) for draw in draws} == {16}


def test_signatures_are_checked_against_the_pinned_certificate(net):
    bank, shop = net.talkers("bank", "shop")
    signature = bank.host.sign(b"hello")
    assert shop.host.verify("bank", b"hello", signature)
    assert not bank.host.verify("shop", b"hello", signature)


def test_an_exception_in_a_callback_ends_the_run_with_its_reason(net):
    bank, shop = net.talkers("bank", "shop")
    net.until(linked(bank, shop))

    def bug(peer, frame):
        raise ZeroDivisionError("a bug")

    bank.received = bug
    shop.links["bank"].write(b"x")
    net.until(lambda: bank.errors)
    assert isinstance(bank.errors[0], ZeroDivisionError)


@pytest.mark.parametrize("nonzeros", [1, 10**9])
def test_an_exception_after_computing_ends_the_run_too(net, nonzeros):
    (bank,) = net.talkers("bank")

    def bug(promise):
        raise ZeroDivisionError

    nap = bank.host.sleep(0.0)
    nap.then(lambda _: bank.host.compute(lambda: 1, nonzeros).then(bug))
    net.until(lambda: bank.errors)
    assert isinstance(bank.errors[0], ZeroDivisionError)


def test_ctrl_c_is_handed_to_the_party(net):
    (bank,) = net.talkers("bank")
    bank.host.interrupt()
    net.until(lambda: bank.errors)
    assert isinstance(bank.errors[0], KeyboardInterrupt)


def test_time_is_told_apart(net):
    bank, shop = net.talkers("bank", "shop")
    net.until(linked(bank, shop))

    def work(peer, frame):
        bank.host.compute(lambda: time.sleep(0.05), 1)
        time.sleep(0.02)
        bank.frames.append((peer, bytes(frame)))

    bank.received = work
    before = bank.host.communicating_seconds
    shop.links["bank"].write(b"x")
    net.until(lambda: bank.frames)
    assert 0.05 <= bank.host.computing_seconds < 0.2
    assert 0.02 <= bank.host.communicating_seconds - before < 0.05
