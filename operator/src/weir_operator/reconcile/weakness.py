# SPDX-License-Identifier: Apache-2.0
"""Which rules of a policy do not refuse requests now, and who or what is the cause.

What holds is what the limiters say; the causes are the spec, kill switches, break glass and a rollout, and the one that
made the rule as weak as it is is named. Owns the words for them. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir_operator.domain.conditions import Reason
from weir_operator.domain.interventions import ALL_RULES, Interventions, KillSwitch
from weir_operator.domain.limits import Mode
from weir_operator.domain.modes import Stage, at_most, strongest, weakest
from weir_operator.domain.ruleset import Policy, Rule
from weir_operator.domain.times import time_text
from weir_operator.reconcile.fleet import some
from weir_operator.reconcile.ports import LimiterReport

NAMED_RULES = 3  # of each cause in a message; the rest is counted
MAX_REASON = 80  # characters of what a person wrote; the whole stands in status.killSwitches

_WORDS = {
    Mode.SHADOW: "requests over the limit are counted, none is refused",
    Mode.DISABLED: "nothing is counted and nothing is refused",
}
_ORDER = (Reason.BREAK_GLASS, Reason.KILL_SWITCH, Reason.SWITCHED_OFF, Reason.SHADOW_MODE, Reason.ROLLING_OUT)
"""The news first: what somebody did by hand, then what was planned."""


@dataclass(frozen=True, slots=True)
class Weakness:
    """One rule that does not refuse, as its weakest limiter has it."""

    rule: str
    mode: Mode
    reason: Reason
    why: str
    """What to tell of the cause, the same for all rules that it weakens."""


@dataclass(frozen=True, slots=True)
class Causes:
    """What may weaken the rules of one policy."""

    interventions: Interventions
    rollout: bool
    """Whether its spec asks for a rollout: then a rule may be in shadow although the policy is not."""
    now_s: float


def weaknesses(piece: Policy, reports: Sequence[LimiterReport], causes: Causes) -> tuple[Weakness, ...]:
    """Return the rules of `piece` that do not refuse on every one of the limiters, which all run it."""
    runs = [report.policies[piece.id].modes for report in reports if piece.id in report.policies]
    entries: dict[str, list[Rule]] = {}
    for rule in piece.rules:
        entries.setdefault(rule.name, []).append(rule)
    found = []
    for name, versions in entries.items():
        written = strongest(rule.mode for rule in versions)
        effective = weakest(run.get(name, written) for run in runs) if runs else written
        if effective is not Mode.ENFORCE:
            found.append(Weakness(name, effective, *_cause(piece.id, versions, effective, reports, causes)))
    return tuple(found)


def chief(weak: Sequence[Weakness]) -> Reason:
    """Return the reason that stands in the condition when rules are weak for several."""
    return min((weakness.reason for weakness in weak), key=_ORDER.index)


def explain(weak: Sequence[Weakness], *, alone: bool = False) -> str:
    """Say of each cause what it weakens, the chief one first; `alone`: there are no other rules to tell them from."""
    causes: dict[tuple[int, str, Mode], list[str]] = {}
    for weakness in sorted(weak, key=lambda weakness: (_ORDER.index(weakness.reason), weakness.why)):
        place = _ORDER.index(weakness.reason), weakness.why, weakness.mode
        causes.setdefault(place, []).append(weakness.rule)
    if alone and len(causes) == 1:
        ((_, why, mode),) = causes
        return f"{why}: {_WORDS[mode]}"
    named = ((why, some(names, NAMED_RULES), mode) for (_, why, mode), names in causes.items())
    return "; ".join(f"{why} ({names}): {_WORDS[mode]}" for why, names, mode in named)


def _cause(
    policy_id: str, versions: Sequence[Rule], effective: Mode, reports: Sequence[LimiterReport], causes: Causes
) -> tuple[Reason, str]:
    name, written = versions[0].name, strongest(rule.mode for rule in versions)
    if at_most(written, effective):
        stages = [rule.stage for rule in versions if rule.stage is not None and rule.stage.mode is Mode.ENFORCE]
        if stages:
            return Reason.ROLLING_OUT, f"its rollout enforces it for {_stage_message(stages[0])} only"
        if causes.rollout and written is Mode.SHADOW:
            return Reason.ROLLING_OUT, "its rollout has it in mode Shadow, see status.rules"
        return Reason.SHADOW_MODE if written is Mode.SHADOW else Reason.SWITCHED_OFF, f"mode {written}"
    switches = causes.interventions.kill_switches
    live = [switches[key] for key in (name, ALL_RULES) if key in switches and switches[key].is_live(causes.now_s)]
    for switch in live:
        if switch.mode is effective:
            return Reason.KILL_SWITCH, _switch_message(switch)
    glass = [report.name for report in reports if _glass(report.break_glass, policy_id, name) is effective]
    if glass:
        return Reason.BREAK_GLASS, f"break glass on {some(sorted(glass), NAMED_RULES)}, mode {effective}"
    return Reason.KILL_SWITCH, f"a switch that limiters still apply, mode {effective}"


def _glass(modes: Mapping[str, Mode], policy_id: str, name: str) -> Mode:
    keys = ("*", policy_id, f"{policy_id}/{name}")
    return weakest(modes[key] for key in keys if key in modes)


def _switch_message(switch: KillSwitch) -> str:
    until = "" if switch.not_after is None else f" until {time_text(switch.not_after)}"
    by = f" by {switch.by}" if switch.by else ""
    reason = switch.reason if len(switch.reason) <= MAX_REASON else switch.reason[: MAX_REASON - 1] + "…"
    return f"kill switch{by}, mode {switch.mode}{until}{f', {reason}' if reason else ''}"


def _stage_message(stage: Stage) -> str:
    plans = f"the plans {some(stage.plans, NAMED_RULES)}" if stage.plans else ""
    share = f"{stage.percent} % of the subjects" if stage.percent else ""
    return " and ".join(filter(None, (plans, share)))
