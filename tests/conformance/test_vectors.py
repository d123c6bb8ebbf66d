# SPDX-License-Identifier: Apache-2.0
"""The vectors themselves: well-formed, and speaking of rules that they have."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import jsonschema
import pytest
import yaml

import vector
from model import Model

GOOD = yaml.safe_load((vector.FOLDER / "token-bucket" / "older-clock-refills-nothing.yaml").read_text())


def test_there_are_vectors_for_every_algorithm() -> None:
    folders = {path.name for path in vector.FOLDER.iterdir() if path.is_dir()}
    assert {case.path.parent.name for case in vector.load_all()} == folders
    assert folders == {
        "token-bucket", "leaky-bucket", "fixed-window", "sliding-window-counter", "sliding-window-log",
        "several-algorithms",
    }  # fmt: skip


@pytest.mark.parametrize("case", vector.parameters())
def test_steps_name_only_rules_that_the_vector_has(case: vector.Vector) -> None:
    named: set[str] = set()
    for step in case.content["steps"]:
        named |= {*step.get("rules", ()), *step.get("change", ()), *step.get("expect", {}).get("rules", ())}
        named |= set(step["cost"] if isinstance(step.get("cost"), dict) else ())
    assert named <= set(case.content["rules"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("steps", 0, "expect", "remainng"), 3),
        (("steps", 0, "expect"), {}),
        (("steps", 0, "at_us"), 0),
        (("steps", 0, "cost"), -1),
        (("steps", 0, "retry_after"), "never"),
        (("rules", "rule", "period"), "1 second"),
        (("rules", "rule", "requests"), 0),
        (("rules", "rule", "algorithm"), "GCRA"),
        (("rules", "rule", "algorithm"), "FixedWindow"),
        (("rules", "rule", "calendar"), "Day"),
        (("rules", "rule", "queue"), 3),
        (("steps", 0, "refund"), 1),
        (("rules", "a-name-that-is-too-long"), {"requests": 1, "period": "1s", "burst": 1}),
        (("proves",), ["issue 7"]),
        (("behavior",), "spelled otherwise"),
    ],
)
def test_misspelled_vector_is_refused(path: tuple[str | int, ...], value: object, tmp_path: Path) -> None:
    content = deepcopy(GOOD)
    node = content
    for part in path[:-1]:
        node = node[part]
    node[path[-1]] = value
    file = tmp_path / "case.yaml"
    file.write_text(yaml.safe_dump(content))
    with pytest.raises(jsonschema.ValidationError):
        vector.load(file)


def test_vector_that_expects_something_else_fails() -> None:
    """The runner compares: each of these expectations is wrong about the first step, which allows with 4 remaining."""
    for wrong in ({"allowed": False}, {"remaining": 3}, {"admitted": 0}, {"retry_after": "never"}, {"reset_us": 1}):
        content = {**GOOD, "steps": [{"at_ms": 0, "expect": wrong}]}
        with pytest.raises(AssertionError):
            vector.play(vector.Vector(vector.FOLDER / "wrong.yaml", content), Model())
