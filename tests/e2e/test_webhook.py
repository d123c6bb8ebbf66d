# SPDX-License-Identifier: Apache-2.0
"""The validating webhook on the real API server: what it refuses, what it only remarks, and that it blocks nobody."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
from collections.abc import Iterator

import pytest

from lab.cluster import KubectlError
from lab.layout import SYSTEM_NAMESPACE
from lab.team import Team
from lab.waiting import eventually

RULE = {"name": "burst", "key": [{"header": "x-api-key"}], "limit": {"requests": 100, "period": "1s"}}
TOO_MANY = [{**RULE, "name": f"r{n}"} for n in range(9)]


@pytest.fixture(autouse=True)
def reviewed(team: Team) -> Iterator[None]:
    """The API server asks, which takes it a second to begin with."""
    eventually(lambda: refusal(team, TOO_MANY), 30, what="the webhook reviews")
    yield
    team.environment.operator.part.signal(signal.SIGCONT)


def refusal(team: Team, rules: list[dict[str, object]]) -> str:
    """What the webhook says to a policy with these rules; empty if it lets it pass. Nothing is stored."""
    try:
        team.kubectl("create", "--dry-run=server", "-f", "-", input=team.policy("probe", rules=rules))
    except KubectlError as error:
        return str(error)
    return ""


def said(team: Team, *arguments: str, manifest: str) -> str:
    """What kubectl prints to standard error, which is where warnings go."""
    cluster = team.environment.cluster
    argv = [str(cluster.kubectl_program), f"--kubeconfig={cluster.kubeconfig}", "-n", team.namespace, *arguments]
    done = subprocess.run(argv, input=manifest, capture_output=True, text=True, timeout=60, check=False)
    return done.stderr


def conditions(team: Team, kind: str, name: str) -> dict[str, str]:
    accepted = team.condition(kind, name, "Accepted")
    assert accepted["status"] == "False"
    return {"reason": accepted["reason"], "message": accepted["message"].removesuffix(". Nothing of this object runs")}


@pytest.mark.requirement("R40")
@pytest.mark.parametrize(
    "spec",
    [
        {"rules": TOO_MANY},
        {"match": {"hosts": ["api.example.com"]}, "rules": [RULE]},
        {"gateway": "edgy", "rules": [RULE]},
        {"rules": [{**RULE, "limit": {"requests": 1, "period": "1s", "burst": 10**12}}]},
    ],
    ids=["budget", "host", "gateway", "numbers"],
)
def test_what_is_refused_would_not_have_been_accepted_and_is_told_in_the_same_words(
    team: Team, spec: dict[str, object]
) -> None:
    """Refused with the operator there; stored with it away, and then refused by the pass."""
    manifest = team.policy(**spec)
    with pytest.raises(KubectlError) as refused:
        team.apply(manifest)
    team.environment.operator.part.kill()
    team.apply(manifest)
    team.environment.revive()
    found = eventually(lambda: conditions(team, "rlpol", "limits"), 30, what="the pass refuses it as well")
    assert f"{found['reason']}: {found['message']}" in str(refused.value)
    assert "spec." in found["message"]


def test_an_override_is_refused_for_itself_and_not_for_coming_before_its_policy(team: Team) -> None:
    override = team.override(subjects=[{"x-api-key": "k"}], action="Exempt", permanent=True)
    assert "spec.policyRef.name" in said(team, "apply", "-f", "-", manifest=override)
    team.kubectl("get", "rlovr", "exception")
    team.apply_ready(team.policy(rules=[RULE]))
    with pytest.raises(KubectlError, match=r"spec\.rules"):
        team.apply(
            team.override("typo", rules=["bursts"], subjects=[{"x-api-key": "k"}], action="Block", permanent=True)
        )


def test_what_is_only_surprising_is_a_warning(team: Team) -> None:
    wide = {**RULE, "name": "wide", "limit": {"requests": 500, "period": "1s"}}
    warned = said(team, "apply", "-f", "-", manifest=team.policy(rules=[RULE, wide]))
    assert "Warning: spec.rules[wide]: can never refuse anybody" in warned
    warned = said(team, "apply", "-f", "-", manifest=team.policy("shy", mode="Shadow", rules=[RULE]))
    assert "refuses nobody" in warned


def test_changes_beside_the_spec_pass_whatever_is_wrong_with_it(team: Team) -> None:
    """Labels, status and deletion of an object that was stored while nobody reviewed."""
    team.environment.operator.part.kill()
    team.apply(team.policy(rules=TOO_MANY))
    team.environment.revive()
    eventually(lambda: conditions(team, "rlpol", "limits"), 30, what="it is refused")
    eventually(lambda: refusal(team, TOO_MANY), 30, what="the webhook reviews again")
    team.kubectl("label", "rlpol", "limits", "team=orders")
    team.kubectl(
        "patch",
        "rlpol",
        "limits",
        "--type=json",
        "-p",
        '[{"op":"add","path":"/metadata/finalizers","value":["x.dev/y"]}]',
    )
    team.kubectl("delete", "rlpol", "limits", "--wait=false")
    team.kubectl("patch", "rlpol", "limits", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
    eventually(lambda: "limits" not in team.kubectl("get", "rlpol", "-o", "name"), 10)


@pytest.mark.requirement("R46")
@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP], ids=["dead", "hung"])
def test_an_operator_that_does_not_answer_blocks_no_apply(team: Team, harm: signal.Signals) -> None:
    team.environment.operator.part.signal(harm)
    team.apply(team.policy(rules=[RULE]))
    team.environment.operator.part.signal(signal.SIGCONT)
    eventually(lambda: not team.environment.operator.part.alive or harm is signal.SIGSTOP, 5)
    team.environment.revive()
    team.wait_ready()


def test_a_certificate_that_somebody_deletes_comes_back_and_is_trusted(team: Team) -> None:
    cluster = team.environment.cluster

    def certificate() -> str:
        data = json.loads(cluster.kubectl("get", "secret", "weir-webhook", "-n", SYSTEM_NAMESPACE, "-o", "json"))[
            "data"
        ]
        return base64.b64decode(data["tls.crt"]).decode()

    def trusted() -> list[str]:
        found = json.loads(cluster.kubectl("get", "validatingwebhookconfiguration", "weir-operator", "-o", "json"))
        return [base64.b64decode(hook["clientConfig"]["caBundle"]).decode() for hook in found["webhooks"]]

    before = certificate()
    cluster.kubectl("delete", "secret", "weir-webhook", "-n", SYSTEM_NAMESPACE)
    team.environment.operator.part.kill()
    team.environment.revive()
    eventually(lambda: refusal(team, TOO_MANY), 60, what="the webhook reviews with another certificate")
    assert certificate() != before
    assert all(bundle.startswith(certificate()) for bundle in trusted())
