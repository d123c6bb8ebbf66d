# SPDX-License-Identifier: Apache-2.0
"""The generated CRDs as data. That a real API server takes them is shown in tests/e2e/test_admission.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from weir_operator.api.crd import KINDS, Kind, manifest, to_yaml
from weir_operator.api.reference import conditions_page, kind_page
from weir_operator.api.schema import structural_schema
from weir_operator.api.types import ApiModel

ROOT = Path(__file__).resolve().parents[4]
SERVER_DEFAULTS = {"RateLimitPolicy": ["spec.gateway", "spec.mode", "status"], "RateLimitOverride": ["status"]}
kinds = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])


def schema_of(kind: Kind) -> dict[str, Any]:
    schema: dict[str, Any] = manifest(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return schema


def every_node(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from every_node(child, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if key in schema:
            yield from every_node(schema[key], path + mark)


def nodes(kind: Kind) -> list[tuple[str, dict[str, Any]]]:
    return [node for part in ("spec", "status") for node in every_node(schema_of(kind)[part], part)]


@kinds
def test_the_committed_manifest_is_the_generated_one(kind: Kind) -> None:
    committed = ROOT / "crds" / f"{kind.plural}.yaml"
    assert committed.read_text(encoding="utf-8") == to_yaml(manifest(kind)), "run `make generate`"


@kinds
def test_the_generated_file_is_yaml_of_the_manifest(kind: Kind) -> None:
    assert yaml.safe_load(to_yaml(manifest(kind))) == manifest(kind)


@kinds
def test_every_field_has_a_description_and_a_type(kind: Kind) -> None:
    for path, node in nodes(kind):
        assert "type" in node or node.get("x-kubernetes-preserve-unknown-fields"), path
        if not path.endswith(("[]", ".*")):
            assert node.get("description"), path


@kinds
def test_everything_that_a_rule_can_read_is_bounded(kind: Kind) -> None:
    """The API server estimates a rule's cost from these bounds, and refuses a CRD that could cost too much."""
    for path, node in every_node(schema_of(kind)["spec"], "spec"):
        if node.get("type") == "array":
            assert "maxItems" in node, path
        if node.get("type") == "string" and "enum" not in node and node.get("format") != "date-time":
            assert "maxLength" in node or "{0,63}$" in node.get("pattern", "") or "{64}$" in node["pattern"], path
        if "additionalProperties" in node:
            assert "maxProperties" in node, path


@kinds
def test_the_api_server_fills_in_only_what_it_prints(kind: Kind) -> None:
    """D58: every other default is filled in when compiling, so that a spec stays as its author wrote it."""
    assert SERVER_DEFAULTS[kind.name] == [path for path, node in nodes(kind) if "default" in node]


@kinds
def test_a_new_object_is_not_ready_before_anybody_has_looked(kind: Kind) -> None:
    """D54"""
    (condition,) = schema_of(kind)["status"]["default"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Ready", "Unknown", "Pending")


@kinds
def test_lists_with_an_identity_are_maps(kind: Kind) -> None:
    keyed = {
        path: node["x-kubernetes-list-map-keys"] for path, node in nodes(kind) if "x-kubernetes-list-map-keys" in node
    }
    named = {"spec.rules": ["name"], "status.rules": ["name"], "status.rules[].evidence.top": ["subject"]}
    rules = named if kind.name == "RateLimitPolicy" else {}
    assert keyed == {**rules, "status.conditions": ["type"]}


def test_what_has_no_structural_form_is_refused_rather_than_passed_through() -> None:
    class Union(ApiModel):
        """Two types in one field."""

        field: int | str

    class Tuple(ApiModel):
        """Positions with types of their own."""

        field: tuple[int, str]

    class Fixed(ApiModel):
        """One word."""

        field: Literal["only"]

    with pytest.raises(ValueError, match=r"Union\.field: a union of 2 types"):
        structural_schema(Union)
    with pytest.raises(ValueError, match=r"Tuple\.field: no structural form is known for prefixItems"):
        structural_schema(Tuple)
    assert structural_schema(Fixed)["properties"]["field"] == {"type": "string", "enum": ["only"]}


@pytest.mark.parametrize(
    ("file", "text"),
    [*((f"{kind.name.lower()}.md", kind_page(kind)) for kind in KINDS), ("conditions.md", conditions_page())],
)
def test_the_committed_reference_pages_are_the_generated_ones(file: str, text: str) -> None:
    assert (ROOT / "docs" / "reference" / file).read_text(encoding="utf-8") == text, "run `make generate`"


@kinds
def test_the_reference_page_has_every_field(kind: Kind) -> None:
    page = kind_page(kind)
    for path, _ in nodes(kind):
        if not path.endswith(("[]", ".*", ".sha256")) and "." in path:
            assert f"| `{path.rsplit('.', 1)[1]}` |" in page
