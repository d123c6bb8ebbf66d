# SPDX-License-Identifier: Apache-2.0
"""One turn of a gateway: observe, compile, render, plan, apply, report; the same whatever the news was.

Owns the order of the steps and what is remembered from one turn to the next. Each step's judgement is pure and lives
next door; when to come again is `pacing`, what to do when the world says no is `loop`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from weir_operator.domain.attachment import Group
from weir_operator.domain.compiler import Compiled, Compiler
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.ruleset import Ruleset
from weir_operator.domain.wire_text import Texts
from weir_operator.metrics import Metrics
from weir_operator.reconcile.by_hand import ByHand
from weir_operator.reconcile.crowd import Crowd
from weir_operator.reconcile.demand import Witness, unasked_since_ms
from weir_operator.reconcile.diary import Diary
from weir_operator.reconcile.fleet import Fleet
from weir_operator.reconcile.judgements import Judgements
from weir_operator.reconcile.observation import Observation
from weir_operator.reconcile.plan import Action, Apply, Delete, DropData, plan
from weir_operator.reconcile.ports import (
    CONFIG_MAPS,
    OVERRIDES,
    POLICIES,
    Clock,
    Cluster,
    Events,
    LimiterReport,
    Limiters,
    Missing,
    Object,
    Stalled,
    Waiting,
)
from weir_operator.reconcile.publication import (
    PieceKey,
    Publication,
    advance,
    base_of,
    owners_of,
    pieces_of,
    running_revision,
    without_replaced,
)
from weir_operator.reconcile.repairs import Repairs
from weir_operator.reconcile.report import GatewayReport, orphan_statuses, refusals, verdicts
from weir_operator.reconcile.rollout_report import rule_members
from weir_operator.reconcile.rollouts import Rollouts
from weir_operator.reconcile.store import Store
from weir_operator.reconcile.writer import StatusWriter
from weir_operator.render.envoy_closed import closed_size, render_closed
from weir_operator.render.envoy_config import render_envoy_config
from weir_operator.render.names import (
    DIGEST_ANNOTATION,
    GATEWAY_LABEL,
    MANAGED_BY_LABEL,
    MANAGER,
    REVISION_ANNOTATION,
    rules_config_map,
)
from weir_operator.render.ruleset_config import Live, RulesetTooLarge, read_live, render_rules

POLL_SETTLED_S = 2.0  # a limiter notices in 2 s that its store is away or back: a condition says so within 5 s
POLL_UNSETTLED_S = 1.0  # how late an acknowledgement shows at most
POLL_AFTER_WRITE_S = 0.3  # limiters take a change within a few ms: the first look should find it
ORPHANS_AGAIN_S = 60.0  # arbitrary: their status depends on no clock and no limiter

NO_GATEWAY = "(none)"  # in the metrics, as `Loop` names the objects that no gateway takes

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tools:
    """What every turn works with."""

    cluster: Cluster
    store: Store
    clock: Clock
    metrics: Metrics
    events: Events

    def writer(self) -> StatusWriter:
        """Return a new writer of statuses."""
        return StatusWriter(self.cluster, self.store, self.clock, self.metrics)


class GatewayTurn:
    """One gateway's turn."""

    def __init__(self, gateway: Gateway, limiters: Limiters, tools: Tools) -> None:
        self._gateway = gateway
        self._limiters = limiters
        self._tools = tools
        self._writer = tools.writer()
        self._ruleset_name = rules_config_map(gateway.name)
        self._texts = Texts()
        self._compiler = Compiler(gateway, self._texts, closed_size)
        self._envoy = render_envoy_config(gateway)  # from the settings alone, so once is enough
        self._reports: tuple[LimiterReport, ...] = ()
        self._compiled: tuple[Observation, Compiled] | None = None
        self._publication: Publication | None = None
        self._owners: dict[PieceKey, str] = {}
        self._publish_error = ""
        self._known_news = 0
        self._parsed = "", Live()
        self._reported: GatewayReport | None = None
        self._witness = Witness(gateway.patience)
        self._judgements = Judgements()
        self._crowd = Crowd(len(gateway.limiters), tools.clock.monotonic())
        self._repairs = Repairs(tools.events)
        self._by_hand = ByHand(gateway.name, tools.store, tools.clock, tools.events, tools.metrics)
        self._rollouts = Rollouts(self._now_s())
        self._diary = Diary(gateway.name, self._rollouts, tools)

    def recall(self) -> None:
        """Note what the live ConfigMap tells the limiters, before anybody asks which gateway runs what."""
        live = self._read_live().ruleset or Ruleset(self._gateway.name)
        self._tools.store.published(self._gateway.name, live)
        self._crowd.recall(live.limiters, self._tools.clock.monotonic())

    async def take(self, *, news: bool) -> float:
        """Converge if there is news, then report; return in how many seconds to come again without news."""
        wrote = False
        refusal: Waiting | Stalled | None = None
        if news or self._compiled is None or self._by_hand.is_due():
            self._reported = None
            self._known_news = self._tools.store.news_of(self._gateway.name)
            try:
                wrote = await self._converge()
            except (Waiting, Stalled) as error:
                refusal = error
        next_in_s = min(await self._report(), self._by_hand.due_in_s())
        if refusal is not None:
            raise refusal
        return min(next_in_s, POLL_AFTER_WRITE_S) if wrote else next_in_s

    async def _converge(self) -> bool:
        """Bring the generated ConfigMaps to what the objects say; return whether anything was written."""
        store, name = self._tools.store, self._gateway.name
        remembered = self._publication.live if self._publication is not None else None
        seen = self._read_live()
        base = base_of(seen, remembered, running_revision(self._reports, self._ruleset_name, remembered or seen))
        store.published(name, base.ruleset or Ruleset(name))
        observed = store.observation_of(name)
        owners = owners_of(observed.group)
        previous = without_replaced(base.ruleset or Ruleset(name), self._owners, owners)
        with self._tools.metrics.compile_seconds.labels(name).time():
            group = observed.group
            compiled = self._compiler.compile(group.policies, group.overrides, previous, self._crowd.count)
            compiled = self._rollouts.fold(compiled, group.policies, self._objects_of(group), previous, self._now_s())
            compiled = self._by_hand.fold(compiled, group.policies)
            rules = render_rules(compiled.ruleset, self._gateway, base, self._now_ms(), self._texts)
            closed = render_closed(compiled.ruleset, self._gateway)
        self._compiled = observed, compiled
        if isinstance(rules, RulesetTooLarge):
            return self._too_large(rules)
        if isinstance(closed, RulesetTooLarge):  # limits that a dead limiter would open are no Closed ones
            return self._too_large(closed)
        ours = {MANAGED_BY_LABEL: MANAGER, GATEWAY_LABEL: name}
        wanted = rules, closed, self._envoy
        actions = plan(observed.config_maps, wanted, ours)
        await self._diary.write_down()
        # Envoy's part first: a Closed rule that the limiters run and a dead limiter would open is none.
        writes = Apply(closed), Apply(rules)
        for write in writes:
            if write in actions:
                await self._publish(write)
        # From here on the limiters run these rules, whatever becomes of the rest.
        self._note_published(rules, compiled.ruleset, base)
        self._owners = owners
        await self._by_hand.follow(self._tools.cluster)
        for action in actions:
            if action not in writes:
                await self._do(action)
        self._repairs.tell(observed.config_maps, wanted, actions, store.config_maps_of(name))
        self._diary.tell()
        self._measure(compiled, rules, actions)
        return bool(actions)

    def _too_large(self, why: RulesetTooLarge) -> bool:
        """Leave everything as it is; nothing was written."""
        self._publish_error = str(why)
        logger.error("ruleset not published: %s", why, extra={"gateway": self._gateway.name})
        return False

    async def _publish(self, write: Apply) -> None:
        try:
            await self._do(write)
        except Stalled as error:
            self._publish_error = str(error)
            raise

    def _note_published(self, rules: Object, ruleset: Ruleset, base: Live) -> None:
        self._publish_error = ""
        annotations = rules["metadata"]["annotations"]
        live = Live(int(annotations[REVISION_ANNOTATION]), annotations[DIGEST_ANNOTATION], ruleset)
        self._publication = advance(self._publication if base.digest else None, live)
        self._remember_parsed(rules, live)
        self._tools.store.published(self._gateway.name, ruleset)

    def _read_live(self) -> Live:
        """Return what the live ConfigMap says; parsed once a version, since that takes longer than all the rest."""
        config_map = self._tools.store.config_maps_of(self._gateway.name).get(self._ruleset_name)
        version = config_map["metadata"]["resourceVersion"] if config_map is not None else ""
        if self._parsed[0] != version:
            self._parsed = version, read_live(config_map)
        return self._parsed[1]

    def _remember_parsed(self, rules: Object, live: Live) -> None:
        """Spare the parsing of a ConfigMap that says exactly what was just rendered."""
        stored = self._tools.store.config_maps_of(self._gateway.name).get(self._ruleset_name)
        if stored is not None and not plan({self._ruleset_name: stored}, (rules,), {}):
            self._parsed = stored["metadata"]["resourceVersion"], live

    async def _do(self, action: Action) -> None:
        cluster = self._tools.cluster
        try:
            match action:
                case Apply(manifest):
                    self._tools.store.wrote(CONFIG_MAPS, await cluster.apply(manifest))
                case DropData(ref, keys):
                    await cluster.drop_data(ref, keys)
                case Delete(ref):
                    await cluster.delete(ref)
        except Missing as error:
            if isinstance(action, Apply):
                raise Stalled(f"{error}; does the gateway's namespace exist?") from error
            raise Waiting(f"{error}; it was deleted meanwhile", POLL_UNSETTLED_S) from error
        except Stalled as error:
            if not isinstance(action, Delete):
                raise
            # It bears our labels under a name that we do not use: it harms nobody.
            logger.warning("not deleted: %s", error, extra={"gateway": self._gateway.name})

    async def _report(self) -> float:
        """Ask the limiters and write the statuses that changed; return in how many seconds to come again."""
        self._reports = await self._limiters.read()
        self._measure_limiters()
        self._count_limiters()
        self._rollouts.hear(self._reports, published=not self._publish_error)
        publication = self._publication
        live = publication.live if publication is not None else Live()
        ahead = running_revision(self._reports, self._ruleset_name, live) > live.revision
        if publication is not None and ahead and not self._publish_error:
            # Somebody made a limiter run what was not written here; the next document must come after that.
            self._compiled = None
        if not self._publish_error and self._rollouts.is_due(self._now_s()):
            self._compiled = None
        unasked_ms = unasked_since_ms(self._reports, self._gateway.patience)
        fleet = Fleet(self._gateway.name, self._ruleset_name, live, self._reports, self._publish_error, unasked_ms)
        now = self._tools.clock.now()
        if self._compiled is None:
            return 0.0
        counted = self._rollouts.has_news(self._now_s())
        if self._reported is not None and not counted and self._reported.still_says(fleet, now):
            return self._reported.next_in_s(now, POLL_SETTLED_S, POLL_UNSETTLED_S)
        observed, compiled = self._compiled
        report = GatewayReport(fleet, publication, pieces_of(compiled.ruleset), (self._witness, self._judgements), now)
        store = self._tools.store
        for policy in observed.group.policies:
            current, name = store.current(POLICIES, policy.meta), policy.meta.id
            rules = rule_members(name, self._rollouts, now.timestamp())
            judged = self._by_hand.digest_of(name)
            report.add_policy(current, policy, compiled.policies[name], rules, judged)
        for override in observed.group.overrides:
            current = store.current(OVERRIDES, override.meta)
            report.add_override(current, override, compiled.overrides[override.meta.id])
        self._tools.metrics.count_enforcing(self._gateway.name, verdicts(report.statuses))
        self._reported = None
        try:
            postponed_s = await self._writer.write(report.statuses, self._has_news)
        except Waiting as error:  # no reason to let the next change of the rules wait
            logger.warning("statuses not written: %s", error, extra={"gateway": self._gateway.name})
            return max(POLL_UNSETTLED_S, error.retry_after_s)
        next_in_s = report.next_in_s(now, POLL_SETTLED_S, POLL_UNSETTLED_S)
        if postponed_s is None:
            self._reported = report
            return next_in_s
        return min(postponed_s, next_in_s)

    def _count_limiters(self) -> None:
        """See to it that a limit that is split is split between those that are there."""
        self._crowd.hear(self._reports, self._tools.clock.monotonic())
        told = self._compiled[1].ruleset.limiters if self._compiled is not None else None
        if told is not None and told != self._crowd.count and not self._publish_error:
            self._compiled = None

    def _has_news(self) -> bool:
        return self._tools.store.news_of(self._gateway.name) != self._known_news

    def _objects_of(self, group: Group) -> dict[str, Object]:
        found = ((policy.meta.id, self._tools.store.current(POLICIES, policy.meta)) for policy in group.policies)
        return {policy_id: obj for policy_id, obj in found if obj is not None}

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)

    def _now_s(self) -> float:
        return self._tools.clock.now().timestamp()

    def _measure(self, compiled: Compiled, rules: Object, actions: Sequence[Action]) -> None:
        metrics, name = self._tools.metrics, self._gateway.name
        content = next(iter((rules.get("data") or rules["binaryData"]).values()))
        metrics.ruleset_bytes.labels(name).set(len(content))
        if self._publication is not None:
            metrics.ruleset_revision.labels(name).set(self._publication.live.revision)
        metrics.config_map_writes.labels(name).inc(sum(isinstance(action, Apply) for action in actions))
        outcomes = (*compiled.policies.values(), *compiled.overrides.values())
        metrics.count_refused(name, refusals(outcomes))

    def _measure_limiters(self) -> None:
        for report in self._reports:
            labels = self._gateway.name, report.address
            applied = report.rulesets.get(self._ruleset_name)
            self._tools.metrics.limiter_up.labels(*labels).set(not report.error)
            self._tools.metrics.break_glass.labels(*labels).set(len(report.break_glass))
            self._tools.metrics.limiter_revision.labels(*labels).set(applied.revision if applied is not None else 0)


class OrphansTurn:
    """The turn of the objects that no gateway takes: they, too, deserve an answer."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._writer = tools.writer()

    async def take(self, *, news: bool) -> float:  # noqa: ARG002  the same whatever the news was
        """Write their statuses; return in how many seconds to come again without news."""
        orphans = self._tools.store.orphans()
        outcomes = (outcome for _, outcome in (*orphans.policies, *orphans.overrides))
        self._tools.metrics.count_refused(NO_GATEWAY, refusals(outcomes))
        statuses = orphan_statuses(orphans, self._tools.clock.now())
        postponed_s = await self._writer.write(statuses)
        return ORPHANS_AGAIN_S if postponed_s is None else postponed_s
