# SPDX-License-Identifier: Apache-2.0
"""Every refusal of the API server becomes what the loop can do about it, in words that say what a person can do."""

import json

import pytest

from weir_operator.kube.errors import Attempt, error_of_answer, error_of_connection
from weir_operator.reconcile.ports import CONFIG_MAPS, POLICIES, Missing, Stalled, Waiting

PATCH = Attempt("patch", CONFIG_MAPS, namespace="weir-system", name="edge-rules-0")
LIST = Attempt("list", POLICIES)
STATUS = Attempt("patch", POLICIES, subresource="status", namespace="t", name="p")


def body(message: str, cause: str = "") -> bytes:
    return json.dumps({"message": message, "details": {"causes": [{"reason": cause}]}}).encode()


@pytest.mark.parametrize(
    ("attempt", "status", "kind", "words"),
    [
        (LIST, 401, Waiting, "does not accept the operator's credentials"),
        (STATUS, 403, Stalled, "cannot patch ratelimitpolicies.weir.dev/status p in namespace t: the operator's role"),
        (LIST, 403, Stalled, "cannot list ratelimitpolicies.weir.dev in all namespaces: the operator's role lacks"),
        (LIST, 404, Waiting, "are the CustomResourceDefinitions installed"),
        (STATUS, 404, Missing, "said"),
        (STATUS, 409, Missing, "said"),
        (PATCH, 409, Waiting, "said"),
        (PATCH, 413, Stalled, "refuses it with 413"),
        (PATCH, 422, Stalled, "refuses it with 422: said"),
        (PATCH, 429, Waiting, "asks for patience"),
        (PATCH, 500, Waiting, "failed with 500"),
        (PATCH, 503, Waiting, "failed with 503"),
    ],
)
def test_an_answer_becomes_its_consequence(attempt: Attempt, status: int, kind: type[Exception], words: str) -> None:
    error = error_of_answer(attempt, status, body("said"), None)
    assert type(error) is kind
    assert words in str(error)


def test_a_namespace_that_is_being_deleted_is_no_lack_of_rights() -> None:
    error = error_of_answer(PATCH, 403, body("forbidden", "NamespaceTerminating"), None)
    assert "is being deleted" in str(error)


def test_the_server_says_how_long_to_wait() -> None:
    error = error_of_answer(PATCH, 429, b"", "7")
    assert isinstance(error, Waiting)
    assert error.retry_after_s == 7


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b"{}", b'{"details": []}', b"\xff"])
def test_an_answer_in_no_known_form_is_no_fault_of_ours(answer: bytes) -> None:
    assert isinstance(error_of_answer(PATCH, 500, answer, "soon"), Waiting)


def test_a_long_answer_is_cut() -> None:
    assert len(str(error_of_answer(PATCH, 500, b"x" * 100_000, None))) < 1000


def test_no_answer_at_all_is_waited_for() -> None:
    error = error_of_connection(LIST, TimeoutError())
    assert "no answer from the API server: TimeoutError" in str(error)
