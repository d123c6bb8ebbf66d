# SPDX-License-Identifier: Apache-2.0
"""Field types that the custom resources share, and how their texts are read.

A pattern stands both in the CRD and in the model, so that the API server and the operator refuse the same texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, StringConstraints, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from weir_operator.domain.specs import SubjectValue

_UNITS_US = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000}
_DURATION_PART = re.compile(r"([0-9]+)(h|ms|m|s)")
_SHA256 = "^[0-9A-Fa-f]{64}$"
MAX_COUNT = 1_000_000_000_000
MAX_VALUE = 4096  # characters of a header's value; Envoy's default for all headers together is 60 KiB

SERVER_DEFAULT = "x-weir-server-default"
"""Marks the few fields whose default the API server itself fills in; all others are filled in when compiling."""


class ApiModel(BaseModel):
    """A piece of a custom resource: nothing coerced, nothing unknown, docstrings as descriptions."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


def validations(*rules: tuple[str, str, str]) -> dict[str, Any]:
    """The CRD's validation rules of a model, each (CEL, message, field path below the model or "")."""
    listed = [
        {"rule": rule, "message": message, **({"fieldPath": path} if path else {})} for rule, message, path in rules
    ]
    return {"x-kubernetes-validations": listed}


def as_map(*keys: str) -> dict[str, Any]:
    """Schema keywords of a list whose entries are told apart by `keys`, so that the API server refuses duplicates."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


AS_SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}


def exactly_one(model: ApiModel, *fields: str) -> None:
    """Raise, within validation, unless exactly one of `fields` is set."""
    if sum(getattr(model, field) is not None for field in fields) != 1:
        *names, last = (str(type(model).model_fields[field].alias) for field in fields)
        raise PydanticCustomError(
            "exactly_one", "must have exactly one of {names}", {"names": f"{', '.join(names)} and {last}"}
        )


def parse_duration_us(text: str) -> int:
    """Microseconds of a text that has `Duration`'s pattern."""
    return sum(int(number) * _UNITS_US[unit] for number, unit in _DURATION_PART.findall(text))


def parse_time_s(text: str) -> int:
    """Unix seconds of a text that `Timestamp` has accepted; fractions are dropped, times before 1970 are 0."""
    return max(0, int(datetime.fromisoformat(text).timestamp()))


def _check_time(text: str) -> str:
    try:
        datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise PydanticCustomError("time", "is no date and time") from error
    return text


def _subject_value(value: object) -> SubjectValue:
    # The source is the key of the map that this stands in; the override's to_domain adds it.
    if isinstance(value, str):
        if 0 < len(value) <= MAX_VALUE:
            return SubjectValue("", value)
        raise PydanticCustomError("subject_length", "must have 1 to {most} characters", {"most": MAX_VALUE})
    if isinstance(value, Mapping) and set(value) == {"sha256"} and re.fullmatch(_SHA256, str(value["sha256"])):
        return SubjectValue("", str(value["sha256"]), hashed=True)
    if isinstance(value, int | float):
        raise PydanticCustomError("subject_quotes", "is a number or a truth value, not a text")
    raise PydanticCustomError("subject", "is neither a text nor a map with sha256 alone")


# What is no duration or no number at all the pattern has refused: a rule that read it all the same would break on it,
# and add an error that helps nobody. So such rules ask `matches` first.
DURATION_FORM = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
Duration = Annotated[
    str,
    StringConstraints(pattern=DURATION_FORM),
    Field(max_length=28, json_schema_extra={"example": "1s"}),
]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
_FACTOR = r"^[0-9]{1,4}(\.[0-9]{1,3})?$"
Factor = Annotated[str, StringConstraints(pattern=_FACTOR, max_length=8)]
FACTOR_RANGE = (
    f"!has(self.factor) || !self.factor.matches(r'{_FACTOR}') || "
    "double(self.factor) > 0.0 && double(self.factor) <= 1000.0",
    "must be above 0 and at most 1000",
    ".factor",
)
HeaderName = Annotated[str, StringConstraints(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", max_length=128)]
HeaderValue = Annotated[str, StringConstraints(min_length=1, max_length=MAX_VALUE)]
Host = Annotated[
    str,
    StringConstraints(
        pattern=r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", max_length=253
    ),
]
Path = Annotated[str, StringConstraints(pattern=r"^/", max_length=1024)]
Method = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z-]*$", max_length=32)]
Cidr = Annotated[str, StringConstraints(min_length=3, max_length=49)]
RuleName = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$", max_length=63)]
ObjectName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$", max_length=253)]
Timestamp = Annotated[
    str,
    StringConstraints(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$"
    ),
    AfterValidator(_check_time),
    Field(json_schema_extra={"format": "date-time"}),
]
SubjectText = Annotated[
    Any,
    PlainValidator(_subject_value),
    # A text or an object: a structural schema cannot say so, but each keyword here binds only values of its own type.
    WithJsonSchema(
        {
            "x-kubernetes-preserve-unknown-fields": True,
            "minLength": 1,
            "maxLength": MAX_VALUE,
            "maxItems": 0,
            "maxProperties": 1,
            "required": ["sha256"],
            "properties": {
                "sha256": {
                    "type": "string",
                    "pattern": _SHA256,
                    "description": "SHA-256 of the value in hexadecimal, so that no secret need stand in Git.",
                }
            },
        }
    ),
]
