# SPDX-License-Identifier: Apache-2.0
"""Reads a YAML document member by member and collects what is wrong, each mistake with its path.

Owns the mechanics only: types, required members, members that nobody asked for. What a member means is `settings`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import yaml

T = TypeVar("T")
_ABSENT: Any = object()


class _UniqueKeyLoader(yaml.SafeLoader):
    """PyYAML lets the last of two equal keys win in silence; a setting that is overruled so would surprise."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        mapping = super().construct_mapping(node, deep)
        if len(mapping) != len(node.value):
            raise yaml.constructor.ConstructorError(None, None, "a member stands twice in one mapping", node.start_mark)
        return mapping


def load_yaml(text: str) -> Any:
    """Return the document as plain data; raises yaml.YAMLError with the place of the mistake."""
    return yaml.load(text, _UniqueKeyLoader)  # noqa: S506  a subclass of SafeLoader


@dataclass(slots=True)
class Section:
    """One mapping of the document. Ask for every member, then call `finish`."""

    path: str
    members: Mapping[str, Any]
    mistakes: list[str]
    _known: set[str] = field(default_factory=set)

    def where(self, name: str) -> str:
        """Return a member's path."""
        return f"{self.path}.{name}" if self.path else name

    def wrong(self, name: str, message: str) -> None:
        """Note a mistake in a member."""
        self.mistakes.append(f"{self.where(name)}: {message}")

    def take(self, name: str, kind: type[T], default: T = _ABSENT) -> T:
        """Return a member of that type, or its default; without a default it is required."""
        self._known.add(name)
        if self.members.get(name) is None:
            if default is _ABSENT:
                self.wrong(name, "is required")
                return kind()
            return default
        value = self.members[name]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.wrong(name, f"expected {_NAMES[kind]}, found {value!r}")
            return kind() if default is _ABSENT else default
        return value

    def text(self, name: str, check: Callable[[str], str] = lambda _: "", default: str = _ABSENT) -> str:
        """Return a string that `check` has no complaint about."""
        before = len(self.mistakes)
        value = self.take(name, str, default)
        given = self.members.get(name) is not None
        complaint = check(value) if given and len(self.mistakes) == before else ""
        if complaint:
            self.wrong(name, f"{value!r} {complaint}")
        return value

    def number(self, name: str, least: int, most: int, default: int = _ABSENT) -> int:
        """Return an integer of a range."""
        before = len(self.mistakes)
        value = self.take(name, int, default)
        if len(self.mistakes) == before and not least <= value <= most:
            self.wrong(name, f"{value} is not between {least} and {most}")
        return value

    def texts(self, name: str, check: Callable[[str], str], default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return a list of strings that `check` has no complaint about."""
        values = self.take(name, list, list(default))
        taken = []
        for index, value in enumerate(values):
            complaint = check(value) if isinstance(value, str) else "is no string"
            if complaint:
                self.wrong(f"{name}[{index}]", f"{value!r} {complaint}")
            else:
                taken.append(value)
        return tuple(taken)

    def section(self, name: str) -> Section:
        """Return a member that is a mapping; one that is absent is empty."""
        return Section(self.where(name), self.take(name, dict, {}), self.mistakes)

    def sections(self, name: str) -> Iterator[Section]:
        """Return a list's members, each a mapping."""
        for index, value in enumerate(self.take(name, list, [])):
            if isinstance(value, dict):
                yield Section(f"{self.where(name)}[{index}]", value, self.mistakes)
            else:
                self.wrong(f"{name}[{index}]", f"expected a mapping, found {value!r}")

    def finish(self) -> None:
        """Complain about members that nobody asked for."""
        for name in self.members:
            if name not in self._known:
                close = difflib.get_close_matches(str(name), self._known, 1)
                hint = f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(self._known))}"
                self.wrong(str(name), f"is not a setting; {hint}")


_NAMES: Mapping[type, str] = {str: "a string", int: "a whole number", list: "a list", dict: "a mapping"}
