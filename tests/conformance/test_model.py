# SPDX-License-Identifier: Apache-2.0
"""The vectors over the model: if these disagree, either the vector or the meaning of a decision is wrong."""

from __future__ import annotations

import pytest

import vector
from model import Model


@pytest.mark.parametrize("case", vector.parameters())
def test_model_agrees_with_the_vector(case: vector.Vector) -> None:
    vector.play(case, Model())
