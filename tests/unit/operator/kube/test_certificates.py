# SPDX-License-Identifier: Apache-2.0
"""A certificate is trusted for its names and no others, and is replaced in time."""

import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from weir_operator.kube.certificates import LIFE, RENEW_BEFORE, Pair, is_due, make_pair

NOW = datetime.now(UTC).replace(microsecond=0)  # noqa: TID251  the handshake looks at the real clock
NAMES = ("weir-operator.weir-system.svc", "127.0.0.1")


@pytest.fixture(scope="module")
def pair() -> Pair:
    return make_pair(NAMES, NOW)


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """A TLS handshake in memory. Raises SSLCertVerificationError if the client does not trust the server."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [server.wrap_bio(up, down, server_side=True), client.wrap_bio(down, up, server_hostname=name)]
    for end in (1, 0, 1, 0):
        with contextlib.suppress(ssl.SSLWantReadError):
            ends[end].do_handshake()


@pytest.mark.parametrize(("name", "trusted"), [(NAMES[0], True), (NAMES[1], True), ("another.svc", False)])
def test_a_client_that_is_given_it_trusts_the_server_under_its_names(
    pair: Pair, tmp_path: Path, name: str, trusted: bool
) -> None:
    for file, text in (("crt", pair.certificate), ("key", pair.key)):
        (tmp_path / file).write_bytes(text)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    client = ssl.create_default_context(cadata=pair.certificate.decode())
    refused = contextlib.nullcontext() if trusted else pytest.raises(ssl.SSLCertVerificationError)
    with refused:
        shake_hands(server, client, name)


@pytest.mark.parametrize(
    ("names", "age", "due"),
    [
        (NAMES, timedelta(0), False),
        (NAMES, LIFE - RENEW_BEFORE, False),
        (NAMES, LIFE - RENEW_BEFORE + timedelta(hours=1), True),
        (("another.svc",), timedelta(0), True),
    ],
)
def test_it_is_due_a_month_before_its_end_and_for_other_names(
    pair: Pair, names: tuple[str, ...], age: timedelta, due: bool
) -> None:
    assert is_due(pair.certificate, names, NOW + age) is due


def test_what_is_no_certificate_is_due() -> None:
    assert is_due(b"-----BEGIN CERTIFICATE-----\nnonsense", NAMES, NOW)
