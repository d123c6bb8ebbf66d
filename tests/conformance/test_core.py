# SPDX-License-Identifier: Apache-2.0
"""The vectors over the Rust core, as the limiter package brings it."""

from __future__ import annotations

import json

import pytest

import vector
from core import Core


@pytest.mark.parametrize("case", vector.parameters())
def test_core_agrees_with_the_vector(case: vector.Vector, core: Core) -> None:
    vector.play(case, core)


@pytest.mark.parametrize(
    "document",
    [
        "",
        "{}",
        '{"steps": [{"now_us": 0}]}',
        '{"steps": [{"now_us": 0, "rules": [{"id": "x"}]}]}',
        json.dumps({"steps": [{"now_us": 0, "rules": [
            {"key": "k", "id": "short", "kind": 1, "enforcing": True, "numbers": [1, 1, 1, 1]}]}]}),
        json.dumps({"steps": [{"now_us": 0, "rules": [
            {"key": "k", "id": "eight...", "kind": 6, "enforcing": True, "numbers": [1, 1, 0, 0]}]}]}),
        json.dumps({"steps": [{"now_us": 0, "refund": True, "rules": []}]}),
    ],
)  # fmt: skip
def test_core_refuses_what_is_no_sequence_of_calls(document: str, core: Core) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the wording is the parser's
        core.evaluate(document)
