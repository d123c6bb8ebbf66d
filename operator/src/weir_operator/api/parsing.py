# SPDX-License-Identifier: Apache-2.0
"""A custom resource's JSON to the compiler's input, or to problems in our own words and paths.

Never raises for anything that a user can write. Knows nothing of what a spec means; that is the compiler's.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from weir_operator.api.override import RateLimitOverrideSpec
from weir_operator.api.policy import RateLimitPolicySpec
from weir_operator.api.types import ApiModel
from weir_operator.domain.problems import Problem, did_you_mean, invalid
from weir_operator.domain.specs import Meta, OverrideInput, PolicyInput

Object = Mapping[str, Any]
Model = TypeVar("Model", bound=ApiModel)
Location = Sequence[str | int]

_PATTERNS = {
    "period": "write a duration like 250ms, 1s, 5m or 1h30m",
    "hosts": 'write a lower-case name without port, like "api.example.com" or "*.example.com"',
    "path": 'write a path that starts with "/"',
    "methods": "methods are upper case, like GET",
    "hold": "write a duration like 1h or 30m",
    "after": "write a duration like 24h or 168h",
    "for": "write a duration like 5m",
    "maxWouldReject": 'write a share in quotes, like "0.1%"',
    "rejected": 'write a share in quotes, like "5%"',
    "maxDelay": "write a duration like 250ms, 1s, 5m or 1h30m",
    "header": 'write a header name like "x-api-key"',
    "cookie": 'write the name of a cookie, like "session"',
    "query": 'write the name of a query parameter, like "api_key"',
    "claim": 'write names of members with dots between, like "sub" or "realm.roles"; a dot in a name is "\\."',
    "factor": 'write a number in quotes with up to three decimals, like "2.5"',
    "name": "write lower-case letters, digits and dashes, a letter first",
    "rules": "write the name of a rule",
    "code": "write lower-case letters, digits and underscores, a letter first, at most 64",
    "documentation": "write an https:// address",
    "startsAt": 'write RFC 3339, like "2026-12-01T00:00:00Z"',
    "expiresAt": 'write RFC 3339, like "2026-12-01T00:00:00Z"',
    "gateway": "write the name of a gateway",
}
_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "string_type": "a text, in quotes where YAML reads something else",
    "model_type": "a map of fields",
    "dict_type": "a map of fields",
    "tuple_type": "a list",
}
_HINTS = {
    "exactly_one": "write one list entry for each",
    "time": 'write RFC 3339, like "2026-12-01T00:00:00Z"',
    "times": "give it an end, or say permanent: true",
    "subject": 'write the value, or {sha256: "<64 hexadecimal digits>"}',
    "subject_length": "leave the source out if any value is meant",
    "subject_quotes": "put the value into quotes",
}


def parse_policy(obj: Object) -> PolicyInput:
    """The compiler's input from a RateLimitPolicy as the API server returns it."""
    spec = _mapping(obj.get("spec"))
    gateway = spec.get("gateway", "default")
    parsed = _parse(RateLimitPolicySpec, spec)
    return PolicyInput(
        _meta(obj),
        gateway if isinstance(gateway, str) else "",
        parsed if isinstance(parsed, tuple) else parsed.to_domain(),
    )


def parse_override(obj: Object) -> OverrideInput:
    """The compiler's input from a RateLimitOverride as the API server returns it."""
    spec = _mapping(obj.get("spec"))
    policy = _mapping(spec.get("policyRef")).get("name")
    parsed = _parse(RateLimitOverrideSpec, spec)
    return OverrideInput(
        _meta(obj),
        policy if isinstance(policy, str) else "",
        parsed if isinstance(parsed, tuple) else parsed.to_domain(),
    )


def _meta(obj: Object) -> Meta:
    metadata = _mapping(obj.get("metadata"))
    generation = metadata.get("generation")
    return Meta(
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata.get("name", "")),
        uid=str(metadata.get("uid", "")),
        generation=generation if isinstance(generation, int) else 0,
        created_at=_created_at(metadata.get("creationTimestamp")),
    )


def _created_at(timestamp: object) -> int:
    try:
        return int(datetime.fromisoformat(str(timestamp)).timestamp())
    except (ValueError, OverflowError):
        return 0  # a manifest that was never created


