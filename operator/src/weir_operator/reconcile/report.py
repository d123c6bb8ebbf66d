# SPDX-License-Identifier: Apache-2.0
"""All statuses of one gateway at one moment, and when they change by themselves.

Owns the joining of outcome, piece and revision for each object. Pure: what a status says is `status`, and writing it is
`writer`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from weir_operator.api.intervening import parse_interventions
from weir_operator.domain.conditions import ConditionType, Reason, Status
from weir_operator.domain.limits import Mode
from weir_operator.domain.outcomes import Outcome
from weir_operator.domain.overriding import Override
from weir_operator.domain.problems import chief_reason
from weir_operator.domain.ruleset import Policy
from weir_operator.domain.specs import OverrideInput, PolicyInput
from weir_operator.reconcile.coverage import Coverage, coverage_of
from weir_operator.reconcile.demand import Witness
from weir_operator.reconcile.fleet import Fleet, Standing
from weir_operator.reconcile.judgements import Judgements
from weir_operator.reconcile.observation import Orphans
from weir_operator.reconcile.ports import OVERRIDES, POLICIES, Object
from weir_operator.reconcile.programming import Programming, programming_of
from weir_operator.reconcile.publication import Piece, PieceKey, Publication
from weir_operator.reconcile.status import Subject, override_status, policy_status
from weir_operator.reconcile.weakness import Causes, Weakness, weaknesses
from weir_operator.reconcile.writer import Wanted


class GatewayReport:
    """Collects the statuses of one gateway's objects."""

    def __init__(
        self,
        fleet: Fleet,
        publication: Publication | None,
        pieces: Mapping[PieceKey, Piece],
        memory: tuple[Witness, Judgements],
        now: datetime,
    ) -> None:
        """Take the limiters' state, what is published, what is wanted (`pieces`), what outlives a report, the time."""
        self._fleet = fleet
        self._publication = publication
        self._pieces = pieces
        self._witness, self._judgements = memory
        self._judgements.begin_pass()
        self._now = now
        self._programmings: dict[int | None, Programming] = {}
        self._whole: Coverage | None = None
        self._turns: list[float] = []
        self.statuses: list[Wanted] = []

    def add_policy(
        self, obj: Object | None, policy: PolicyInput, outcome: Outcome, rules: Mapping[str, Any], by_hand: str = ""
    ) -> None:
        """Judge a policy; None = it has changed since it was compiled, so the next turn will judge it.

        `rules` are the members of its status that are about where its rules stand, `by_hand` names what people had said
        of it by then; "" if they had not.
        """
        if obj is None:
            return
        piece = self._pieces.get((Policy, policy.meta.id))
        programming = self._programming(Policy, policy.meta.id, piece, outcome)
        coverage = self._coverage(policy.meta.id, piece, programming)
        weak = self._weaknesses(obj, piece, programming) if isinstance(piece, Policy) else ()
        subject = Subject(obj, outcome, programming, piece, coverage, weak, rules, by_hand=by_hand)
        self.statuses.append(self._judgements.of(POLICIES, subject, policy_status, self._now).wanted)

    def add_override(self, obj: Object | None, override: OverrideInput, outcome: Outcome) -> None:
        """Judge an override, like `add_policy`."""
        if obj is None:
            return
        piece = self._pieces.get((Override, override.meta.id))
        policy = self._pieces.get((Policy, override.policy_id))
        mode = policy.rules[0].mode if isinstance(policy, Policy) else None
        programming = self._programming(Override, override.meta.id, piece, outcome)
        subject = Subject(obj, outcome, programming, piece, policy_mode=mode)
        judgement = self._judgements.of(OVERRIDES, subject, override_status, self._now)
        self.statuses.append(judgement.wanted)
        if judgement.until is not None:
            self._turns.append(judgement.until)

    def _coverage(self, policy_id: str, piece: Piece | None, programming: Programming) -> Coverage:
        coverage = self._whole
        if programming.status is not Status.TRUE:
            reports, found = self._fleet.reports, programming.standings
            coverage = coverage_of(policy_id, reports, found, runs_whole=piece is not None)
        elif coverage is None:  # the usual case, which is the same for every policy
            coverage = coverage_of("", self._fleet.reports, programming.standings, runs_whole=True)
            self._whole = coverage = replace(coverage, unasked_since_ms=self._fleet.unasked_since_ms)
        unmatched_since_ms, again_in_s = self._witness.unmatched_since_ms(policy_id, self._fleet.reports)
        if again_in_s is not None:
            self._turns.append(self._now.timestamp() + again_in_s)
        return coverage if unmatched_since_ms is None else replace(coverage, unmatched_since_ms=unmatched_since_ms)

    def _weaknesses(self, obj: Object, piece: Policy, programming: Programming) -> tuple[Weakness, ...]:
        interventions = parse_interventions(obj.get("status"))
        staged = "rollout" in obj["spec"] and obj["spec"].get("mode") == Mode.ENFORCE
        causes = Causes(interventions, staged, self._now.timestamp())
        standings = programming.standings
        running = [r for r, s in zip(self._fleet.reports, standings, strict=False) if s is Standing.RUNS]
        return weaknesses(piece, running, causes)

    def still_says(self, fleet: Fleet, now: datetime) -> bool:
        """Whether a report on the same objects would say the same with these limiters at this time."""
        return fleet == self._fleet and not self._moving and now.timestamp() < min(self._turns, default=float("inf"))

    def next_in_s(self, now: datetime, settled_s: float, unsettled_s: float) -> float:
        """Return in how many seconds to look again."""
        turn_s = min(self._turns, default=float("inf")) - now.timestamp()
        return max(0.0, min(unsettled_s if self._moving else settled_s, turn_s))

    @property
    def _moving(self) -> bool:
        """Whether limiters are expected to catch up any moment, which makes the very passing of time news."""
        return any(programming.reason is Reason.PROPAGATING for programming in self._programmings.values())

    def _programming(self, kind: type[Piece], object_id: str, piece: Piece | None, outcome: Outcome) -> Programming:
        if piece is None and not outcome.accepted:
            return Programming(Status.FALSE, Reason.NOT_ACCEPTED, "", 0, len(self._fleet.reports))
        publication = self._publication
        required = publication.revision_of((kind, object_id), piece) if publication is not None else None
        if required not in self._programmings:
            now_ms = int(self._now.timestamp() * 1000)
            self._programmings[required] = programming_of(self._fleet, required, now_ms)
        return self._programmings[required]


def orphan_statuses(orphans: Orphans, now: datetime) -> list[Wanted]:
    """Return the statuses of the objects that no gateway takes."""
    nowhere = Programming(Status.FALSE, Reason.NOT_ACCEPTED, "")
    policies = [
        Wanted(POLICIES, obj, policy_status(Subject(obj, outcome, nowhere), now)) for obj, outcome in orphans.policies
    ]
    overrides = [
        Wanted(OVERRIDES, obj, override_status(Subject(obj, outcome, nowhere), now))
        for obj, outcome in orphans.overrides
    ]
    return policies + overrides


def verdicts(statuses: Iterable[Wanted]) -> Counter[tuple[str, str]]:
    """Count policies by what Enforcing says of them."""
    conditions = (condition for wanted in statuses for condition in wanted.status["conditions"])
    enforcing = (each for each in conditions if each["type"] == ConditionType.ENFORCING)
    return Counter((str(each["status"]), str(each["reason"])) for each in enforcing)


def refusals(outcomes: Iterable[Outcome]) -> Counter[str]:
    """Count what is not accepted, by reason."""
    return Counter(str(chief_reason(outcome.problems)) for outcome in outcomes if not outcome.accepted)
