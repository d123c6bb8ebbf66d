# SPDX-License-Identifier: Apache-2.0
"""Policies and overrides to the ruleset of their gateway, and what is wrong with each of them.

Pure and independent of the order of its input; a bad object never changes what is compiled from another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weir_operator.domain.gateways import Gateway
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import Ruleset
from weir_operator.domain.specs import OverrideInput, PolicyInput


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one object.

    No `problems`: it is in the ruleset as written. Else `kept` says whether its last accepted version is still
    there, and `kept_generation` which one that is (policies only: the document has none for overrides).
    `notes` are remarks on an accepted object, such as who outranks it.
    """

    problems: tuple[Problem, ...] = ()
    kept: bool = False
    kept_generation: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the object is in the ruleset as written."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Compiled:
    """A gateway's ruleset and the outcome of every object that went in, by its id (`namespace/name`)."""

    ruleset: Ruleset
    policies: Mapping[str, Outcome]
    overrides: Mapping[str, Outcome]


@dataclass(frozen=True, slots=True)
class Group:
    """The objects that are one gateway's business."""

    policies: tuple[PolicyInput, ...] = ()
    overrides: tuple[OverrideInput, ...] = ()


@dataclass(frozen=True, slots=True)
class Attachment:
    """Which gateway compiles which objects (every gateway is a key), and the outcome of those that none can take."""

    groups: Mapping[str, Group]
    policies: Mapping[str, Outcome] = field(default_factory=dict)
    overrides: Mapping[str, Outcome] = field(default_factory=dict)


def attach(
    policies: Iterable[PolicyInput],
    overrides: Iterable[OverrideInput],
    gateways: Sequence[Gateway],
    previous: Mapping[str, Ruleset],
) -> Attachment:
    """Sort all objects of the cluster by gateway. `previous` are the live rulesets by gateway name."""
    raise NotImplementedError


def compile_ruleset(
    policies: Iterable[PolicyInput], overrides: Iterable[OverrideInput], gateway: Gateway, previous: Ruleset | None
) -> Compiled:
    """Compile one gateway's group. `previous` is the live ruleset: the last accepted version of a bad edit is kept."""
    raise NotImplementedError
