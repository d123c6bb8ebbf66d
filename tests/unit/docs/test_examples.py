# SPDX-License-Identifier: Apache-2.0
"""Every manifest that we show is judged by the compiler: those of examples/, and each YAML block of the documentation.

A block that is meant to be wrong stands under the comment `<!-- refused: … -->`, which quotes what the operator says.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from weir_operator.api.parsing import parse_override, parse_policy
from weir_operator.domain.attachment import attach
from weir_operator.domain.compiler import compile_ruleset
from weir_operator.domain.gateways import Gateway
from weir_operator.domain.problems import Problem
from weir_operator.settings import parse_settings

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(
    r"^(?:<!-- refused: (?P<refused>.+?) -->\n+)?(?P<fence>```)ya?ml\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
MANIFESTS = sorted((ROOT / "examples").glob("0*.yaml"))
PAGES = sorted([ROOT / "README.md", ROOT / "charts" / "weir" / "README.md", *(ROOT / "docs").rglob("*.md")])


@dataclass(frozen=True)
class Shown:
    """A manifest in a page, where it stands, and what it is refused with ("" = accepted)."""

    where: str
    manifest: dict[str, Any]
    refused: str


def gateway() -> Gateway:
    values = (ROOT / "examples" / "values.yaml").read_text()
    (edge,) = parse_settings(values).gateways
    return edge


def problems(*manifests: dict[str, Any]) -> list[Problem]:
    """What the compiler finds wrong with these objects, all applied together."""
    policies = [parse_policy(m) for m in manifests if m["kind"] == "RateLimitPolicy"]
    overrides = [parse_override(m) for m in manifests if m["kind"] == "RateLimitOverride"]
    attached = attach(policies, overrides, [gateway()], {})
    group = attached.groups["edge"]
    compiled = compile_ruleset(group.policies, group.overrides, gateway(), None)
    outcomes = [
        *attached.policies.values(),
        *attached.overrides.values(),
        *compiled.policies.values(),
        *compiled.overrides.values(),
    ]
    return [problem for outcome in outcomes for problem in outcome.problems]


def documents(text: str) -> list[dict[str, Any]]:
    found = [document for document in yaml.safe_load_all(text) if isinstance(document, dict)]
    return [document for document in found if str(document.get("kind", "")).startswith("RateLimit")]


def shown() -> Iterator[Shown]:
    for page in PAGES:
        text = page.read_text()
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start("fence")) + 1
            for manifest in documents(block["text"]):
                yield Shown(f"{page.relative_to(ROOT)}:{line}", manifest, block["refused"] or "")


SHOWN = list(shown())
ENFORCED = documents((ROOT / "examples" / "02-orders-enforce.yaml").read_text())


def beside(case: Shown) -> list[dict[str, Any]]:
    """The manifest; for an override also its policy, from the same page, else from the examples."""
    if case.manifest["kind"] == "RateLimitPolicy":
        return [case.manifest]
    page = case.where.rsplit(":", 1)[0]
    wanted = case.manifest["spec"]["policyRef"]["name"]
    own = [s.manifest for s in SHOWN if s.where.startswith(f"{page}:") and s.manifest["metadata"]["name"] == wanted]
    return [*(own[:1] or ENFORCED), case.manifest]


@pytest.mark.requirement("R40")
def test_the_examples_are_accepted_together_by_the_example_gateway() -> None:
    in_the_end = {(m["kind"], m["metadata"]["name"]): m for path in MANIFESTS for m in documents(path.read_text())}
    assert len(in_the_end) == 5, "02 replaces the policy of 01"
    assert problems(*in_the_end.values()) == []


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_each_example_says_what_it_is_for(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines[0] == "# SPDX-License-Identifier: Apache-2.0"
    assert lines[1].startswith("# ")


def test_the_enforced_example_differs_from_the_shadowed_one_in_its_mode_alone() -> None:
    (shadow,) = documents((ROOT / "examples" / "01-orders-shadow.yaml").read_text())
    (enforced,) = ENFORCED
    assert (shadow["spec"].pop("mode"), enforced["spec"].get("mode")) == ("Shadow", "Enforce")
    assert shadow["spec"] == {key: value for key, value in enforced["spec"].items() if key != "mode"}


@pytest.mark.requirement("R02")
def test_the_examples_hold_the_numbers_of_the_plans() -> None:
    (rule,) = ENFORCED[0]["spec"]["rules"]
    enterprise = rule["plans"]["limits"]["enterprise"]
    assert rule["limit"] == {"requests": 100, "period": "1s", "burst": 200}
    assert enterprise == {"requests": 1000, "period": "1s", "burst": 2000}


def test_the_documentation_shows_manifests_at_all() -> None:
    assert SHOWN


@pytest.mark.parametrize("case", [s for s in SHOWN if not s.refused], ids=lambda case: case.where)
def test_a_manifest_in_the_documentation_is_accepted(case: Shown) -> None:
    assert problems(*beside(case)) == []


@pytest.mark.parametrize("case", [s for s in SHOWN if s.refused], ids=lambda case: case.where)
def test_a_manifest_that_is_shown_as_wrong_is_refused_with_the_quoted_words(case: Shown) -> None:
    assert case.refused in [str(problem) for problem in problems(*beside(case))]


def test_the_example_of_a_login_tells_nobody_its_numbers_and_fails_closed() -> None:
    login, _ = documents((ROOT / "examples" / "05-shop.yaml").read_text())
    for rule in login["spec"]["rules"]:
        assert rule["limit"]["algorithm"] == "SlidingWindowLog"
        assert (rule["visibility"], rule["onStoreFailure"]) == ("Silent", {"mode": "Closed"})
