"""Tiny parties for the tests of the real worlds: they say what they saw, and answer what they are asked."""

from __future__ import annotations

from colonnade.runtime.host import Promise


class Talker:
    """A listener that notes everything. Subclasses settle `result`."""

    def __init__(self, host, limit=2**26):
        self.host = host
        self.limit = limit
        self.links = {}
        self.frames = []
        self.losses = {}
        self.errors = []
        self.result = Promise()
        host.listen(self)

    def opened(self, peer):
        self.links[peer] = self.host.connect(peer).result()
        if self.limit is not None:
            self.host.limit(peer, self.limit)

    def received(self, peer, frame):
        self.frames.append((peer, bytes(frame)))

    def lost(self, peer, reason):
        self.losses[peer] = reason

    def failed(self, error):
        self.errors.append(error)
        self.result.fail(error)


class Echo(Talker):
    """Sends back what it gets; done when told so by an empty frame."""

    def received(self, peer, frame):
        super().received(peer, frame)
        if len(frame):
            self.links[peer].write(frame)
        else:
            self.result.set(self)


class Asker(Talker):
    """Once all links are open, sends each of `frames` to all and waits for every echo; then says goodbye."""

    def __init__(self, host, peers, frames):
        self.peers, self.asked = peers, list(frames)
        self.rounds = 0
        super().__init__(host)

    def opened(self, peer):
        super().opened(peer)
        if len(self.links) == self.peers:
            self.ask()

    def ask(self):
        for link in self.links.values():
            link.write(self.asked[self.rounds])

    def received(self, peer, frame):
        super().received(peer, frame)
        if len(self.frames) % self.peers:
            return
        self.rounds += 1
        if self.rounds < len(self.asked):
            return self.ask()
        for link in self.links.values():
            link.write(b"")
        self.result.set(self)
