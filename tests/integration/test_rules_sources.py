# SPDX-License-Identifier: Apache-2.0
"""Where rules come from, and that nothing takes the last good ones away."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import grpc.aio
import pytest

from lab.store import Store
from lab.waiting import eventually
from rig.documents import document, limit, policy, revision_of, rule, single
from rig.envoy import Envoy
from rig.sidecar import Sidecar


@pytest.mark.requirement("R44")
async def test_a_sidecar_without_rules_is_not_ready_and_lets_envoy_decide(sidecar: Sidecar, envoy: Envoy) -> None:
    """D45: missing, empty and unreadable rules; no window in which everything passes unseen."""
    for text in (None, b"", b"no json"):
        if text is not None:
            sidecar.mount.publish(text)
            eventually(lambda: "not JSON" in sidecar.ruleset()["rejected"]["error"], 5)
        assert sidecar.get("/readyz")[0] == 503
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await envoy.key("k")
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    sidecar.publish(single())
    assert sidecar.get("/readyz")[0] == 200
    assert (await envoy.key("k")).allowed


@pytest.mark.requirement("R44")
def test_no_swap_of_the_mounted_directory_is_missed(sidecar: Sidecar) -> None:
    """D42: twenty updates as the kubelet makes them, two at a time within a moment."""
    for _ in range(10):
        sidecar.mount.publish(single())
        last = single()
        sidecar.mount.publish(last)
        sidecar.wait_revision(revision_of(last))
        assert sidecar.ruleset()["source"] == "Mount"
    assert sidecar.ruleset()["rejected"] is None
    assert sidecar.metric("weir_ruleset_rejected_total") == 0


def test_swaps_while_the_directory_is_read_never_mix_two_documents(sidecar: Sidecar) -> None:
    """D42: updates without a pause, documents of very different sizes."""
    documents = [
        document(*(policy(rule(), id=f"team/p-{number:04}") for number in range(1 + 200 * (place % 2))))
        for place in range(60)
    ]
    with ThreadPoolExecutor() as threads:
        threads.submit(lambda: [sidecar.mount.publish(text) for text in documents]).result()
    sidecar.wait_revision(revision_of(documents[-1]))
    assert sidecar.metric("weir_ruleset_rejected_total") == 0


def test_a_compressed_document_is_read(sidecar: Sidecar) -> None:
    text = single()
    sidecar.mount.publish(gzip.compress(text, mtime=0), key="ruleset.json.gz")
    sidecar.wait_revision(revision_of(text))


def threads(sidecar: Sidecar) -> dict[str, tuple[int, int]]:
    """Each thread's niceness and its processor time in ns, by its name."""
    found = {}
    for task in Path(f"/proc/{sidecar.part.pid}/task").iterdir():
        # After the name in parentheses come the fields from the third on; the 19th is the niceness.
        niceness = int((task / "stat").read_text().rpartition(")")[2].split()[16])
        spent_ns = int((task / "schedstat").read_text().split()[0])
        found[(task / "comm").read_text().strip()] = niceness, spent_ns
    return found


@pytest.mark.requirement("R44", "R04")
def test_what_new_rules_cost_is_paid_by_a_thread_that_gives_way(sidecar: Sidecar) -> None:
    """D63: a thousand policies come while others share the processor; those who decide have their turn first."""
    before = threads(sidecar)
    own = os.getpriority(os.PRIO_PROCESS, sidecar.part.pid)
    niceness = {name: before[name][0] for name in ("weir-data", "weir-control", "weir-rules")}
    assert niceness == {"weir-data": own, "weir-control": own, "weir-rules": 19}
    sidecar.publish(document(*(policy(rule(), id=f"team/p-{number:04}") for number in range(1000))))
    after = threads(sidecar)
    spent = {name: after[name][1] - before[name][1] for name in ("weir-rules", "weir-data")}
    assert spent["weir-rules"] > 10 * spent["weir-data"], "reading a thousand policies is no small matter"


def tampered(text: bytes, old: str, new: str) -> bytes:
    changed = text.decode().replace(old, new)
    assert changed != text.decode()
    return changed.encode()


