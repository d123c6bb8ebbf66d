# SPDX-License-Identifier: Apache-2.0
"""`weir kill`, `unkill` and `promote` as somebody runs them who may touch nothing but the status of policies."""

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.switching import switches_of
from lab.team import LIVE_S, Team
from lab.waiting import eventually
from lab.workspace import VENV

pytestmark = pytest.mark.requirement("R42")

RULES = [
    {"name": name, "key": [{"header": f"x-{name}"}], "limit": {"requests": 1, "period": "1h"}}
    for name in ("burst", "monthly")
]
WAIT_S = "60"  # a loaded machine


@pytest.fixture
def weir(team: Team, tmp_path: Path) -> Iterator["Command"]:
    """The command with a switcher's identity, for a policy that is enforced."""
    team.kubectl("create", "serviceaccount", "oncall")
    team.kubectl("create", "serviceaccount", "nobody")
    binding = ("--clusterrole=weir-switcher", f"--serviceaccount={team.namespace}:oncall")
    team.kubectl("create", "rolebinding", "oncall", *binding)
    team.apply_ready(team.policy(rules=RULES))
    yield Command(team, tmp_path)
    team.kubectl("delete", "rolebinding/oncall", "serviceaccount/oncall", "serviceaccount/nobody")


class Command:
    """Runs `weir` with a service account's kubeconfig."""

    def __init__(self, team: Team, folder: Path) -> None:
        self.team = team
        self._folder = folder

    def __call__(self, *arguments: str, account: str = "oncall", answer: str = "") -> subprocess.CompletedProcess[str]:
        kubeconfig = self.team.environment.cluster.token_kubeconfig(self.team.namespace, account, self._folder)
        argv = [str(VENV / "bin" / "weir"), *arguments, "-n", self.team.namespace]
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        return subprocess.run(
            argv, input=answer, env=environment, capture_output=True, text=True, timeout=120, check=False
        )


def refused(team: Team) -> bool:
    headers = {"x-burst": str(uuid.uuid4())}
    return [team.send(headers=headers).status for _ in range(2)] == [200, 429]


def test_kill_asks_sets_and_waits_and_unkill_ends_it(weir: Command) -> None:
    done = weir("kill", "limits", "burst", "--for", "2h", "--reason", "INC-42", "--wait", WAIT_S, answer="y\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Switch off rule burst of {weir.team.namespace}/limits?" in done.stdout
    assert "2 of 2 limiters" in done.stdout
    assert not refused(weir.team), "it has waited until the limiters have it"
    entry = switches_of(weir.team)["burst"]
    assert (entry["by"], entry["reason"]) == (f"system:serviceaccount:{weir.team.namespace}:oncall", "INC-42")
    done = weir("unkill", "limits", "--yes", "--wait", WAIT_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert refused(weir.team)


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_without_a_yes_nothing_is_changed(weir: Command, answer: str) -> None:
    done = weir("kill", "limits", "--for", "forever", "--reason", "INC-42", answer=answer)
    assert done.returncode == 1
    assert done.stdout.endswith("Nothing was changed.\n")
    assert switches_of(weir.team) == {}


def test_promote_approves_the_present_generation(weir: Command) -> None:
    done = weir("promote", "limits", "burst", "--reason", "looks fine", "--yes", "--wait", WAIT_S)
    assert (done.returncode, done.stderr) == (0, "")
    approval = weir.team.get("rlpol", "limits")["status"]["approvals"]["burst"]
    assert (approval["generation"], approval["reason"]) == (1, "looks fine")
    assert approval["by"] == f"system:serviceaccount:{weir.team.namespace}:oncall"


@pytest.mark.parametrize(
    ("arguments", "account", "message"),
    [
        (("limits", "brust"), "oncall", 'has no rule "brust"; did you mean burst? known: burst, monthly'),
        (("absent",), "oncall", '"absent" not found'),
        (("limits", "burst"), "nobody", "which the cluster role weir-switcher has"),
    ],
)
def test_what_cannot_be_done_is_said_with_what_would_help(
    weir: Command, arguments: tuple[str, ...], account: str, message: str
) -> None:
    done = weir("kill", *arguments, "--for", "1h", "--reason", "x", "--yes", account=account)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert switches_of(weir.team) == {}


def test_with_the_operator_dead_it_says_so_and_names_the_break_glass(weir: Command) -> None:
    weir.team.environment.operator.part.kill()
    done = weir("kill", "limits", "--for", "1h", "--reason", "x", "--yes", "--wait", "1")
    assert done.returncode == 1
    assert "no operator has taken it up within 1 s" in done.stderr
    assert "break-glass" in done.stderr
    weir.team.environment.revive()
    eventually(lambda: not refused(weir.team), LIVE_S, what="the operator takes it up when it is back")
