# SPDX-License-Identifier: Apache-2.0
"""Rollouts on running traffic: from shadow to enforced on evidence, and back when it hurts."""

import json
import os
import subprocess
import uuid
from typing import Any

import pytest

from lab.layout import SYSTEM_NAMESPACE
from lab.switching import patch_status
from lab.team import Team
from lab.waiting import eventually
from lab.workspace import VENV

pytestmark = pytest.mark.requirement("R43")

WITHIN_S = 60.0  # the operator looks every two seconds and words a status every ten; a busy machine needs longer
HOLD_S = 15  # long enough to look at a stage on a busy machine
FOR_GOOD = "30m"


def rule(requests: int) -> dict[str, Any]:
    limit = {"requests": requests, "period": "24h"}
    plans = {"from": {"header": "x-plan"}, "limits": {"internal": limit}}
    return {"name": "burst", "key": [{"header": "x-api-key"}], "limit": limit, "plans": plans}


def staged(*holds: str, **more: Any) -> dict[str, Any]:
    stages = [{"plans": ["internal"], "hold": holds[0]}, {"percent": 10, "hold": holds[-1]}]
    return {"promote": "Manual", "stages": stages, **more}


def said(team: Team) -> dict[str, Any]:
    """What the status says of the rule, once it is about the present generation."""
    found = team.get("rlpol", "limits")
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    (entry,) = found["status"]["rules"]
    return entry  # type: ignore[no-any-return]


def stands(team: Team, stage: str) -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        entry = said(team)
        assert entry["stage"] == stage, entry
        return entry

    entry = eventually(reached, WITHIN_S, what=f"the rule stands at {stage}")
    team.wait_ready()
    return entry  # type: ignore[return-value]


def promote(team: Team) -> None:
    generation = team.get("rlpol", "limits")["metadata"]["generation"]
    entry = {"generation": generation, "reason": f"looked at it {uuid.uuid4()}"}
    patch_status(team, {"approvals": {"burst": entry}}, by="alice")


def passed(team: Team, count: int, key: str = "", **headers: str) -> int:
    """How many of a client's requests pass; a new client unless it has a key."""
    names = {"x-api-key": key or str(uuid.uuid4())} | {name.replace("_", "-"): text for name, text in headers.items()}
    return team.statuses(count, headers=names).count(200)


def enforced(team: Team, requests: int, **headers: str) -> bool:
    return passed(team, requests + 2, **headers) == requests


def events(team: Team, reason: str) -> list[dict[str, Any]]:
    uid = team.get("rlpol", "limits")["metadata"]["uid"]
    selector = f"involvedObject.uid={uid},reason={reason}"
    return json.loads(team.kubectl("get", "events", "--field-selector", selector, "-o", "json"))["items"]  # type: ignore[no-any-return]


