"""Pair keys and the masks they make: X25519, HKDF-SHA256 and AES-256-CTR, all from `cryptography`.

Each pair of parties shares one secret an incarnation; each request draws its own part of their keystream.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import NamedTuple

from colonnade.errors import LocalProtocolError, RemoteProtocolError

Rows = bytes | memoryview | tuple[int, int]
"""Row numbers as uint32 bytes, or (start, stop)."""


class MaskKey:
    """The keystream of one pair: AES-256-CTR started at the request's nonce, the cipher set up once."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._cipher = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def stream(self, nonce: bytes, count: int) -> bytes:
        """`count` bytes. Counters start at 128-bit hashes, so two requests' blocks never meet in practice."""
        self._cipher.reset_nonce(nonce)
        return self._cipher.update(bytes(count))


class PairKeys(NamedTuple):
    """What two parties share: one key for masks, one to compare row ids."""

    mask: MaskKey
    check: bytes


class Endpoint(NamedTuple):
    """A party as the key agreement binds it."""

    position: int
    incarnation: int
    public_key: bytes


class PairSecrets:
    """This incarnation's X25519 key. It lives in memory only."""

    def __init__(self, entropy: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._private = X25519PrivateKey.from_private_bytes(entropy)
        self.public_key = self._private.public_key().public_bytes_raw()

    def agree(
        self,
        peer_public: bytes,
        job_digest: bytes,
        my_incarnation: int,
        peer_incarnation: int,
        my_position: int,
        peer_position: int,
    ) -> PairKeys:
        """Both sides' keys: HKDF of the secret, bound to job, positions, incarnations and public keys."""
        if my_position == peer_position:
            raise LocalProtocolError(f"a pair key between position {my_position} and itself")
        me = Endpoint(my_position, my_incarnation, self.public_key)
        peer = Endpoint(peer_position, peer_incarnation, peer_public)
        keys = _derive(self._exchange(peer_public), job_digest, *sorted((me, peer)))
        return PairKeys(MaskKey(keys[:32]), keys[32:])

    def _exchange(self, peer_public: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(peer_public))
        except ValueError as error:
            raise RemoteProtocolError(
                "the peer's public key makes no secret (wrong length, or a point of small order)"
            ) from error


def _derive(secret: bytes, job_digest: bytes, first: Endpoint, second: Endpoint) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    ends = b"".join(
        struct.pack("<HQ", end.position, end.incarnation) + end.public_key for end in (first, second)
    )
    return HKDF(SHA256(), 64, salt=job_digest, info=b"colonnade pair keys 1" + ends).derive(secret)


def request_nonce(
    requester: int, incarnation: int, round: int, what: int, shape: tuple[int, ...], rows: Rows
) -> bytes:
    """Where all masks of a request start: parties asked for different things get masks that do not cancel."""
    interval = isinstance(rows, tuple)
    head = struct.pack(
        f"<HQQB?B{len(shape)}Q", requester, incarnation, round, what, interval, len(shape), *shape
    )
    asked = struct.pack("<QQ", *rows) if isinstance(rows, tuple) else rows
    return hashlib.sha256(b"".join((b"colonnade request 1", head, asked))).digest()[:16]


def row_check(check_key: bytes, ids_digest: bytes) -> bytes:
    """What a pair compares at joining: equal only where both hold the same row ids in the same order."""
    return hmac.digest(check_key, b"colonnade rows 1" + ids_digest, "sha256")


def hello_claim(job_digest: bytes, name: str, incarnation: int, public_key: bytes) -> bytes:
    """What a party's identity signs: this key is mine, in this incarnation, for this job."""
    spelled = name.encode()
    head = struct.pack("<QH", incarnation, len(spelled))
    return b"".join((b"colonnade hello 1", job_digest, head, spelled, public_key))
