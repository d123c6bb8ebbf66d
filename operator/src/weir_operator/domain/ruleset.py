# SPDX-License-Identifier: Apache-2.0
"""The ruleset document: all that a gateway's limiters need to decide, and the only contract with them.

Owns the wire types, the canonical JSON and the digest. Values here are checked and final: no raw secret, no
default left open. Whoever changes a member raises `FORMAT` and regenerates the schema.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from weir_operator.domain.algorithms import Limit
from weir_operator.domain.limits import (
    MAX_COUNT,
    MAX_EXACT,
    MAX_FACTOR_MILLI,
    MIN_FACTOR_MILLI,
    Dialect,
    FailureMode,
    MissingKey,
    Mode,
    Scope,
    Visibility,
)
from weir_operator.domain.modes import Slot, Stage, Switch
from weir_operator.domain.overriding import Override
from weir_operator.domain.sources import ClaimKey, HeaderKey, KeyPart
from weir_operator.domain.wire import DocumentError, Json, decode, encode, json_schema, member
from weir_operator.domain.wire_text import Texts, canonical_text, join_members

FORMAT = 2
READ_FORMATS = (1, FORMAT)
"""What `parse_document` takes: also what the version before has written, so that an upgrade takes over what is live."""
_FIELD_NAME = "^[!#$%&'*+.^_`|~0-9a-z-]+$"  # RFC 9110 field name, lower case


@dataclass(frozen=True, slots=True)
class Route:
    """A path pattern, as it is compared after normalisation, and the methods it holds for."""

    path: str = member("Exact, prefix on a segment edge (`/v1/*`) or template (`/orgs/{org}`).", pattern="^/")
    methods: tuple[str, ...] = member("Upper case; empty = every method.")


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests a policy sees."""

    hosts: tuple[str, ...] = member("Exact, or leftmost wildcard; empty = every host.")
    routes: tuple[Route, ...] = member("Any of these; empty = every request.")


@dataclass(frozen=True, slots=True)
class AddressExempt:
    """Clients in one of these networks."""

    client_ip: tuple[str, ...] = member("Networks in CIDR notation.", name="clientIP", minItems=1)


