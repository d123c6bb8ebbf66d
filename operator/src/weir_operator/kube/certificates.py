# SPDX-License-Identifier: Apache-2.0
"""Certificates that sign themselves, so that whoever is given one trusts exactly that one.

Owns their form and their age. Must not know where they are kept.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(days=90)
RENEW_BEFORE = timedelta(days=30)  # a month for somebody to notice that it is not renewed
SKEW = timedelta(hours=1)  # of the API server's clock against ours


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


def make_pair(names: Sequence[str], now: datetime) -> Pair:
    """Return a new certificate for a server that is reached under these names, DNS or IP."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "weir-operator")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + LIFE)
        .add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate.public_bytes(pem), secret)


def is_due(certificate: bytes, names: Sequence[str], now: datetime) -> bool:
    """Whether a certificate should be replaced: too old, for other names, or not readable at all."""
    try:
        parsed = x509.load_pem_x509_certificate(certificate)
        found = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return True
    return now > parsed.not_valid_after_utc - RENEW_BEFORE or set(found) != {_name(name) for name in names}


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
