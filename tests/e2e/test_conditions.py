# SPDX-License-Identifier: Apache-2.0
"""Every fault shows in the right condition within seconds, and goes when it is mended: on the real parts.

The operator has little patience here, so that silence means something after seconds. Steady traffic matches the policy
`limits`; without it the gateway would be silent.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.client import fetch, sample
from lab.environment import Environment
from lab.layout import SYSTEM_NAMESPACE
from lab.mounting import Mount, mounted
from lab.team import Team
from lab.waiting import eventually

FLIPS_S = 10.0
SLACK_S = 20.0  # for a machine that builds something meanwhile; the time itself is printed
TRAFFIC_EVERY_S = 0.2
BURST = {"name": "burst", "key": [{"header": "x-api-key"}], "limit": {"requests": 1000, "period": "1s"}}
QUOTA = {"name": "quota", "key": [{"header": "x-api-key"}], "limit": {"requests": 9999, "period": "1h"}}
WELL = {
    "Accepted": ("True", "Accepted"),
    "Programmed": ("True", "Programmed"),
    "Enforcing": ("True", "Enforcing"),
    "Ready": ("True", "Ready"),
}


class Traffic:
    """Requests that match the team's policy, one after the other to both gateways, unless it is paused."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self._flows = threading.Event()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._flows.set()
        self._thread.start()

    def pause(self) -> None:
        self._flows.clear()

    def resume(self) -> None:
        self._flows.set()

    def end(self) -> None:
        self._ends.set()
        self._flows.set()
        self._thread.join()

    def _run(self) -> None:
        turn = 0
        while not self._ends.wait(TRAFFIC_EVERY_S):
            self._flows.wait()
            turn += 1
            try:
                self._team.send(headers={"x-api-key": "steady"}, gateway=turn % len(self._team.environment.urls))
            except OSError:
                continue  # a part is away on purpose


@dataclass
class Scene:
    """What a fault can touch."""

    team: Team
    traffic: Traffic
    folder: Path
    mounts: ExitStack = field(default_factory=ExitStack)
    mount: Mount | None = None

    @property
    def environment(self) -> Environment:
        return self.team.environment

    def edit(self, **spec: Any) -> None:
        self.team.apply(self.team.policy(**{"rules": [BURST, QUOTA], **spec}))

    def patch(self, kill_switches: dict[str, Any]) -> None:
        patch = json.dumps({"status": {"killSwitches": kill_switches}})
        self.team.kubectl("patch", "rlpol", "limits", "--subresource=status", "--type=merge", "-p", patch)

    def hold_rules(self) -> Mount:
        """Let the first limiter read its rules from a folder that nobody updates."""
        limiter = self.environment.limiters[0]
        self.mount = self.mounts.enter_context(mounted(limiter, self.folder, self.environment.cluster))
        self.environment.save()
        return self.mount

    def let_rules_go(self) -> None:
        assert self.mount is not None
        self.mount.update()

    def break_glass(self, modes: dict[str, str] | None) -> None:
        kubectl, name = self.environment.cluster.kubectl, "edge-breakglass"
        if modes is None:
            kubectl("delete", "configmap", name, "-n", SYSTEM_NAMESPACE)
            return
        kubectl("create", "configmap", name, "-n", SYSTEM_NAMESPACE, f"--from-literal=modes={json.dumps(modes)}")

    def wait(self, expected: dict[str, tuple[str, str]], *, kind: str = "rlpol", name: str = "limits") -> float:
        """Wait until these conditions hold, for the present generation; return how long it took."""
        begun = time.monotonic()

        def holds() -> bool:
            seen = {each: self.team.condition(kind, name, each) for each in expected}
            found = {each: (condition["status"], condition["reason"]) for each, condition in seen.items()}
            assert found == expected, {each: (*found[each], seen[each]["message"]) for each in found}
            return True

        eventually(holds, FLIPS_S + SLACK_S, what=f"{kind} {name} says {expected}")
        return time.monotonic() - begun


@dataclass(frozen=True)
class Fault:
    """What is done, what it shows, and what mends it."""

    harm: Callable[[Scene], object]
    shows: dict[str, tuple[str, str]]
    mend: Callable[[Scene], object]


def store_away(scene: Scene) -> None:
    scene.environment.store.kill()


def store_back(scene: Scene) -> None:
    scene.environment.store.restart()


def freeze(scene: Scene) -> None:
    scene.environment.limiters[1].program.part.pause()


def thaw(scene: Scene) -> None:
    scene.environment.limiters[1].program.part.resume()


