# SPDX-License-Identifier: Apache-2.0
"""Frozen snapshots of what was seen, the input of every pure step of a pass.

Values only: where they come from is `store`, what follows from them `plan` and `status`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weir_operator.domain.attachment import Group
from weir_operator.domain.outcomes import Outcome
from weir_operator.reconcile.ports import Object


@dataclass(frozen=True, slots=True)
class Observation:
    """What concerns one gateway at one moment."""

    group: Group
    """The policies and overrides to compile."""
    config_maps: Mapping[str, Object]
    """By name, in the gateway's namespace: those that carry our label, whoever wrote them."""


@dataclass(frozen=True, slots=True)
class Orphans:
    """The objects that no gateway takes, each with the reason."""

    policies: tuple[tuple[Object, Outcome], ...]
    overrides: tuple[tuple[Object, Outcome], ...]