@pytest.mark.requirement("R45")
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (lambda: b'{"format": 1, "revi', "not JSON"),
        (lambda: tampered(single(), '"requests":5', '"requests":6'), "digest"),
        (lambda: document(policy(rule()), gateway="other"), "gateway"),
        (lambda: document(policy(rule(limit=limit(5), surprise=1))), "surprise"),
        (lambda: document(policy(rule(limit=limit(0, burst=1)))), "policies[0].rules[0].limit"),
        (lambda: tampered(single(), '"format":2', '"format":9'), "format"),
        (lambda: gzip.compress(single())[:-9], "gzip"),
    ],
    ids=["cut off", "wrong digest", "other gateway", "unknown member", "zero limit", "unknown format", "damaged gzip"],
)
async def test_a_bad_document_leaves_the_last_good_one_running(
    sidecar: Sidecar, envoy: Envoy, bad: Callable[[], bytes], says: str
) -> None:
    good = single(limit=limit(2, period_s=3600))
    sidecar.publish(good)
    sidecar.mount.publish(bad())
    eventually(lambda: sidecar.ruleset()["rejected"], 5)
    report = sidecar.ruleset()
    assert says in report["rejected"]["error"]
    assert report["revision"] == revision_of(good)
    assert [(await envoy.key("k")).allowed for _ in range(3)] == [True, True, False]
    assert sidecar.get("/readyz")[0] == 200
    assert sidecar.metric("weir_ruleset_rejected_total") == 1
    sidecar.publish(single())
    assert sidecar.ruleset()["rejected"] is None


@pytest.mark.requirement("R45")
def test_an_older_revision_changes_nothing(sidecar: Sidecar) -> None:
    older, newer = single(), single()
    sidecar.publish(newer)
    sidecar.mount.publish(older)
    sidecar.publish(document(policy(rule()), revision=revision_of(newer) + 1_000_000))
    assert sidecar.metric("weir_ruleset_applied_total") == 2


@pytest.mark.requirement("R45")
async def test_the_last_good_rules_survive_a_restart_without_any_source(
    store: Store, start_sidecar: Callable[..., Sidecar], tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = tmp_path_factory.mktemp("state")
    sidecar = start_sidecar(store.url, flags=("--state-dir", str(state)))
    good = single(limit=limit(2, period_s=3600))
    sidecar.publish(good)
    sidecar.mount.publish(b"{}")
    eventually(lambda: sidecar.ruleset()["rejected"], 5)
    for file in sidecar.mount.directory.iterdir():
        if file.is_symlink():
            file.unlink()
    sidecar.restart()
    assert (sidecar.ruleset()["revision"], sidecar.ruleset()["source"]) == (revision_of(good), "State")
    sidecar.wait_store("Up")
    assert sidecar.get("/readyz")[0] == 200
    async with Envoy.beside(sidecar.socket) as envoy:
        assert [(await envoy.key("k")).allowed for _ in range(3)] == [True, True, False]


def test_a_damaged_state_file_is_reported_and_the_mount_still_counts(
    store: Store, start_sidecar: Callable[..., Sidecar], tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = tmp_path_factory.mktemp("state")
    (state / "edge-rules-0.ruleset").write_bytes(b"\x00garbage")
    sidecar = start_sidecar(store.url, flags=("--state-dir", str(state)))
    assert "not JSON" in sidecar.ruleset()["rejected"]["error"]
    sidecar.publish(single())


def test_the_status_document_says_what_runs(sidecar: Sidecar) -> None:
    text = document(policy(rule("b", mode="Shadow"), rule("a"), generation=7))
    sidecar.publish(text)
    status = sidecar.status()
    assert (status["format"], status["instance"], status["gateway"], status["ready"]) == (1, sidecar.name, "edge", True)
    assert status["watch"] == {"state": "Off", "error": ""}
    assert status["store"]["state"] == "Up"
    assert [(entry["rule"], entry["mode"], entry["generation"]) for entry in status["rules"]] == [
        ("b", "Shadow", 7), ("a", "Enforce", 7),
    ]  # fmt: skip
    assert sidecar.ruleset()["digest"] == json.loads(text)["digest"]


@pytest.mark.requirement("R42")
async def test_evidence_survives_a_change_of_other_rules_and_restarts_with_its_own(
    sidecar: Sidecar, envoy: Envoy
) -> None:
    mine, other = rule("mine", limit=limit(1, period_s=3600)), rule("other", limit=limit(100))
    sidecar.publish(document(policy(mine, other)))
    for _ in range(3):
        await envoy.key("k")
    before = sidecar.rule("mine")
    assert (before["requests"], before["rejected"]) == (3, 2)
    sidecar.publish(document(policy(mine, {**other, "limit": limit(200)}, generation=2)))
    assert {**sidecar.rule("mine"), "generation": 1} == before
    assert sidecar.rule("other")["requests"] == 0
    sidecar.publish(document(policy({**mine, "mode": "Shadow"})))
    assert sidecar.rule("mine")["requests"] == 0
    assert sidecar.metric("weir_rule_decisions_total", rule="mine", outcome="rejected") == 2, "metrics only rise"
    assert sidecar.metric("weir_rule_decisions_total", rule="other", outcome="allowed") == 0, "gone with its rule"
