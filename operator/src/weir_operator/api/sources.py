# SPDX-License-Identifier: Apache-2.0
"""Sources of keys and plans as users write them.

The docstrings of fields are what `kubectl explain` and the reference page say.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from weir_operator.api.types import ApiModel, HeaderName, exactly_one, validations
from weir_operator.domain import specs

Claim = Annotated[
    str, StringConstraints(pattern=r"^([^.\\]|\\[.\\])+(\.([^.\\]|\\[.\\])+){0,7}$", min_length=1, max_length=256)
]
QueryName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.~:@$!*'()/\[\]-]+$", max_length=128)]
Capture = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]
_SOURCES = ("header", "cookie", "query", "clientIP", "claim", "principal", "path", "host", "method")
_ONE_SOURCE = f"[{', '.join(f'has(self.{name})' for name in _SOURCES)}].exists_one(given, given)"


class ClientIP(ApiModel):
    """How much of the client's address counts as one client."""

    ipv4_prefix: int = Field(default=32, ge=0, le=32)
    """Bits of an IPv4 address."""
    ipv6_prefix: int = Field(default=64, ge=0, le=128)
    """Bits of an IPv6 address. A subscriber usually has a whole /64."""


class Nothing(ApiModel):
    """An empty map: the source has no settings."""


class KeySource(ApiModel):
    """One part of a rule's key."""

    model_config = ConfigDict(
        json_schema_extra=validations((_ONE_SOURCE, f"must have exactly one of {', '.join(_SOURCES)}", ""))
    )

    header: HeaderName | None = None
    """The value of this request header. It is hashed with a secret before it reaches the store, logs or metrics, as
    are the values of cookies and query parameters."""
    cookie: HeaderName | None = None
    """The value of this cookie; case matters in its name. The gateway must forward the header `cookie`."""
    query: QueryName | None = None
    """The first value of this query parameter, percent-decoded; case matters in its name."""
    client_ip: ClientIP | None = Field(default=None, alias="clientIP")
    """The client's address, as the gateway knows it from its trusted proxies."""
    claim: Claim | None = None
    """A claim of the token that Envoy's JWT filter has verified, never of an unverified one. Members of nested claims
    are separated by dots (`realm_access.roles`); a dot or a backslash within a name is written after a backslash
    (`https://example\\.com/tenant`). Texts, numbers, truth values and lists of these are values; anything else is
    missing."""
    principal: Nothing | None = None
    """Write `{}`: the identity in the client's certificate, where Envoy terminates mutual TLS."""
    path: Capture | None = None
    """What the parameter of this name stands for in the request's path: `org` for `/v1/orgs/{org}/*`. Every route of
    the policy must have it. Compared without regard to case, as paths are."""
    host: Nothing | None = None
    """Write `{}`: the request's host, in lower case and without port."""
    method: Nothing | None = None
    """Write `{}`: the request's method."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        exactly_one(self, "header", "cookie", "query", "client_ip", "claim", "principal", "path", "host", "method")
        return self

    def to_domain(self) -> specs.KeySource:  # noqa: PLR0911  a table of cases reads best as one
        """The same in domain terms."""
        match self:
            case KeySource(header=str(name)):
                return specs.HeaderSource(name)
            case KeySource(cookie=str(name)):
                return specs.CookieSource(name)
            case KeySource(query=str(name)):
                return specs.QuerySource(name)
            case KeySource(claim=str(claim)):
                return specs.ClaimSource(claim)
            case KeySource(path=str(name)):
                return specs.PathSource(name)
            case KeySource(principal=Nothing()):
                return specs.PrincipalSource()
            case KeySource(host=Nothing()):
                return specs.HostSource()
            case KeySource(method=Nothing()):
                return specs.MethodSource()
            case _:
                prefixes = self.client_ip or ClientIP()
                return specs.ClientIPSource(prefixes.ipv4_prefix, prefixes.ipv6_prefix)


class PlanSource(ApiModel):
    """Where a request's plan is read from."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            ("has(self.header) != has(self.claim)", "must have exactly one of header and claim", "")
        )
    )

    header: HeaderName | None = None
    """The request header whose value is the plan's name. Whoever sets it must be trusted: clients should not."""
    claim: Claim | None = None
    """The claim of the verified token that is the plan's name, written as in a key."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        exactly_one(self, "header", "claim")
        return self

    def to_domain(self) -> specs.HeaderSource | specs.ClaimSource:
        """The same in domain terms."""
        return specs.HeaderSource(self.header) if self.header is not None else specs.ClaimSource(self.claim or "")
