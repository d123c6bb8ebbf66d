# SPDX-License-Identifier: Apache-2.0
"""Adds up what the limiters of one gateway count, across their restarts and this process' own.

Owns what counts once and only once: a limiter's counts rise from nothing with every start, and the totals here never
fall. What was counted before this process began to listen is in the persisted evidence, if anywhere; so a restart of
the operator loses what happened between the last write and its first look. Pure; the time is an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from weir_operator.domain.evidence import MAX_TOP, Evidence, Recent, RuleCounts, RuleKey
from weir_operator.reconcile.ports import LimiterReport

MAX_SUBJECTS = 64  # arbitrary: ten times what is shown, so that a subject that rises is not forgotten meanwhile
SAMPLES = 50  # in a rollback's time: a fiftieth is how late it may be noticed


@dataclass(slots=True)
class _Total:
    """What was counted of one version since this process began to listen."""

    requests: int = 0
    would_reject: int = 0
    rejected: int = 0
    enforced: int = 0
    subjects: int = 0
    top: Counter[str] = field(default_factory=Counter)

    def add(self, now: RuleCounts, before: RuleCounts) -> None:
        self.requests += now.requests - before.requests
        self.would_reject += now.would_reject - before.would_reject
        self.rejected += now.rejected - before.rejected
        self.enforced += now.enforced - before.enforced
        self.subjects = max(self.subjects, now.subjects)
        counted = dict(before.top)
        for subject, count in now.top:
            self.top[subject] += max(0, count - counted.get(subject, 0))
        if len(self.top) > 2 * MAX_SUBJECTS:
            self.top = Counter(dict(self.top.most_common(MAX_SUBJECTS)))


@dataclass(frozen=True, slots=True)
class _Base:
    """What the evidence of one attempt begins with: what was persisted, and the totals when it was taken over."""

    persisted: Evidence
    requests: int
    would_reject: int
    rejected: int
    top: Mapping[str, int]


class Ledger:
    """The evidence of one gateway's rules."""

    def __init__(self, now_s: float) -> None:
        self._since_ms = int(now_s * 1000)
        self.heard = 0
        """Rises whenever a count has changed."""
        self.counted = False
        """Whether anything was, since whoever asks has set it back."""
        self._heard: dict[str, Mapping[RuleKey, RuleCounts]] = {}
        self._totals: dict[RuleKey, _Total] = {}
        self._bases: dict[RuleKey, _Base] = {}
        self._samples: dict[RuleKey, list[tuple[float, int, int]]] = {}

    def hear(self, reports: Iterable[LimiterReport]) -> None:
        """Take what the limiters say now; one that is silent keeps what it last said."""
        for report in reports:
            if report.error:
                continue
            heard = self._heard.get(report.address, {})
            for key, counts in report.counts.items():
                before = heard.get(key)
                if counts != before:
                    self._count(key, counts, before)
            self._heard[report.address] = report.counts

    def keep_only(self, wanted: Iterable[RuleKey]) -> None:
        """Forget the versions that nobody runs any more."""
        keys = set(wanted)
        self._totals = {key: total for key, total in self._totals.items() if key in keys}
        self._bases = {key: base for key, base in self._bases.items() if key in keys}
        self._samples = {key: samples for key, samples in self._samples.items() if key in keys}

    def evidence(self, key: RuleKey, since_s: int, persisted: Evidence | None, now_s: float) -> Evidence:
        """Return the evidence of a version since `since_s`; `persisted` is what an earlier process knew of it."""
        total = self._totals.get(key) or _Total()
        base = self._bases.get(key)
        if base is None or base.persisted.since_s != since_s:
            ours = persisted is not None and (persisted.version, persisted.since_s) == (key.version, since_s)
            start = persisted if ours and persisted is not None else Evidence(key.version, since_s, since_s)
            base = _Base(start, total.requests, total.would_reject, total.rejected, dict(total.top))
            self._bases[key] = base
        before = base.persisted
        top = Counter(dict(before.top))
        top.update({subject: count - base.top.get(subject, 0) for subject, count in total.top.items()})
        return Evidence(
            key.version,
            since_s,
            int(now_s),
            before.requests + total.requests - base.requests,
            before.would_reject + total.would_reject - base.would_reject,
            before.rejected + total.rejected - base.rejected,
            max(before.subjects, total.subjects),
            tuple(each for each in top.most_common(MAX_TOP) if each[1] > 0),
        )

    def recent(self, key: RuleKey, for_s: float, now_s: float) -> Recent:
        """Return what a version decided lately; asked for regularly from when it first decides anything."""
        total = self._totals.get(key) or _Total()
        samples = self._samples.setdefault(key, [])
        if not samples or now_s - samples[-1][0] >= for_s / SAMPLES:
            samples.append((now_s, total.enforced, total.rejected))
        while len(samples) > 1 and samples[1][0] <= now_s - for_s:
            del samples[0]
        at_s, enforced, rejected = samples[0]
        return Recent(now_s - at_s, total.enforced - enforced, total.rejected - rejected)

    def start_watching(self, key: RuleKey) -> None:
        """Begin anew with what is recent: what an earlier attempt refused does not count."""
        self._samples.pop(key, None)

    def _count(self, key: RuleKey, counts: RuleCounts, before: RuleCounts | None) -> None:
        self.counted, self.heard = True, self.heard + 1
        total = self._totals.setdefault(key, _Total())
        if before is not None and counts.since_ms == before.since_ms and counts.requests >= before.requests:
            total.add(counts, before)
        elif before is not None or counts.since_ms >= self._since_ms:
            total.add(counts, RuleCounts(counts.since_ms))  # it has started, or the rule has, since this process did
        else:
            total.subjects = max(total.subjects, counts.subjects)