def leave_behind(scene: Scene) -> None:
    scene.hold_rules()
    scene.edit(response={"documentation": "https://example.com/edited"})


def refuse(scene: Scene) -> None:
    mount = scene.hold_rules()
    scene.edit(response={"documentation": "https://example.com/refused"})
    scene.wait({"Enforcing": ("True", "RollingOut")})
    mount.update(novel="a member that this limiter does not know")


def switch(mode: str, *rules: str) -> Callable[[Scene], None]:
    return lambda scene: scene.patch({rule: {"mode": mode, "reason": "INC-42"} for rule in rules})


def unswitch(*rules: str) -> Callable[[Scene], None]:
    return lambda scene: scene.patch(dict.fromkeys(rules))


def edit(**spec: Any) -> Callable[[Scene], None]:
    return lambda scene: scene.edit(**spec)


BACK = edit()
UNSERVED = {"hosts": ["unserved.conditions.test"]}
BAD = [{"name": "burst", "limit": {"requests": 1, "period": "1s", "burst": 10**12}}]

FAULTS = {
    "store down": Fault(store_away, {"Enforcing": ("False", "StoreUnavailable")}, store_back),
    "a limiter frozen": Fault(
        freeze,
        {
            "Enforcing": ("Unknown", "LimiterUnreachable"),
            "Programmed": ("False", "LimiterUnreachable"),
            "Reconciling": ("True", "LimiterUnreachable"),
        },
        thaw,
    ),
    "a limiter on an old revision": Fault(
        leave_behind,
        {"Enforcing": ("True", "RollingOut"), "Programmed": ("False", "LimiterStale")},
        Scene.let_rules_go,
    ),
    "a limiter refuses the rules": Fault(
        refuse,
        {"Enforcing": ("True", "RollingOut"), "Programmed": ("False", "LimiterRefused")},
        Scene.let_rules_go,
    ),
    "Envoy does not ask": Fault(
        lambda scene: scene.traffic.pause(),
        {"Enforcing": ("Unknown", "NotAsked"), "Ready": ("True", "Ready")},
        lambda scene: scene.traffic.resume(),
    ),
    "a host that no route serves": Fault(
        edit(match=UNSERVED), {"Enforcing": ("False", "NoTrafficMatched"), "Ready": ("True", "Ready")}, BACK
    ),
    "kill switch": Fault(switch("Disabled", "*"), {"Enforcing": ("False", "KillSwitch")}, unswitch("*")),
    "kill switch on one rule": Fault(
        switch("Shadow", "quota"), {"Enforcing": ("False", "KillSwitch")}, unswitch("quota")
    ),
    "break glass": Fault(
        lambda scene: scene.break_glass({"conditions/limits": "Disabled"}),
        {"Enforcing": ("False", "BreakGlass")},
        lambda scene: scene.break_glass(None),
    ),
    "shadow": Fault(edit(mode="Shadow"), {"Enforcing": ("False", "ShadowMode"), "Ready": ("True", "Ready")}, BACK),
    "disabled": Fault(edit(mode="Disabled"), {"Enforcing": ("False", "SwitchedOff"), "Ready": ("True", "Ready")}, BACK),
    "invalid": Fault(
        edit(rules=BAD),
        {
            "Accepted": ("False", "Invalid"),
            "Enforcing": ("True", "EarlierGeneration"),
            "Stalled": ("True", "Invalid"),
        },
        BACK,
    ),
    "unknown gateway": Fault(
        edit(gateway="egde"), {"Accepted": ("False", "UnknownGateway"), "Stalled": ("True", "UnknownGateway")}, BACK
    ),
}


