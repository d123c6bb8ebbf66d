# SPDX-License-Identifier: Apache-2.0
"""Whatever a user wrote, a YAML reader finds it in the body of an apply as it was."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from weir_operator.kube.bodies import encode_apply


@pytest.mark.parametrize("text", ["\U0001f40c", "\x7f", "\x85", "\u2028", "\ufeff", "\\ud83d", "a\tb\n", '"'])
def test_a_character_is_read_as_it_was_written(text: str) -> None:
    """D46: one such path must not end the edits of a whole gateway."""
    body = encode_apply({text: [text]})
    assert yaml.safe_load(body.decode()) == {text: [text]}
    assert b"\\ud83d\\udc0c" not in body


@given(st.recursive(st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner, max_size=3)))
def test_it_is_json_of_the_same_value(value: Any) -> None:
    assert json.loads(encode_apply(value)) == value
