# SPDX-License-Identifier: Apache-2.0
"""A ruleset as the ConfigMap that limiters watch, and back.

Owns the form (plain, or gzip when large) and the revision: it rises with every change of content and never
without one, so that an unchanged ruleset gives the very ConfigMap that is already there.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limits import MAX_EXACT
from weir_operator.domain.ruleset import FORMAT, Ruleset, parse_document, seal
from weir_operator.domain.versions import upgraded
from weir_operator.domain.wire import DocumentError
from weir_operator.domain.wire_text import Texts
from weir_operator.render.names import DIGEST_ANNOTATION, REVISION_ANNOTATION, Part, labels, rules_config_map

PLAIN_KEY = "ruleset.json"
GZIP_KEY = "ruleset.json.gz"
MAX_PLAIN_BYTES = 900_000  # a ConfigMap holds 1,048,576 bytes; the rest is room for a format that adds members
MAX_GZIP_BYTES = 1_000_000
BELIEVED = MAX_EXACT // 2  # anybody's word on a higher revision would leave no room for ours
_QUICK, _TIGHT = 3, 9  # of 4 MB: 31 ms to 640 kB, 126 ms to 585 kB; digests of subjects are what remains
_MAX_UNPACKED_BYTES = 64 * 1024 * 1024  # what gzip makes of a full ConfigMap at 64:1; more is no ruleset of ours

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Live:
    """The rules' ConfigMap as it is in the cluster.

    `revision` is the highest that it mentions (0 = none). `ruleset` is None, and `digest` empty, when the content is
    missing, damaged, or not what its digest says.
    """

    revision: int = 0
    digest: str = ""
    ruleset: Ruleset | None = None


@dataclass(frozen=True, slots=True)
class RulesetTooLarge:
    """The ruleset does not fit into a ConfigMap, with `size` bytes; nothing is written, the old rules stay."""

    size: int
    limit: int = MAX_GZIP_BYTES
    what: str = "rules take {size} bytes packed"
    remedy: str = "delete overrides that have expired"

    def __str__(self) -> str:
        return (
            f"the gateway's {self.what.format(size=self.size)}, a ConfigMap holds {self.limit}; "
            f"spread the policies over more gateways, or {self.remedy}"
        )


def read_live(config_map: Manifest | None) -> Live:
    """What the live ConfigMap says; never raises, since anybody may have edited it."""
    if config_map is None:
        return Live()
    annotated = _revision(
        str(_mapping(_mapping(config_map.get("metadata")).get("annotations")).get(REVISION_ANNOTATION))
    )
    try:
        document = parse_document(_content(config_map))
    except DocumentError:
        return Live(annotated)
    ruleset = document.ruleset if document.format == FORMAT else upgraded(document.ruleset)
    return Live(max(annotated, _revision(str(document.revision))), document.digest, ruleset)


def render_rules(
    ruleset: Ruleset, gateway: Gateway, live: Live, now_ms: int, texts: Texts | None = None
) -> Manifest | RulesetTooLarge:
    """The ConfigMap to apply: with the live revision when the content is the same, else with a higher one.

    `texts` spares the encoding of what did not change since it was used last.
    """
    sealed = seal(ruleset, texts)
    unchanged = live.revision > 0 and live.digest == sealed.digest
    revision = live.revision if unchanged else max(live.revision + 1, now_ms)
    data = sealed.to_bytes(revision)
    if len(data) <= MAX_PLAIN_BYTES:
        return _manifest(gateway, revision, sealed.digest, {"data": {PLAIN_KEY: data.decode()}})
    packed = gzip.compress(data, compresslevel=_QUICK, mtime=0)
    if len(packed) > MAX_GZIP_BYTES:
        packed = gzip.compress(data, compresslevel=_TIGHT, mtime=0)
    if len(packed) > MAX_GZIP_BYTES:
        return RulesetTooLarge(len(packed))
    text = base64.b64encode(packed).decode()
    return _manifest(gateway, revision, sealed.digest, {"binaryData": {GZIP_KEY: text}})


def _manifest(
    gateway: Gateway, revision: int, content_digest: str, content: Mapping[str, Mapping[str, str]]
) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": rules_config_map(gateway.name),
            "namespace": gateway.namespace,
            "labels": labels(gateway.name, Part.RULES),
            "annotations": {REVISION_ANNOTATION: str(revision), DIGEST_ANNOTATION: content_digest},
        },
        **content,
    }


def _content(config_map: Manifest) -> bytes:
    plain = _mapping(config_map.get("data")).get(PLAIN_KEY)
    if isinstance(plain, str):
        return plain.encode(errors="replace")
    packed = _mapping(config_map.get("binaryData")).get(GZIP_KEY)
    if not isinstance(packed, str):
        raise DocumentError(f"$: neither {PLAIN_KEY} nor {GZIP_KEY}")
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # 16: with gzip's header
    try:
        data = unpacker.decompress(base64.b64decode(packed, validate=True), _MAX_UNPACKED_BYTES)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise DocumentError(f"$: not gzip: {error}") from error
    return data


def _revision(text: str) -> int:
    """A revision that leaves room for all that will follow, else 0."""
    readable = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_EXACT))
    return int(text) if readable and int(text) < BELIEVED else 0


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
