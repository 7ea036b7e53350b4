"""Pair keys and masks against published vectors and a second implementation of HKDF."""

from __future__ import annotations

import hashlib
import hmac
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.errors import LocalProtocolError, RemoteProtocolError
from colonnade.privacy.masks import MaskKey, PairSecrets, hello_claim, request_nonce, row_check

JOB = hashlib.sha256(b"a job").digest()
entropies = st.binary(min_size=32, max_size=32)

# RFC 7748, section 6.1
ALICE = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
ALICE_PUBLIC = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
BOB = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
BOB_PUBLIC = bytes.fromhex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
SHARED = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")

# NIST SP 800-38A, F.5.5 CTR-AES256.Encrypt
NIST_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
NIST_COUNTER = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
NIST_PLAIN = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
NIST_CIPHER = bytes.fromhex(
    "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
)


def hkdf(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869, written again from its two formulae."""
    key = hmac.digest(salt, secret, "sha256")
    out = block = b""
    for counter in range(1, -(-length // 32) + 1):
        block = hmac.digest(key, block + info + bytes([counter]), "sha256")
        out += block
    return out[:length]


def test_public_keys_and_pair_keys_follow_the_published_vector():
    alice, bob = PairSecrets(ALICE), PairSecrets(BOB)
    assert (alice.public_key, bob.public_key) == (ALICE_PUBLIC, BOB_PUBLIC)
    ends = struct.pack("<HQ", 1, 9) + BOB_PUBLIC + struct.pack("<HQ", 4, 2) + ALICE_PUBLIC
    wanted = hkdf(SHARED, JOB, b"colonnade pair keys 1" + ends, 64)
    keys = alice.agree(BOB_PUBLIC, JOB, 2, 9, 4, 1)
    assert keys.check == wanted[32:]
    assert keys.mask.stream(bytes(16), 32) == MaskKey(wanted[:32]).stream(bytes(16), 32)


@given(entropies, entropies, st.integers(0, 2**48), st.integers(0, 2**48))
def test_both_sides_agree(first, second, mine, its):
    one, other = PairSecrets(first), PairSecrets(second)
    left = one.agree(other.public_key, JOB, mine, its, 0, 5)
    right = other.agree(one.public_key, JOB, its, mine, 5, 0)
    assert left.check == right.check
    assert left.mask.stream(NIST_COUNTER, 40) == right.mask.stream(NIST_COUNTER, 40)


def test_another_job_incarnation_or_place_makes_other_keys():
    alice = PairSecrets(ALICE)
    ways = [
        (JOB, 1, 1, 0, 1),
        (b"x" * 32, 1, 1, 0, 1),
        (JOB, 2, 1, 0, 1),
        (JOB, 1, 2, 0, 1),
        (JOB, 1, 1, 1, 0),
    ]
    keys = [alice.agree(BOB_PUBLIC, *way) for way in ways]
    assert len({pair.check for pair in keys}) == len(ways)
    assert len({pair.mask.stream(NIST_COUNTER, 32) for pair in keys}) == len(ways)


@pytest.mark.parametrize("public", [bytes(32), (1).to_bytes(32, "little"), b"short"])
def test_a_public_key_that_makes_no_secret_is_refused(public):
    with pytest.raises(RemoteProtocolError, match="public key"):
        PairSecrets(ALICE).agree(public, JOB, 1, 1, 0, 1)


def test_a_pair_has_two_positions():
    with pytest.raises(LocalProtocolError, match="position 3"):
        PairSecrets(ALICE).agree(BOB_PUBLIC, JOB, 1, 1, 3, 3)


def test_the_keystream_is_counter_mode_from_the_nonce_however_often_it_is_drawn():
    key = MaskKey(NIST_KEY)
    wanted = bytes(a ^ b for a, b in zip(NIST_PLAIN, NIST_CIPHER, strict=True))
    assert key.stream(bytes(16), 1_000) != key.stream(NIST_COUNTER, 1_000)
    assert key.stream(NIST_COUNTER, 64) == wanted
    assert key.stream(NIST_COUNTER, 13) == wanted[:13]


requests = st.tuples(
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([(1,), (2,), (2, 1), (1, 2)]),
    st.sampled_from([(0, 8), (1, 8), struct.pack("<QQ", 0, 8), b"\1\0\0\0", b"\1\0\0\0\2\0\0\0"]),
)


@given(requests, requests)
def test_nonces_are_equal_for_equal_requests_only(one, other):
    assert len(request_nonce(*one)) == 16
    assert (request_nonce(*one) == request_nonce(*other)) == (one == other)


def test_received_rows_and_own_rows_make_the_same_nonce():
    rows = struct.pack("<3I", 5, 1, 7)
    assert request_nonce(0, 1, 2, 0, (3,), rows) == request_nonce(
        0, 1, 2, 0, (3,), memoryview(b"ab" + rows)[2:]
    )


@given(entropies, st.binary(max_size=40), st.binary(max_size=40))
def test_row_checks_are_equal_for_equal_ids_only(key, ids, others):
    check = row_check(key, hashlib.sha256(ids).digest())
    assert len(check) == 32
    assert (check == row_check(key, hashlib.sha256(others).digest())) == (ids == others)


def test_a_signed_claim_is_of_one_job_name_incarnation_and_key():
    said = (JOB, "bänk", 7, ALICE_PUBLIC)
    others = [
        (bytes(32), *said[1:]),
        (JOB, "bank", *said[2:]),
        (*said[:2], 8, ALICE_PUBLIC),
        (*said[:3], BOB_PUBLIC),
    ]
    assert len({hello_claim(*claimed) for claimed in (said, *others)}) == 5
