# SPDX-License-Identifier: Apache-2.0
"""Frozen dataclasses to plain JSON data and back, and to JSON Schema, from their annotations alone.

Knows no document in particular (`ruleset` declares one). Supported annotations: `str`, `int`, `StrEnum`, another
dataclass, `tuple[T, ...]`, `Mapping[str, T]`, `T | None` (None = the member is absent), and unions of dataclasses,
which are told apart by their member names and constants. Anything else raises TypeError when the class is first used.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

T = TypeVar("T")
Json = Any
_Decoder = Callable[[Json, str], Any]


class DocumentError(ValueError):
    """Data that is not an instance of the declared type; the message starts with the JSON path."""


def member(description: str, *, name: str = "", default: Any = dataclasses.MISSING, **schema: Json) -> Any:
    """A dataclass field with its description, its JSON name (else the field's in camelCase) and schema keywords."""
    return dataclasses.field(default=default, metadata={"description": description, "name": name, "schema": schema})


def encode(value: Any) -> Json:
    """`value` as dicts, lists, strings and integers; members that are None are left out."""
    kind: Any = type(value)
    if kind is str or kind is int:
        return value
    if kind is tuple:
        return [encode(item) for item in value]
    if kind is dict:
        return {key: encode(item) for key, item in value.items()}
    if issubclass(kind, StrEnum):
        return str(value)
    members = ((m.name, getattr(value, m.attribute)) for m in members_of(kind))
    return {name: encode(item) for name, item in members if item is not None}


def decode(kind: type[T], data: Json, path: str = "$") -> T:
    """The instance of dataclass `kind` that `encode` made `data` from. Unknown members are refused: DocumentError."""
    hint: Any = kind
    value: T = _decoder(hint)(data, path)
    return value


def json_schema(kind: type, *, title: str) -> dict[str, Json]:
    """The JSON Schema (2020-12) of `kind`, one `$defs` entry for each dataclass it uses."""
    defs: dict[str, Json] = {}
    root = _schema_of(kind, defs)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **root}
    return {**schema, "$defs": {name: defs[name] for name in sorted(defs)}}


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """How one field of a dataclass stands in JSON."""

    attribute: str
    name: str
    annotation: Any  # without `| None`
    optional: bool
    description: str
    schema: Mapping[str, Json]


@functools.cache
def members_of(kind: Any) -> tuple[Member, ...]:
    """The members of dataclass `kind`, in the order of its fields."""
    hints = typing.get_type_hints(kind)
    return tuple(_member_of(field, hints[field.name]) for field in dataclasses.fields(kind))


def _member_of(field: dataclasses.Field[Any], hint: Any) -> Member:
    arms = _arms(hint)
    optional = type(None) in arms
    if optional:
        (hint,) = (arm for arm in arms if arm is not type(None))
    metadata = field.metadata
    name = metadata.get("name") or _camel(field.name)
    return Member(field.name, name, hint, optional, metadata.get("description", ""), metadata.get("schema", {}))


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _arms(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


@functools.cache
def _decoder(hint: Any) -> _Decoder:
    if hint in (str, int):
        return functools.partial(_decode_scalar, hint)
    arms = _arms(hint)
    if len(arms) > 1:
        return functools.partial(_decode_union, arms)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return functools.partial(_decode_list, arguments[0])
    if origin is not None and issubclass(origin, Mapping):
        return functools.partial(_decode_map, arguments[1])
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return functools.partial(_decode_enum, hint)
    if dataclasses.is_dataclass(hint):
        return functools.partial(_decode_object, hint)
    raise TypeError(f"no JSON form is defined for {hint}")


def _decode_scalar(kind: type, data: Json, path: str) -> Any:
    if type(data) is not kind:  # not isinstance: True is no integer here
        raise DocumentError(f"{path}: expected {kind.__name__}, found {type(data).__name__}")
    return data


def _decode_enum(kind: type[StrEnum], data: Json, path: str) -> StrEnum:
    try:
        return kind(data)
    except ValueError:
        raise DocumentError(f"{path}: expected one of {', '.join(kind)}") from None


def _decode_list(item: Any, data: Json, path: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise DocumentError(f"{path}: expected a list, found {type(data).__name__}")
    decoder = _decoder(item)
    return tuple(decoder(entry, f"{path}[{index}]") for index, entry in enumerate(data))


def _decode_map(item: Any, data: Json, path: str) -> dict[str, Any]:
    decoder = _decoder(item)
    return {key: decoder(entry, f"{path}.{key}") for key, entry in _object(data, path).items()}


def _decode_object(kind: Any, data: Json, path: str) -> Any:
    given = _object(data, path)
    members = members_of(kind)
    unknown = sorted(set(given) - {m.name for m in members})
    missing = sorted(m.name for m in members if not m.optional and m.name not in given)
    if unknown or missing:
        raise DocumentError(f"{path}: unknown members {unknown}, missing members {missing}")
    known = {m.attribute: _decoder(m.annotation)(given[m.name], f"{path}.{m.name}") for m in members if m.name in given}
    return kind(**known, **{m.attribute: None for m in members if m.name not in given})


def _decode_union(arms: tuple[Any, ...], data: Json, path: str) -> Any:
    given = _object(data, path)
    for arm in arms:
        members = members_of(arm)
        constants = ((m.name, m.schema["const"]) for m in members if "const" in m.schema)
        if set(given) == {m.name for m in members} and all(given[name] == value for name, value in constants):
            return _decode_object(arm, data, path)
    raise DocumentError(f"{path}: expected exactly one of {', '.join(_form(arm) for arm in arms)}")


def _form(arm: Any) -> str:
    """What a union's arm is called in a message: its constant, else its first member."""
    members = members_of(arm)
    return next((str(m.schema["const"]) for m in members if "const" in m.schema), members[0].name)


def _object(data: Json, path: str) -> dict[str, Json]:
    if not isinstance(data, dict):
        raise DocumentError(f"{path}: expected an object, found {type(data).__name__}")
    return data


def _schema_of(hint: Any, defs: dict[str, Json]) -> dict[str, Json]:
    if hint in (str, int):
        return {"type": "string" if hint is str else "integer"}
    arms = _arms(hint)
    if len(arms) > 1:
        return {"oneOf": [_schema_of(arm, defs) for arm in arms]}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return {"type": "array", "items": _schema_of(arguments[0], defs)}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema_of(arguments[1], defs)}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"type": "string", "enum": [str(word) for word in hint]}
    if hint.__name__ not in defs:
        defs[hint.__name__] = {}  # taken before its members are visited, so that a recursive type ends
        defs[hint.__name__] = _object_schema(hint, defs)
    return {"$ref": f"#/$defs/{hint.__name__}"}


def _object_schema(kind: Any, defs: dict[str, Json]) -> dict[str, Json]:
    members = members_of(kind)
    properties = {}
    for m in members:
        described = {"description": m.description} if m.description else {}
        form = _schema_of(m.annotation, defs)
        if "const" in m.schema:
            form.pop("enum", None)  # one of the words, and this one alone
        properties[m.name] = {**form, **described, **m.schema}
    return {
        "type": "object",
        "description": (kind.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " "),
        "properties": properties,
        "required": [m.name for m in members if not m.optional],
        "additionalProperties": False,
    }
