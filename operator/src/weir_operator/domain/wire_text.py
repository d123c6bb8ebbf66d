# SPDX-License-Identifier: Apache-2.0
"""Frozen dataclasses straight to canonical JSON: what `json.dumps` makes of `wire.encode`'s data, only faster.

Owns speed, not form: which members there are, and their names, is `wire`'s business.
"""

from __future__ import annotations

import functools
import operator
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from json.encoder import encode_basestring as quoted
from typing import Any

from weir_operator.domain.wire import members_of

_Writer = Callable[[Any], str]


def canonical_text(value: Any) -> str:
    """A dataclass, text or number as JSON with sorted members, no spaces and no escapes but the necessary ones."""
    kind: Any = type(value)  # Any: mypy does not believe that a class can be hashed
    return _writer(kind)(value)


def join_members(members: Mapping[str, str]) -> bytes:
    """The object whose members have these texts."""
    return f"{{{','.join([f'{quoted(name)}:{members[name]}' for name in sorted(members)])}}}".encode()


class Texts:
    """The texts of a large object's parts: each is written once for as long as the very part stays in the object."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, str]] = {}  # with the part itself, so that no other can get its number

    def of(self, part: object) -> str:
        """The text of one part, remembered until `members` is asked for an object without it."""
        known = self._known.get(id(part)) or (part, canonical_text(part))
        self._known[id(part)] = known
        return known[1]

    def keep(self, parts: Iterable[object]) -> None:
        """Forget the texts of all other parts."""
        self._known = {id(part): self._known[id(part)] for part in parts if id(part) in self._known}

    def members(self, value: Any) -> dict[str, str]:
        """The canonical JSON of each member of a dataclass. Remembered are the items of its lists."""
        found: dict[int, tuple[object, str]] = {}
        texts = {}
        kind: Any = type(value)
        for m in members_of(kind):
            content = getattr(value, m.attribute)
            if isinstance(content, tuple):
                texts[m.name] = self._list(content, _writer(typing.get_args(m.annotation)[0]), found)
            elif content is not None:
                texts[m.name] = _writer(m.annotation)(content)
        self._known = found
        return texts

    def _list(self, items: tuple[object, ...], write: _Writer, found: dict[int, tuple[object, str]]) -> str:
        parts = []
        for item in items:
            known = self._known.get(id(item)) or (item, write(item))
            found[id(item)] = known
            parts.append(known[1])
        return f"[{','.join(parts)}]"


@functools.cache
def _writer(hint: Any) -> _Writer:
    """What writes values with this annotation, which is found out once and not for each of 200,000 values."""
    if hint is int:
        return repr
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return functools.partial(_write_list, _writer(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return functools.partial(_write_map, _writer(arguments[1]))
    if isinstance(hint, types.UnionType):
        return canonical_text
    if issubclass(hint, str):
        return quoted
    members = sorted(members_of(hint), key=operator.attrgetter("name"))
    return functools.partial(
        _write_object,
        [(f"{quoted(m.name)}:", operator.attrgetter(m.attribute), _writer(m.annotation)) for m in members],
    )


def _write_list(write: _Writer, items: tuple[Any, ...]) -> str:
    return f"[{','.join([write(item) for item in items])}]"


def _write_map(write: _Writer, items: Mapping[str, Any]) -> str:
    return f"{{{','.join([f'{quoted(key)}:{write(items[key])}' for key in sorted(items)])}}}"


def _write_object(members: list[tuple[str, _Writer, _Writer]], value: Any) -> str:
    found = []
    for prefix, get, write in members:
        item = get(value)
        if item is not None:
            found.append(prefix + write(item))
    return f"{{{','.join(found)}}}"
