# SPDX-License-Identifier: Apache-2.0
"""Objects as people apply them, and the ruleset that limiters get: `golden/<case>.in.yaml` and `<case>.out.json`.

An input may start with a document of kind Gateway (see `gateway_of`); the output also says what each object is told.
`make golden` accepts what the operator makes now; read the difference before you commit it.
"""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from weir_operator.api.parsing import parse_override, parse_policy
from weir_operator.domain.attachment import attach
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.gateways import Gateway, HostsDefault, Jwt
from weir_operator.domain.outcomes import Outcome
from weir_operator.domain.ruleset import document_schema
from weir_operator.render.ruleset_config import PLAIN_KEY, Live, RulesetTooLarge, render_rules

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name.removesuffix(".in.yaml") for path in GOLDEN.glob("*.in.yaml"))
NOW_MS = 1_764_477_123_042


def gateway_of(settings: dict[str, Any]) -> Gateway:
    return Gateway(
        settings.get("name", "edge"),
        "weir-system",
        allowed_namespaces=frozenset(settings.get("allowedNamespaces", ["*"])),
        hosts={namespace: tuple(hosts) for namespace, hosts in settings.get("hosts", {}).items()},
        hosts_default=HostsDefault(settings.get("hostsDefault", "Any")),
        withheld_headers=frozenset(settings.get("withhold", ["authorization", "cookie"])),
        max_delay_ms=settings.get("maxDelayMs", 0),
        rule_budget=settings.get("ruleBudget", 8),
        jwt=Jwt(settings["jwt"]["metadataNamespace"], settings["jwt"]["payloadKey"]) if "jwt" in settings else Jwt(),
    )


def rendered(case: str) -> dict[str, Any]:
    documents = list(yaml.safe_load_all((GOLDEN / f"{case}.in.yaml").read_text(encoding="utf-8")))
    gateway = next((gateway_of(document) for document in documents if document["kind"] == "Gateway"), gateway_of({}))
    policies = [parse_policy(document) for document in documents if document["kind"] == "RateLimitPolicy"]
    overrides = [parse_override(document) for document in documents if document["kind"] == "RateLimitOverride"]
    attachment = attach(policies, overrides, [gateway], {})
    group = attachment.groups[gateway.name]
    compiled = compile_ruleset(group.policies, group.overrides, gateway, None)
    manifest = render_rules(compiled.ruleset, gateway, Live(), NOW_MS)
    assert not isinstance(manifest, RulesetTooLarge)
    ruleset = json.loads(manifest["data"][PLAIN_KEY])
    jsonschema.Draft202012Validator(document_schema()).validate(ruleset)
    outcomes = {**compiled.policies, **attachment.policies}, {**compiled.overrides, **attachment.overrides}
    policies_told, overrides_told = ({name: told(outcome) for name, outcome in of.items()} for of in outcomes)
    return {"ruleset": ruleset, "told": {"policies": policies_told, "overrides": overrides_told}}


def told(outcome: Outcome) -> list[str]:
    return [f"{problem.reason}: {problem}" for problem in outcome.problems] + list(outcome.notes)


@pytest.mark.requirement("R41")
@pytest.mark.parametrize("case", CASES)
def test_objects_render_to_the_accepted_ruleset(case: str) -> None:
    text = json.dumps(rendered(case), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    accepted = GOLDEN / f"{case}.out.json"
    if os.environ.get("WEIR_ACCEPT_GOLDEN"):
        accepted.write_text(text, encoding="utf-8")
    assert text == accepted.read_text(encoding="utf-8"), (
        f"look at the difference; `make golden` accepts it ({accepted})"
    )


def test_every_output_has_an_input() -> None:
    assert sorted(path.name.removesuffix(".out.json") for path in GOLDEN.glob("*.out.json")) == CASES
