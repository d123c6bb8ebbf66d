# SPDX-License-Identifier: Apache-2.0
"""A pydantic model as the structural schema that a CRD may hold.

Pydantic speaks JSON Schema 2020-12 with references; Kubernetes wants one tree in a narrow dialect. What this
module does not know it refuses, so that nothing is ever passed through that the API server would ignore.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_operator.api.types import SERVER_DEFAULT, ApiModel

Schema = dict[str, Any]

_COPIED = frozenset(
    {
        "type",
        "description",
        "enum",
        "format",
        "pattern",
        "required",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    }
)
_DROPPED = frozenset({"title", "additionalProperties", "propertyNames", "default", "example", SERVER_DEFAULT})
_MAX_SAFE_INT32 = 2**31 - 1


def structural_schema(model: type[ApiModel]) -> Schema:
    """The schema of `model`. Raises ValueError for what has no structural form: a mistake of ours."""
    generated = model.model_json_schema(by_alias=True)
    return _convert(generated, generated.get("$defs", {}), model.__name__)


def _convert(node: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> Schema:
    node = _inline(node, definitions, path)
    unknown = sorted(set(node) - _COPIED - _DROPPED - {"properties", "items", "$defs"})
    if unknown:
        raise ValueError(f"{path}: no structural form is known for {', '.join(unknown)}")
    schema: Schema = {key: value for key, value in node.items() if key in _COPIED}
    if "description" in schema:
        schema["description"] = _description(node)
    if node.get(SERVER_DEFAULT):
        schema["default"] = node["default"]
    if schema.get("type") == "integer":
        schema["format"] = "int64" if schema.get("maximum", _MAX_SAFE_INT32 + 1) > _MAX_SAFE_INT32 else "int32"
    if "properties" in node:
        schema["properties"] = {
            name: _convert(child, definitions, f"{path}.{name}") for name, child in node["properties"].items()
        }
    elif isinstance(node.get("additionalProperties"), Mapping):
        schema["additionalProperties"] = _convert(node["additionalProperties"], definitions, f"{path}.*")
    if "items" in node:
        schema["items"] = _convert(node["items"], definitions, f"{path}[]")
    return schema


def _inline(node: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> Schema:
    """`node` with its reference and its optional arm resolved; what stands beside a reference wins."""
    beside = dict(node)
    if "anyOf" in beside:
        arms = [arm for arm in beside.pop("anyOf") if arm.get("type") != "null"]
        if len(arms) != 1:
            raise ValueError(f"{path}: a union of {len(arms)} types has no structural form")
        return _inline({**arms[0], **beside}, definitions, path)
    if "$ref" in beside:
        name = beside.pop("$ref").removeprefix("#/$defs/")
        return _inline({**definitions[name], **beside}, definitions, path)
    if "const" in beside:
        beside["enum"] = [beside.pop("const")]
    return beside


def _description(node: Mapping[str, Any]) -> str:
    """One paragraph, with the default that the operator fills in."""
    text = " ".join(node["description"].split())
    default = node.get("default")
    return text + (f" Defaults to {default}." if isinstance(default, str | int) else "")
