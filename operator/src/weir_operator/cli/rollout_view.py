# SPDX-License-Identifier: Apache-2.0
"""Where a policy's rules stand, as `weir rollout` shows it: from the object alone.

Owns the words and the exit status. What a rule waits for is asked of the same gates that the operator decides by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weir_operator.api.parsing import parse_policy
from weir_operator.api.rule_states import parse_rule_states
from weir_operator.domain.evidence import Evidence
from weir_operator.domain.rollout_gates import Gate, Wait, shadow_waits, stage_wait
from weir_operator.domain.rollout_state import RuleState
from weir_operator.domain.rollout_terms import PLAIN, RolloutTerms, percent_text
from weir_operator.domain.specs import PolicySpec
from weir_operator.domain.times import time_text

EXIT_SETTLED, EXIT_WAITING, EXIT_ROLLED_BACK = 0, 3, 4
COLUMNS = ("RULE", "STAGE", "ENFORCED", "NEW", "REQUESTS", "OVER LIMIT", "WAITS FOR")

Row = Mapping[str, Any]


def rows(policy: Mapping[str, Any], now_s: float) -> list[Row]:
    """Return what is to be said of each rule, in the policy's order; empty: the operator has said nothing yet."""
    status = policy.get("status") or {}
    spec = parse_policy(policy).spec
    terms = spec.rollout if isinstance(spec, PolicySpec) else PLAIN
    states = parse_rule_states(status)
    entries = (entry for entry in status.get("rules") or () if entry.get("name") in states)
    return [_row(entry, states[entry["name"]], terms, now_s) for entry in entries]


def exit_status(found: Sequence[Row]) -> int:
    """Return what a script goes by."""
    if any(row["stage"] == "RolledBack" for row in found):
        return EXIT_ROLLED_BACK
    return EXIT_WAITING if any(row["waitsFor"] for row in found) or not found else EXIT_SETTLED


def table(found: Sequence[Row]) -> str:
    """Return the rows as lines for a terminal, the most affected subjects below."""
    cells = [COLUMNS, *(_cells(row) for row in found)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(COLUMNS))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    for row in found:
        lines += _subjects(row)
    return "\n".join(lines)


def _row(entry: Mapping[str, Any], state: RuleState, terms: RolloutTerms, now_s: float) -> Row:
    active, candidate, evidence = state.active, state.candidate, state.evidence
    waits = list(_waits(entry, state, terms, now_s))
    return {
        "rule": state.name,
        "stage": entry["stage"],
        "mode": entry["mode"],
        "effectiveMode": entry["effectiveMode"],
        "why": entry["why"],
        "enforcedGeneration": active.generation if active is not None else None,
        "candidate": candidate.version if candidate is not None else None,
        "waitsFor": waits,
        "evidence": entry.get("evidence") if evidence is not None else None,
    }


def _waits(entry: Mapping[str, Any], state: RuleState, terms: RolloutTerms, now_s: float) -> Iterator[str]:
    candidate = state.candidate
    if candidate is None:
        return
    if candidate.refusal is not None:
        yield f"rolled back at {time_text(candidate.refusal.at_s)}: a new generation, or weir promote"
    elif entry["mode"] != "Enforce":
        yield f"mode Enforce, it is {entry['mode']}"
    elif candidate.stage:
        wait = stage_wait(terms, candidate, now_s)
        yield _words(wait, terms, state.evidence) if wait is not None else "the operator's next turn"
    else:
        for wait in shadow_waits(terms, candidate, state.evidence, now_s):
            yield _words(wait, terms, state.evidence)


def _words(wait: Wait, terms: RolloutTerms, evidence: Evidence | None) -> str:
    match wait.gate:
        case Gate.APPROVAL:
            return "weir promote"
        case Gate.AFTER | Gate.HOLD if wait.until_s is not None:
            return f"time, until {time_text(int(wait.until_s))}"
        case Gate.REQUESTS:
            return f"requests, {evidence.requests if evidence is not None else 0} of {terms.min_requests or 1}"
        case Gate.WOULD_REJECT if evidence is not None and terms.max_would_reject is not None:
            most = percent_text(terms.max_would_reject)
            return f"fewer over the limit, {percent_text(evidence.share)} and not at most {most}; or weir promote"
        case _:
            return wait.message


def _cells(row: Row) -> tuple[str, ...]:
    enforced, evidence = row["enforcedGeneration"], row["evidence"] or {}
    return (
        row["rule"],
        row["stage"],
        "-" if enforced is None else f"generation {enforced}",
        row["candidate"] or "-",
        str(evidence.get("requests", "-")),
        str(evidence.get("share", "-")),
        "; ".join(row["waitsFor"]) or "nothing",
    )


def _subjects(row: Row) -> list[str]:
    evidence = row["evidence"] or {}
    top = evidence.get("top") or ()
    if not top:
        return []
    shown = [f"  {each['count']:>8}  {each['subject']}" for each in top]
    return ["", f"most over the limit of {row['rule']}, since {evidence['since']}:", *shown]