@dataclass(frozen=True, slots=True)
class HeaderValues:
    """Values of a header, hashed."""

    name: str = member("Lower case.", pattern=_FIELD_NAME)
    values: tuple[str, ...] = member(
        "`sha256:` and the SHA-256 of the value.",
        name="in",
        minItems=1,
        items={"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
    )


@dataclass(frozen=True, slots=True)
class HeaderExempt:
    """Requests with one of these values in a header."""

    header: HeaderValues = member("The header and the values.")


@dataclass(frozen=True, slots=True)
class Plans:
    """Limits by plan; a request without a listed plan gets the rule's own limit."""

    source: HeaderKey | ClaimKey = member("Where the plan is read from.", name="from")
    limits: Mapping[str, Limit] = member("By the plan's name; of the algorithm of the rule's own.", minProperties=1)


@dataclass(frozen=True, slots=True)
class Cost:
    """What requests of a route cost."""

    match: Route = member("The requests.")
    cost: int = member("Tokens; 0 = free.", minimum=0, maximum=MAX_COUNT)


@dataclass(frozen=True, slots=True)
class Rule:
    """One counter per key, and its limit."""

    name: str = member("With the slot unique in its policy; part of the counter's identity.", minLength=1)
    mode: Mode = member("For requests that no stage takes out, before switches.")
    key: tuple[KeyPart, ...] = member("Combined in this order; empty = one counter for all.")
    on_missing_key: MissingKey = member("What to do when a part of the key is missing.")
    limit: Limit = member("Without a listed plan.")
    plans: Plans | None = member("Absent = the same limit for everybody.")
    cost: tuple[Cost, ...] = member("The first that fits; none = 1.")
    on_store_failure: FailureMode = member("What to do while the store does not answer.")
    visibility: Visibility = member("How much the client is told.")
    code: str = member("The refusal's code.", pattern="^[a-z][a-z0-9_]{0,63}$")
    scope: Scope | None = member("Who shares the counters; absent = Region.", default=None)
    local_factor_milli: int | None = member(
        "With Local: what each limiter grants, in thousandths of the limit; absent = the limit is split.",
        default=None,
        minimum=MIN_FACTOR_MILLI,
        maximum=MAX_FACTOR_MILLI,
    )
    version: str | None = member(
        "Names its numbers and the requests it sees: what evidence is about. Always written since format 2.",
        default=None,
        pattern="^[0-9a-f]{12}$",
    )
    slot: Slot | None = member(
        "Tells two entries of one name apart, and their counters; absent = the first.", default=None
    )
    stage: Stage | None = member("Requests with another mode; absent = none.", default=None)
    switches: tuple[Switch, ...] | None = member(
        "The weakest that is live caps the mode; absent = none.", default=None, minItems=1
    )

    @property
    def is_split(self) -> bool:
        """Whether the limiters share its limit among them while the store does not answer."""
        return self.on_store_failure is FailureMode.LOCAL and self.local_factor_milli is None


def limits_of(rule: Rule) -> list[tuple[str, Limit]]:
    """Every limit that a request can meet under the rule, by plan; "" is the rule's own."""
    return [("", rule.limit), *(sorted(rule.plans.limits.items()) if rule.plans else [])]


@dataclass(frozen=True, slots=True)
class Response:
    """What the client is told besides the verdict."""

    headers: Dialect = member("Which headers carry the budget.")
    documentation: str | None = member("A link for people; absent = none.")


@dataclass(frozen=True, slots=True)
class Policy:
    """One RateLimitPolicy, compiled."""

    id: str = member("namespace/name", pattern="^[^/]+/[^/]+$")
    generation: int = member("Of the object that this was compiled from.", minimum=0)
    match: Match = member("Which requests it sees.")
    exempt: tuple[AddressExempt | HeaderExempt, ...] = member("Requests that it does not see after all.")
    rules: tuple[Rule, ...] = member("In the user's order.", minItems=1)
    response: Response = member("What the client is told.")


@dataclass(frozen=True, slots=True)
class Jwt:
    """Where Envoy leaves the claims of a verified token."""

    metadata_namespace: str = member("The JWT filter's namespace of dynamic metadata.", minLength=1)
    payload_key: str = member("The key there that holds the token's payload.", minLength=1)


@dataclass(frozen=True, slots=True)
class Ruleset:
    """What one gateway's limiters shall run: policies by id, overrides in the order of their precedence."""

    gateway: str
    policies: tuple[Policy, ...] = ()
    overrides: tuple[Override, ...] = ()
    jwt: Jwt | None = None
    limiters: int | None = None
    """How many share a limit that is split; None unless a rule is."""


@dataclass(frozen=True, slots=True)
class Document:
    """A ruleset as it is published: with its revision, which orders documents, and the digest of its content."""

    format: int = member("The version of this contract.", const=FORMAT)
    gateway: str = member("The gateway's name.", minLength=1)
    revision: int = member("Rises with every change.", minimum=1, maximum=MAX_EXACT)
    digest: str = member("SHA-256 of the canonical JSON without revision and digest.", pattern="^sha256:[0-9a-f]{64}$")
    policies: tuple[Policy, ...] = member("Sorted by id.")
    overrides: tuple[Override, ...] = member(
        "By policy; of one policy's, the first that fits and whose time it is wins."
    )
    jwt: Jwt | None = member("Where claims are read; absent = Envoy's usual places.", default=None)
    limiters: int | None = member(
        "How many share a limit that is split while the store does not answer; there whenever a rule is split.",
        default=None,
        minimum=1,
    )

    @property
    def ruleset(self) -> Ruleset:
        """What it says, without how it is published."""
        return Ruleset(self.gateway, self.policies, self.overrides, self.jwt, self.limiters)


def publish(ruleset: Ruleset, revision: int) -> Document:
    """`ruleset` as the document with this revision."""
    content = ruleset.policies, ruleset.overrides, ruleset.jwt, ruleset.limiters
    return Document(FORMAT, ruleset.gateway, revision, digest(ruleset), *content)


def digest(ruleset: Ruleset) -> str:
    """What names the content: equal digests, equal rules."""
    return seal(ruleset).digest


@dataclass(frozen=True, slots=True)
class Sealed:
    """An encoded ruleset with its digest, for whoever needs the digest before the revision is known."""

    digest: str
    members: Mapping[str, str]
    """The canonical JSON of each member, without revision and digest."""

    def to_bytes(self, revision: int) -> bytes:
        """The document with this revision: what `to_bytes(publish(ruleset, revision))` gives, encoded only once."""
        return join_members({**self.members, "digest": canonical_text(self.digest), "revision": str(revision)})


def seal(ruleset: Ruleset, texts: Texts | None = None) -> Sealed:
    """Encode `ruleset` and compute its digest; `texts` spares what did not change since it was used last."""
    return _seal(ruleset, FORMAT, texts or Texts())


def _seal(ruleset: Ruleset, wire_format: int, texts: Texts) -> Sealed:
    members = {"format": str(wire_format), **texts.members(ruleset)}
    return Sealed("sha256:" + hashlib.sha256(join_members(members)).hexdigest(), members)


def to_bytes(document: Document) -> bytes:
    """The canonical JSON of the document; same content, same bytes."""
    return canonical_json(encode(document))


def parse_document(data: bytes) -> Document:
    """Read what `to_bytes` wrote, here or in the version before.

    Raises DocumentError for anything else, also when the digest is of other content.
    """
    try:
        document = decode(Document, json.loads(data))
        content_digest = _seal(document.ruleset, document.format, Texts()).digest
    except DocumentError:
        raise
    except (ValueError, RecursionError) as error:  # no JSON, a number of a million digits, half a surrogate pair
        raise DocumentError(f"$: not JSON: {error}") from error
    if document.format not in READ_FORMATS:
        raise DocumentError(f"$.format: expected one of {READ_FORMATS}, found {document.format}")
    if document.format < FORMAT and any(_is_new(rule) for policy in document.policies for rule in policy.rules):
        raise DocumentError(f"$.format: members of format {FORMAT} in a document that claims {document.format}")
    if document.digest != content_digest:
        raise DocumentError("$.digest: does not match the content")
    return document


def _is_new(rule: Rule) -> bool:
    """Whether it has a member that a reader of format 1 does not know."""
    return any(member is not None for member in (rule.version, rule.slot, rule.stage, rule.switches))


def document_schema() -> dict[str, Json]:
    """The JSON Schema of the document, from the types above."""
    return json_schema(Document, title=f"Weir ruleset, format {FORMAT}")


def canonical_json(value: Json) -> bytes:
    """Sorted members, no spaces, UTF-8 without escapes: one text for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
