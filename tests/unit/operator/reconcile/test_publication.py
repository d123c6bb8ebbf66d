# SPDX-License-Identifier: Apache-2.0
"""Revisions rise, equal content keeps its own, and each object waits only for the revision that brought it."""

from weir_operator.domain.algorithms import TokenBucket
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limits import Dialect, FailureMode, MissingKey, Mode, Visibility
from weir_operator.domain.ruleset import Match, Policy, Response, Rule, Ruleset, digest
from weir_operator.reconcile.ports import AppliedRuleset, LimiterReport
from weir_operator.reconcile.publication import advance, base_of, pieces_of, running_revision
from weir_operator.render.ruleset_config import BELIEVED, Live, read_live, render_rules

GATEWAY = Gateway("edge", "weir-system")


def policy(name: str, generation: int = 1) -> Policy:
    rule = Rule(
        "burst",
        Mode.ENFORCE,
        (),
        MissingKey.SKIP,
        TokenBucket(1, 1_000_000, 1),
        None,
        (),
        FailureMode.OPEN,
        Visibility.PUBLIC,
        "rate_limited",
    )
    return Policy(f"team/{name}", generation, Match((), ()), (), (rule,), Response(Dialect.NONE, None))


def live(revision: int, *policies: Policy) -> Live:
    ruleset = Ruleset("edge", policies)
    return Live(revision, digest(ruleset), ruleset)


def published(ruleset: Ruleset, base: Live, now_ms: int) -> Live:
    rendered = render_rules(ruleset, GATEWAY, base, now_ms)
    assert not hasattr(rendered, "size")
    return read_live(rendered)


def test_a_neighbours_edit_does_not_move_the_revision_that_an_object_waits_for() -> None:
    first = advance(None, live(10, policy("a"), policy("b")))
    second = advance(first, live(20, policy("a"), policy("b", 2)))
    wanted = pieces_of(Ruleset("edge", (policy("a"), policy("b", 2))))
    assert {key[1]: second.revision_of(key, piece) for key, piece in wanted.items()} == {"team/a": 10, "team/b": 20}


def test_a_piece_that_is_not_published_has_no_revision() -> None:
    publication = advance(None, live(10, policy("a")))
    assert publication.revision_of((Policy, "team/a"), policy("a", 2)) is None
    assert publication.revision_of((Policy, "team/b"), policy("b")) is None


def test_an_object_without_a_piece_waits_for_the_latest_revision() -> None:
    assert advance(None, live(10)).revision_of((Policy, "team/a"), None) == 10


def test_a_new_start_finds_its_own_document_unchanged() -> None:
    """D47: a restart writes nothing."""
    seen = live(10, policy("a"))
    assert published(Ruleset("edge", (policy("a"),)), base_of(seen, None, 10), now_ms=99).revision == 10


def test_a_deleted_config_map_comes_back_under_its_revision() -> None:
    """D55."""
    memory = live(10, policy("a"))
    assert published(Ruleset("edge", (policy("a"),)), base_of(Live(), memory, 10), now_ms=99).revision == 10


def test_an_edited_config_map_is_followed_by_a_higher_revision() -> None:
    """D55: a limiter that started meanwhile may run the edit under the old revision."""
    memory = live(10, policy("a"))
    ruleset = Ruleset("edge", (policy("a"),))
    damaged = Live(10)
    assert published(ruleset, base_of(damaged, memory, 10), now_ms=5).revision == 11
    assert published(ruleset, base_of(live(12), memory, 10), now_ms=5).revision == 13


def test_the_last_accepted_pieces_come_from_memory_rather_than_from_an_edited_config_map() -> None:
    memory = live(10, policy("a"))
    assert base_of(live(12, policy("b")), memory, 0).ruleset == memory.ruleset


def test_a_limiter_that_is_ahead_is_overtaken() -> None:
    """A restored backup of the API server brings back an older document."""
    ruleset = Ruleset("edge", (policy("a"),))
    assert published(ruleset, base_of(live(10, policy("a")), None, 50), now_ms=5).revision == 51


def test_the_clock_sets_the_revision_when_it_is_ahead() -> None:
    base = base_of(live(10, policy("a")), None, 0)
    assert published(Ruleset("edge", (policy("b"),)), base, now_ms=1_000).revision == 1_000


def test_only_this_rulesets_believable_revisions_count_as_running() -> None:
    def report(name: str, revision: int) -> LimiterReport:
        return LimiterReport("http://l", rulesets={name: AppliedRuleset(revision, "")})

    assert running_revision([], "edge-rules-0", Live()) == 0
    reports = [report("edge-rules-0", 5), report("other-rules-0", 9), report("edge-rules-0", BELIEVED)]
    assert running_revision(reports, "edge-rules-0", Live()) == 5


def test_other_content_under_the_live_revision_counts_as_one_ahead() -> None:
    reports = [LimiterReport("http://l", rulesets={"edge-rules-0": AppliedRuleset(5, "sha256:other")})]
    assert running_revision(reports, "edge-rules-0", Live(5, "sha256:ours")) == 6
    assert running_revision(reports, "edge-rules-0", Live(5, "sha256:other")) == 5
