# SPDX-License-Identifier: Apache-2.0
"""The operator's metrics."""

from weir_operator.metrics import Metrics


def test_a_reason_that_no_longer_occurs_goes_back_to_zero() -> None:
    metrics = Metrics()
    metrics.count_refused("edge", {"Invalid": 2})
    metrics.count_refused("edge", {"Conflicted": 1})
    text = metrics.expose().decode()
    assert 'weir_operator_objects_refused{gateway="edge",reason="Invalid"} 0.0' in text
    assert 'weir_operator_objects_refused{gateway="edge",reason="Conflicted"} 1.0' in text
    assert "PolicyNotFound" not in text