def _parse(model: type[Model], spec: Object) -> Model | tuple[Problem, ...]:
    try:
        text = json.dumps(spec, default=_json)
    except (TypeError, ValueError, RecursionError):
        return (invalid("spec", "is no JSON", "write plain texts, numbers, lists and maps"),)
    try:
        # As JSON, so that strict types still take lists for tuples and texts for enumerations.
        return model.model_validate_json(text)
    except ValidationError as error:
        return tuple(_problem(details, spec, model) for details in _causes(error))


def _causes(error: ValidationError) -> list[ErrorDetails]:
    """The errors without those that merely follow: a list is not too short because its entries are wrong."""
    found = error.errors(include_url=False)
    return [
        details
        for details in found
        if details["type"] != "too_short"
        or not any(other["loc"][: len(details["loc"])] == details["loc"] for other in found if other is not details)
    ]


def _json(value: object) -> str:
    """What YAML reads as a date is the text that the user wrote."""
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(type(value).__name__)


def _problem(details: ErrorDetails, spec: Object, model: type[ApiModel]) -> Problem:
    location, kind, context = details["loc"], details["type"], details.get("ctx", {})
    field = next((part for part in reversed(location) if isinstance(part, str) and part != "[key]"), "")
    match kind:
        case "missing":
            message, hint = "is missing", "it is required"
        case "extra_forbidden":
            message, hint = "is an unknown field", did_you_mean(field, _siblings(location, model))
        case "string_pattern_mismatch":
            message, hint = f"{_quoted(location, details)} is malformed", _pattern_hint(field, location)
        case "enum":
            message, hint = f"{_quoted(location, details)} is no choice", f"write {context['expected']}"
        case "greater_than_equal" | "less_than_equal":
            bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
            message, hint = f"{details['input']} is out of range", f"write a whole number, {bound}"
        case "too_short" | "too_long" | "string_too_short" | "string_too_long":
            most = "max_length" in context
            unit = "characters" if kind.startswith("string") else "entries"
            message = f"has too {'many' if most else 'few'} {unit}"
            hint = f"at most {context['max_length']}" if most else f"at least {context['min_length']}"
        case _ if kind in _WANTED:
            message = f"is of the wrong type ({type(details['input']).__name__})"
            hint = f"write {_WANTED[kind]}"
        case _:
            message, hint = details["msg"][:1].lower() + details["msg"][1:], _HINTS.get(kind, "")
    return invalid(_path(location, spec), message, hint)


def _pattern_hint(field: str, location: Location) -> str:
    if field == "path" and "key" in location:
        return "write the name of a route's parameter, like org"
    return _PATTERNS.get(field, "")


def _quoted(location: Location, details: ErrorDetails) -> str:
    """The offending text, unless it may be a secret."""
    secret = "subjects" in location or "in" in location
    return "the value" if secret else f'"{str(details["input"])[:64]}"'


def _path(location: Location, spec: Object) -> str:
    path, value = "spec", _any(spec)
    for part in location:
        if part == "[key]":
            continue  # pydantic's mark for the key of a map, which the part before it names
        following = _step(value, part)
        if isinstance(part, int):
            name = following.get("name") if isinstance(following, Mapping) else None
            path += f"[{name if isinstance(name, str) else part}]"
        else:
            path += f".{part}"
        value = following
    return path


def _step(value: Any, part: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(part)
    if isinstance(value, Sequence) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


def _siblings(location: Location, model: type[ApiModel]) -> list[str]:
    """The fields that exist where the last part of `location` does not."""
    schema = _schema(model)
    definitions = schema.get("$defs", {})
    node = _resolved(schema, definitions)
    for part in location[:-1]:
        if isinstance(part, int):
            following = node.get("items")
        else:
            following = _mapping(node.get("properties")).get(part, node.get("additionalProperties"))
        node = _resolved(_mapping(following), definitions)
    return list(_mapping(node.get("properties")))


@functools.cache
def _schema(model: type[ApiModel]) -> Object:
    return model.model_json_schema(by_alias=True)


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    for arm in schema.get("anyOf", [schema]):
        if "$ref" in arm:
            return _mapping(definitions.get(arm["$ref"].rsplit("/", 1)[1]))
        if arm.get("type") != "null":
            return _mapping(arm)
    return schema


def _any(value: Any) -> Any:
    return value


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
