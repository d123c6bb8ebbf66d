# SPDX-License-Identifier: Apache-2.0
"""The fields of a policy's status that belong to people, read without trust.

Never raises for anything that may stand there: what cannot be understood is ignored and named, and takes no other
entry with it. Knows nothing of rules; whether an entry's rule exists is the compiler's knowledge.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from weir_operator.api.interventions import MAX_ENTRIES, ApprovalEntry, KillSwitchEntry
from weir_operator.api.types import ApiModel, parse_time_s
from weir_operator.domain.interventions import NO_INTERVENTIONS, Approval, Interventions, KillSwitch
from weir_operator.domain.limits import Mode

KILL_SWITCHES = "killSwitches"
APPROVALS = "approvals"
PEOPLES_FIELDS = (KILL_SWITCHES, APPROVALS)
"""The members of a status that the operator never adds or changes."""

_MAX_NAME = 63  # characters of an entry's key in a message: what is longer names no rule

Entry = TypeVar("Entry", bound=ApiModel)
Value = TypeVar("Value")


def parse_interventions(status: Mapping[str, Any] | None) -> Interventions:
    """Return what people wrote into the status of a RateLimitPolicy."""
    if status is None or not any(status.get(field) for field in PEOPLES_FIELDS):
        return NO_INTERVENTIONS
    unusable: dict[str, str] = {}
    return Interventions(
        _entries(status, KILL_SWITCHES, KillSwitchEntry, _kill_switch, unusable),
        _entries(status, APPROVALS, ApprovalEntry, _approval, unusable),
        unusable,
    )


def interventions_digest(status: Mapping[str, Any] | None) -> str:
    """Return what names the present content of people's fields; "" while there is none.

    The operator says with it which content it has judged, so that whoever wrote there knows what to wait for.
    """
    content = {field: (status or {})[field] for field in PEOPLES_FIELDS if (status or {}).get(field)}
    if not content:
        return ""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def _entries(
    status: Mapping[str, Any],
    field: str,
    model: type[Entry],
    to_domain: Callable[[Entry], Value],
    unusable: dict[str, str],
) -> dict[str, Value]:
    found = status.get(field) or {}
    if not isinstance(found, Mapping) or len(found) > MAX_ENTRIES:
        unusable[f"status.{field}"] = f"must be a map with at most {MAX_ENTRIES} entries"
        return {}
    values = {}
    for name in sorted(found):
        try:
            values[name] = to_domain(model.model_validate_json(json.dumps(found[name])))
        except ValidationError as error:
            unusable[f'status.{field}["{name[:_MAX_NAME]}"]'] = _complaint(error)
    return values


def _complaint(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = first["msg"][:1].lower() + first["msg"][1:]
    return f"{where}: {message}" if where else message


def _kill_switch(entry: KillSwitchEntry) -> KillSwitch:
    until = None if entry.expires_at is None else parse_time_s(entry.expires_at)
    return KillSwitch(Mode(entry.mode), until, entry.reason or "", entry.by or "")


def _approval(entry: ApprovalEntry) -> Approval:
    at = None if entry.at is None else parse_time_s(entry.at)
    return Approval(entry.generation, entry.by or "", entry.reason or "", at)