def weir_rollout(team: Team) -> subprocess.CompletedProcess[str]:
    argv = [str(VENV / "bin" / "weir"), "rollout", "limits", "-n", team.namespace]
    environment = {**os.environ, "KUBECONFIG": str(team.environment.cluster.kubeconfig)}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_dark_launch_from_shadow_over_stages_to_all_and_back(team: Team) -> None:
    """D45: the evidence finds a noisy job; it is exempted; the limit goes to a plan, to a tenth, to all; one that is a
    mistake takes itself back."""
    rollout = staged(f"{HOLD_S}s")
    team.apply_ready(team.policy(rules=[rule(5)], rollout=rollout))
    assert passed(team, 40, key="noisy", x_job="reporting") == 40
    assert passed(team, 4) == 4

    def found() -> bool:
        evidence = said(team)["evidence"]
        return evidence["requests"] >= 44 and evidence["top"][0]["count"] >= 30  # type: ignore[no-any-return]

    eventually(found, WITHIN_S, what="the evidence names the job")
    shown = weir_rollout(team)
    assert (shown.returncode, "most over the limit of burst" in shown.stdout) == (3, True)
    assert "noisy" not in shown.stdout

    exempt = [{"header": {"name": "x-job", "in": ["reporting"]}}]
    team.apply_ready(team.policy(rules=[rule(5)], rollout=rollout, exempt=exempt))
    assert passed(team, 40, key="noisy", x_job="reporting") == 40
    assert passed(team, 4) == 4

    def clean() -> bool:
        evidence = said(team)["evidence"]
        return evidence["requests"] == 4 and evidence["wouldReject"] == 0  # type: ignore[no-any-return]

    eventually(clean, WITHIN_S, what="the evidence is about the others alone")

    promote(team)
    stands(team, "1/3")
    assert enforced(team, 5, x_plan="internal")
    assert passed(team, 7) == 7

    stands(team, "2/3")
    clients = [str(uuid.uuid4()) for _ in range(60)]
    first = {client for client in clients if passed(team, 6, key=client) < 6}
    assert 0 < len(first) < 30
    assert enforced(team, 5, x_plan="internal")

    stands(team, "Enforced")
    assert enforced(team, 5)
    assert all(passed(team, 1, key=client) == 0 for client in first)  # nobody's counter began anew
    assert passed(team, 40, key="noisy", x_job="reporting") == 40
    assert weir_rollout(team).returncode == 0

    watched = staged(FOR_GOOD, rollbackWhen={"rejected": "20%", "for": "2s"})
    team.apply_ready(team.policy(rules=[rule(1)], rollout=watched, exempt=exempt))
    assert enforced(team, 5)
    promote(team)

    def rolled_back() -> bool:
        for _ in range(10):
            passed(team, 4, x_plan="internal")
        return said(team)["stage"] == "RolledBack"  # type: ignore[no-any-return]

    eventually(rolled_back, WITHIN_S, what="the mistake takes itself back")
    team.wait_ready()
    eventually(lambda: enforced(team, 5, x_plan="internal"), WITHIN_S, what="the limit from before holds again")
    assert [event["type"] for event in eventually(lambda: events(team, "RolledBack"), WITHIN_S)] == ["Warning"]
    assert weir_rollout(team).returncode == 4


def test_a_raised_limit_is_applied_at_once_and_a_lowered_one_waits_for_a_person(team: Team) -> None:
    """D45."""
    team.apply_ready(team.policy(rules=[rule(2)]))
    team.apply_ready(team.policy(rules=[rule(4)], rollout={"promote": "Manual"}))
    assert enforced(team, 4)
    team.apply_ready(team.policy(rules=[rule(1)], rollout={"promote": "Manual"}))
    assert enforced(team, 4)
    promote(team)
    stands(team, "Enforced")
    eventually(lambda: enforced(team, 1), WITHIN_S, what="the approved limit is enforced")


def test_restarts_in_the_middle_change_nothing(team: Team) -> None:
    """D45, D47: of the operator, of a limiter; the stage, its time, the slots and the evidence stay."""
    team.apply_ready(team.policy(rules=[rule(5)]))
    team.apply_ready(team.policy(rules=[rule(2)], rollout=staged(FOR_GOOD)))
    promote(team)
    before = stands(team, "1/3")
    kept = str(uuid.uuid4())
    assert passed(team, 3, key=kept, x_plan="internal") == 2
    eventually(lambda: said(team)["evidence"]["rejected"] >= 1, WITHIN_S, what="the evidence is written")
    counted = said(team)["evidence"]["requests"]
    environment = team.environment
    environment.operator.restart()
    environment.limiters[0].program.part.kill()
    environment.revive()
    team.wait_ready()
    after = said(team)
    assert {key: after[key] for key in ("stage", "active", "candidate")} == {
        key: before[key] for key in ("stage", "active", "candidate")
    }
    assert passed(team, 1, key=kept, x_plan="internal") == 0
    assert enforced(team, 5)

    def goes_on() -> bool:  # what came before the new operator first listened is nobody's evidence
        assert enforced(team, 2, x_plan="internal")
        return said(team)["evidence"]["requests"] > counted  # type: ignore[no-any-return]

    eventually(goes_on, WITHIN_S, what="the evidence goes on")


def test_without_its_status_a_rule_is_in_shadow(team: Team) -> None:
    """D45: as after a restore from a backup."""
    team.apply_ready(team.policy(rules=[rule(2)]))
    team.apply_ready(team.policy(rules=[rule(2)], rollout={"promote": "Manual"}))
    assert enforced(team, 2)
    operator = f"system:serviceaccount:{SYSTEM_NAMESPACE}:weir-operator"  # nobody else may
    patch_status(team, {"rules": None}, by=operator)
    stands(team, "Shadow")
    eventually(lambda: passed(team, 4) == 4, WITHIN_S, what="nothing is refused")