@pytest.fixture(scope="module")
def impatient(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The operator with a patience of seconds."""
    operator = environment.operator
    before, place = operator.argv, operator.argv.index("--settings") + 1
    settings = yaml.safe_load(Path(before[place]).read_text())
    for gateway in settings["gateways"]:
        gateway["conditions"] = {"unmatchedAfter": "2s", "unaskedAfter": "4s"}
    path = tmp_path_factory.mktemp("settings") / "settings.yaml"
    path.write_text(yaml.safe_dump(settings))
    operator.argv = (*before[:place], str(path), *before[place + 1 :])
    _restart(environment)
    yield
    operator.argv = before
    _restart(environment)


def _restart(environment: Environment) -> None:
    environment.operator.restart()
    environment.operator.wait_ready()
    environment.save()


@pytest.fixture
def scene(team: Team, tmp_path: Path, impatient: None) -> Iterator[Scene]:
    """A policy that everything is well with, under traffic."""
    traffic = Traffic(team)
    scene = Scene(team, traffic, tmp_path)
    try:
        scene.edit()
        scene.wait(WELL)
        yield scene
    finally:
        scene.mounts.close()
        scene.environment.save()
        traffic.end()


@pytest.mark.requirement("R40")
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_shows_within_seconds_and_goes_when_it_is_mended(scene: Scene, name: str) -> None:
    """D52."""
    fault = FAULTS[name]
    fault.harm(scene)
    try:
        shown_s = scene.wait(fault.shows)
    finally:
        fault.mend(scene)
    gone_s = scene.wait(WELL)
    types = {condition["type"] for condition in scene.team.get("rlpol", "limits")["status"]["conditions"]}
    assert types == set(WELL)
    print(f"{name}: shown after {shown_s:.1f} s, gone after {gone_s:.1f} s")


@pytest.mark.requirement("R40")
@pytest.mark.parametrize("name", ["store down", "Envoy does not ask", "kill switch", "a limiter frozen"])
def test_a_fault_shows_that_came_while_no_operator_ran(scene: Scene, name: str) -> None:
    fault, operator = FAULTS[name], scene.environment.operator
    operator.part.kill()
    fault.harm(scene)
    try:
        _restart(scene.environment)
        scene.wait(fault.shows)
        operator.part.kill()
    finally:
        fault.mend(scene)
    _restart(scene.environment)
    scene.wait(WELL)


def looks(scene: Scene) -> float:
    """How often the operator has looked at everything since it started."""
    text = fetch(scene.environment.operator.metrics_url).body.decode()
    return sample(text, "weir_operator_reconciles_total", gateway="edge", outcome="done")


@pytest.mark.requirement("R40")
def test_a_new_operator_does_not_take_back_that_nothing_matches(scene: Scene) -> None:
    """D49: since when it has been so is told by the limiters, so nothing is written after a restart."""
    scene.edit(match=UNSERVED)
    scene.wait({"Enforcing": ("False", "NoTrafficMatched")})
    before = scene.team.get("rlpol", "limits")
    _restart(scene.environment)
    eventually(lambda: looks(scene) >= 3, FLIPS_S + SLACK_S, what="the new operator has looked at everything")
    assert scene.team.get("rlpol", "limits") == before


@pytest.mark.requirement("R40")
def test_an_override_says_that_it_has_ended_and_that_it_was_prolonged(scene: Scene) -> None:
    def until(seconds: float) -> str:
        end = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251
        return scene.team.override(subjects=[{"x-api-key": "k"}], action="Exempt", expiresAt=end)

    scene.team.apply(until(6))
    scene.wait({"Ready": ("True", "Ready")}, kind="rlovr", name="exception")
    scene.wait({"Ready": ("True", "Expired")}, kind="rlovr", name="exception")
    scene.team.apply(until(3600))
    scene.wait({"Ready": ("True", "Ready")}, kind="rlovr", name="exception")


@pytest.mark.requirement("R40", "R44")
def test_a_policy_says_that_an_older_one_leaves_it_no_room_until_that_is_gone(scene: Scene) -> None:
    """Conflict of two policies: more rules for one request than the gateway's budget."""
    many = [{**QUOTA, "name": f"r{number}"} for number in range(7)]
    scene.team.apply(scene.team.policy("younger", rules=many))
    scene.wait({"Accepted": ("False", "BudgetExceeded"), "Stalled": ("True", "BudgetExceeded")}, name="younger")
    scene.wait(WELL)
    scene.team.kubectl("delete", "rlpol", "limits")
    scene.wait({"Accepted": ("True", "Accepted"), "Ready": ("True", "Ready")}, name="younger")


@pytest.mark.requirement("R40")
def test_a_line_of_kubectl_tells_the_state_within_80_columns(scene: Scene) -> None:
    def share() -> str:
        printed = scene.team.kubectl("get", "rlpol", "limits", "-o", "wide").splitlines()
        assert printed[0].split() == [
            "NAME",
            "GATEWAY",
            "MODE",
            "ENFORCING",
            "LIMITERS",
            "AGE",
            "RULES",
            "WOULD-REJECT",
        ]
        assert max(map(len, printed)) <= 80
        *values, _, rules, would_reject = printed[1].split()
        assert (values, rules) == (["limits", "edge", "Enforce", "True", "2/2"], "2")
        return would_reject

    eventually(lambda: share().endswith("%"), FLIPS_S + SLACK_S, what="the share of what would be refused is told")
    usual = scene.team.kubectl("get", "rlpol", "limits").splitlines()
    assert usual[0].split() == ["NAME", "GATEWAY", "MODE", "ENFORCING", "LIMITERS", "AGE"]
