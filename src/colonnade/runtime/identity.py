"""Who a party is on the wire: a self-signed certificate, known whole to its partners, and TLS 1.3 both ways.

Nothing is trusted but the certificates exchanged when joining; names in them play no part.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import ssl
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from colonnade.errors import ConfigurationError


class Identity(NamedTuple):
    """A certificate to show and the private key that belongs to it (ECDSA), both as PEM."""

    certificate_pem: str
    private_key_pem: str

    def signer(self) -> Callable[[bytes], bytes]:
        """A function that signs with the private key."""
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = serialization.load_pem_private_key(self.private_key_pem.encode("ascii"), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ConfigurationError("the private key of this party is not ECDSA: make a new identity")
        return lambda data: key.sign(data, ec.ECDSA(hashes.SHA256()))


def ephemeral_identity(name: str, days: int = 30) -> Identity:
    """A fresh ECDSA P-256 identity, valid from yesterday for so many days."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days))
    )
    for extension, critical in _extensions(key.public_key()):
        builder = builder.add_extension(extension, critical)
    certificate = builder.sign(key, hashes.SHA256())
    return Identity(
        certificate.public_bytes(serialization.Encoding.PEM).decode("ascii"),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode("ascii"),
    )


def _extensions(public_key: Any) -> list[tuple[Any, bool]]:
    """What VERIFY_X509_STRICT asks of a certificate that is its own root."""
    from cryptography import x509

    key_identifier = x509.SubjectKeyIdentifier.from_public_key(public_key)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    return [
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (usage, True),
        (key_identifier, False),
        (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_identifier), False),
    ]


def signed_by(certificate_pem: str, data: bytes, signature: bytes) -> bool:
    """Whether the holder of this certificate signed the data."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = x509.load_pem_x509_certificate(certificate_pem.encode("ascii")).public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        return False
    try:
        key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def fingerprint(certificate_der: bytes) -> str:
    """SHA-256 of a whole certificate: what is pinned."""
    return hashlib.sha256(certificate_der).hexdigest()


def pem_fingerprint(name: str, certificate_pem: str) -> str:
    """The fingerprint of one certificate in PEM; anything else is refused by the name of its party."""
    try:
        return fingerprint(ssl.PEM_cert_to_DER_cert(certificate_pem.strip()))
    except ValueError:
        raise ConfigurationError(
            f"the certificate of {name!r} is no PEM certificate: give the whole text from BEGIN to END"
        ) from None


def server_context(identity: Identity, partners: Iterable[str]) -> ssl.SSLContext:
    """TLS for the side that listens. It asks for a certificate and gives no session tickets."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, identity, partners)
    context.num_tickets = 0
    return context


def client_context(identity: Identity, partners: Iterable[str]) -> ssl.SSLContext:
    """TLS for the side that dials."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, identity, partners)


def _context(protocol: int, identity: Identity, partners: Iterable[str]) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    certificates = "".join(partners)
    if certificates:
        context.load_verify_locations(cadata=certificates)
    with _file_of(identity.certificate_pem + identity.private_key_pem) as path:
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            raise ConfigurationError(
                f"the private key and certificate of this party do not fit together ({error.reason}): "
                "give the pair that was made together"
            ) from None
    return context


@contextmanager
def _file_of(secret: str) -> Iterator[str]:
    """A path that `ssl` can read: in memory where the system has that, else a private file, deleted."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("identity")
        try:
            os.write(descriptor, secret.encode("ascii"))
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:  # pragma: no cover - systems other than Linux
        with tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".pem") as file:
            file.write(secret)
            file.flush()
            yield file.name
