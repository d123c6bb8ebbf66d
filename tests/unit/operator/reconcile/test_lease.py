# SPDX-License-Identifier: Apache-2.0
"""The rule of the election: never two writers, whatever stops, is late or gets lost; and soon one again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir_operator.reconcile.lease import ASK_EVERY_S, DURATION_S, WRITE_FOR_S, Candidacy, Identity, Record, Step

ME = Identity("pod-0", "a1")
OTHER = Record("pod-1_b2", DURATION_S, "7")
FAILOVER_S = 15.0


def test_a_lease_that_nobody_has_is_taken() -> None:
    assert Candidacy(ME).see(None, 0.0).step(0.0) is Step.TAKE
    assert Candidacy(ME).see(replace(OTHER, holder=""), 0.0).step(0.0) is Step.TAKE


def test_a_holder_is_left_alone_for_as_long_as_it_was_promised() -> None:
    waiting = Candidacy(ME).see(OTHER, 100.0)
    assert waiting.step(100.0 + DURATION_S - 0.01) is Step.WAIT
    assert waiting.step(100.0 + DURATION_S) is Step.TAKE


def test_every_renewal_begins_the_wait_afresh_and_seeing_it_twice_does_not() -> None:
    waiting = Candidacy(ME).see(OTHER, 0.0).see(OTHER, 5.0)
    assert waiting.free_in_s(5.0) == DURATION_S - 5.0
    assert waiting.see(replace(OTHER, version="8"), 9.0).free_in_s(9.0) == DURATION_S


@pytest.mark.parametrize(("promised", "wait"), [(0.0, DURATION_S), (30.0, 30.0)])
def test_a_record_can_promise_more_than_we_do_and_not_less(promised: float, wait: float) -> None:
    assert Candidacy(ME).see(replace(OTHER, duration_s=promised), 0.0).free_in_s(0.0) == wait


def test_a_process_started_again_under_its_name_goes_on_at_once() -> None:
    before = replace(OTHER, holder=Identity("pod-0", "dead").holder)
    assert Candidacy(ME).see(before, 0.0).step(0.0) is Step.TAKE
    assert Candidacy(Identity("", "host-a1")).see(replace(OTHER, holder="_host-b2"), 0.0).step(0.0) is Step.WAIT


def test_a_living_namesake_is_a_stranger() -> None:
    namesake = replace(OTHER, holder=Identity("pod-0", "zz").holder, version="8")
    assert Candidacy(ME).see(OTHER, 0.0).see(namesake, 1.0).step(1.0) is Step.WAIT


def test_the_right_to_write_counts_from_when_the_renewal_was_asked_for() -> None:
    mine = Record(ME.holder, DURATION_S, "8")
    leading = Candidacy(ME).see(None, 0.0).granted(mine, begun_s=1.0, now_s=3.0)
    assert leading.writes_for_s(3.0) == WRITE_FOR_S - 2.0
    assert leading.step(3.0) is Step.RENEW


def test_a_record_with_another_holder_ends_the_right_to_write_at_once() -> None:
    leading = Candidacy(ME).see(None, 0.0).granted(Record(ME.holder, DURATION_S, "8"), 0.0, 0.0)
    assert leading.see(replace(OTHER, version="9"), 1.0).writes_for_s(1.0) < 0


def test_a_renewal_whose_reply_was_lost_is_still_ours() -> None:
    leading = Candidacy(ME).see(None, 0.0).granted(Record(ME.holder, DURATION_S, "8"), 0.0, 0.0)
    later = leading.see(Record(ME.holder, DURATION_S, "9"), 2.0)
    assert (later.step(2.0), later.writes_for_s(2.0)) == (Step.RENEW, WRITE_FOR_S - 2.0)


@dataclass
class Server:
    """The API server: one record, and a compare-and-swap."""

    record: Record | None = None
    versions: int = 0

    def write(self, record: Record) -> Record | None:
        stored = self.record.version if self.record is not None else ""
        if record.version != stored:
            return None
        self.versions += 1
        self.record = replace(record, version=str(self.versions))
        return self.record


@dataclass
class Replica:
    """A process whose clock is off and runs up to 10 % too fast or too slow; it may be stopped at any point."""

    candidacy: Candidacy
    offset_s: float
    rate: float
    due_s: float = 0.0

    def clock(self, at_s: float) -> float:
        return self.offset_s + at_s * self.rate

    def writes(self, at_s: float) -> bool:
        """What the fence asks before each write."""
        return self.candidacy.writes_for_s(self.clock(at_s)) > 0


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Replica], list[tuple[float, float, bool, bool]]]:
    """Replicas, and turns: (pause before, delay of the write, reply lost, does not get through at all)."""
    replicas = [
        Replica(Candidacy(Identity(f"pod-{n}", "x")), draw(st.floats(-1e4, 1e4)), draw(st.floats(0.9, 1.1)))
        for n in range(draw(st.integers(2, 3)))
    ]
    pause = st.one_of(st.just(ASK_EVERY_S), st.floats(0.0, 30.0))
    turn = st.tuples(pause, st.one_of(st.just(0.0), st.floats(0.0, 12.0)), st.booleans(), st.booleans())
    return replicas, draw(st.lists(turn, min_size=10, max_size=40))


def ask(replica: Replica, server: Server, at_s: float, delay_s: float, *, lost: bool) -> float:
    """One look and its write, which takes `delay_s` of the world's time; return when it was over."""
    replica.candidacy = replica.candidacy.see(server.record, replica.clock(at_s))
    step = replica.candidacy.step(replica.clock(at_s))
    if step is Step.WAIT:
        return at_s
    seen = replica.candidacy.seen
    wanted = Record(replica.candidacy.me.holder, DURATION_S, seen.version if seen is not None else "")
    stored = server.write(wanted)  # at the beginning of the delay: a reply that is late is the harder case
    if stored is not None and not lost:
        replica.candidacy = replica.candidacy.granted(stored, replica.clock(at_s), replica.clock(at_s + delay_s))
    return at_s + delay_s


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_no_two_replicas_ever_write_at_once(world: tuple[list[Replica], list[tuple[float, float, bool, bool]]]) -> None:
    """Each turn belongs to the replica that was due first; a long pause is a SIGSTOP or a slow network.

    The right to write only shrinks between turns, so to look after each of them is to look always.
    """
    replicas, turns = world
    server, now_s = Server(), 0.0
    for pause_s, delay_s, lost, away in turns:
        replica = min(replicas, key=lambda one: one.due_s)
        now_s = max(now_s, replica.due_s)
        end_s = now_s if away else ask(replica, server, now_s, delay_s, lost=lost)
        replica.due_s = end_s + max(pause_s, 0.01)
        assert sum(one.writes(now_s) for one in replicas) <= 1


@given(st.floats(0.0, ASK_EVERY_S), st.floats(0.0, ASK_EVERY_S))
def test_the_next_replica_writes_soon_after_the_last_one_died(phase_s: float, died_s: float) -> None:
    """With 3 s left for the first look at all objects and the first pass over them."""
    server = Server()
    leader = Replica(Candidacy(Identity("a", "x")), 0.0, 1.0)
    standby = Replica(Candidacy(Identity("b", "x")), 50.0, 1.0)
    ask(leader, server, 0.0, 0.0, lost=False)
    now_s = phase_s
    while not standby.writes(now_s):
        ask(standby, server, now_s, 0.0, lost=False)
        now_s += standby.candidacy.wait_s(standby.clock(now_s))
        assert now_s <= died_s + FAILOVER_S - 3.0 + ASK_EVERY_S
