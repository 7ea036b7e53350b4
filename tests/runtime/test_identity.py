"""Identities: strict TLS both ways, pins, signatures."""

from __future__ import annotations

import contextlib
import os
import ssl

import pytest

from colonnade.errors import ConfigurationError
from colonnade.runtime.identity import (
    Identity,
    client_context,
    ephemeral_identity,
    fingerprint,
    pem_fingerprint,
    server_context,
    signed_by,
)


@pytest.fixture(scope="module")
def identities():
    return {name: ephemeral_identity(name) for name in ("bank", "shop", "thief")}


def shake_hands(server, client):
    """Both sides of a handshake in memory; what each saw of the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    listening = server.wrap_bio(to_server, to_client, server_side=True)
    dialling = client.wrap_bio(to_client, to_server)
    for side in (dialling, listening, dialling, listening):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return listening, dialling


def contexts(identities, server_knows=("shop",), client="shop", client_knows=("bank",)):
    def pems(names):
        return [identities[name].certificate_pem for name in names]

    return (
        server_context(identities["bank"], pems(server_knows)),
        client_context(identities[client], pems(client_knows)),
    )


def test_both_sides_see_the_pinned_certificates_under_tls_1_3(identities):
    listening, dialling = shake_hands(*contexts(identities, server_knows=("thief", "shop")))
    for side, name in ((listening, "shop"), (dialling, "bank")):
        assert side.version() == "TLSv1.3"
        pinned = pem_fingerprint(name, identities[name].certificate_pem)
        assert fingerprint(side.getpeercert(True)) == pinned


def test_verification_is_strict(identities):
    for context in contexts(identities):
        assert context.verify_flags & ssl.VerifyFlags.VERIFY_X509_STRICT
        assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("case", [{"client": "thief"}, {"client_knows": ("thief",)}])
def test_a_certificate_that_was_not_exchanged_is_refused(identities, case):
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(*contexts(identities, **case))


def test_a_side_without_certificate_is_refused(identities):
    server, _ = contexts(identities)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        shake_hands(server, client)


def test_older_tls_is_refused(identities):
    server, client = contexts(identities)
    client.minimum_version = ssl.TLSVersion.TLSv1_2
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="UNSUPPORTED_PROTOCOL"):
        shake_hands(server, client)


def test_signatures(identities):
    bank = identities["bank"]
    signature = bank.signer()(b"hello")
    assert signed_by(bank.certificate_pem, b"hello", signature)
    assert not signed_by(bank.certificate_pem, b"hullo", signature)
    assert not signed_by(bank.certificate_pem, b"hello", signature[:-1])
    assert not signed_by(bank.certificate_pem, b"hello", b"")
    assert not signed_by(identities["shop"].certificate_pem, b"hello", signature)


def test_key_of_another_certificate(identities):
    mixed = Identity(identities["bank"].certificate_pem, identities["shop"].private_key_pem)
    with pytest.raises(ConfigurationError, match="do not fit together"):
        server_context(mixed, [])


def test_no_certificate_at_all():
    with pytest.raises(ConfigurationError, match="certificate of 'bank' is no PEM certificate"):
        pem_fingerprint("bank", "bank.pem")


def test_the_private_key_stays_off_the_disk_and_no_descriptor_is_left(identities):
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    contexts(identities)
    after = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    assert len(after) == len(before)
