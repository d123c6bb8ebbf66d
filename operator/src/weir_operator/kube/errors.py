# SPDX-License-Identifier: Apache-2.0
"""The API server's refusals, translated into what the loop can do about them.

Owns the mapping from HTTP answers to Waiting, Stalled and Missing, and the wording that helps a person. Must not retry.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus

from weir_operator.reconcile.ports import Missing, Resource, Stalled, Waiting

RETRY_CONNECTION_S = 1.0
RETRY_CONFLICT_S = 1.0
RETRY_CREDENTIALS_S = 5.0
RETRY_MISSING_KIND_S = 5.0
MESSAGE_MAX_CHARS = 500  # conditions and logs: enough for any one cause, too little to flood


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was tried, for messages."""

    verb: str
    """RBAC's verb: get, list, create, update, patch, delete."""
    resource: Resource
    subresource: str = ""
    namespace: str | None = None
    name: str = ""

    def __str__(self) -> str:
        what = self.resource.qualified + (f"/{self.subresource}" if self.subresource else "")
        named = f" {self.name}" if self.name else ""
        where = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
        return f"{self.verb} {what}{named} {where}"


def error_of_answer(  # noqa: PLR0911  a table of cases reads best as one
    attempt: Attempt, status: int, body: bytes, retry_after: str | None
) -> Exception:
    """Return the exception for an answer of 400 and above."""
    said, terminating = _read_status(body)
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return Waiting(
                f"cannot {attempt}: the API server does not accept the operator's credentials: {said}",
                RETRY_CREDENTIALS_S,
            )
        case HTTPStatus.FORBIDDEN if terminating:
            return Stalled(f"cannot {attempt}: the namespace is being deleted")
        case HTTPStatus.FORBIDDEN:
            return Stalled(
                f"cannot {attempt}: the operator's role lacks this permission; "
                f"grant it as the chart's RBAC does ({said})",
                forbidden=said,
            )
        case HTTPStatus.NOT_FOUND if attempt.name:
            return Missing(f"cannot {attempt}: {said}")
        case HTTPStatus.NOT_FOUND:
            return Waiting(
                f"cannot {attempt}: the API server does not know this resource; "
                f"are the CustomResourceDefinitions installed? ({said})",
                RETRY_MISSING_KIND_S,
            )
        case HTTPStatus.CONFLICT if attempt.subresource:
            return Missing(f"cannot {attempt}: {said}")  # the uid is not its own any more
        case HTTPStatus.CONFLICT:
            return Waiting(f"cannot {attempt}: {said}", RETRY_CONFLICT_S, conflict=True)
        case HTTPStatus.TOO_MANY_REQUESTS:
            return Waiting(f"cannot {attempt}: the API server asks for patience: {said}", _seconds(retry_after))
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Waiting(f"cannot {attempt}: the API server failed with {status}: {said}", _seconds(retry_after))
        case _:
            return Stalled(f"cannot {attempt}: the API server refuses it with {status}: {said}")


def error_of_connection(attempt: Attempt, cause: BaseException) -> Waiting:
    """Return the exception for no answer at all."""
    why = str(cause) or type(cause).__name__
    return Waiting(f"cannot {attempt}: no answer from the API server: {why[:MESSAGE_MAX_CHARS]}", RETRY_CONNECTION_S)


def _read_status(body: bytes) -> tuple[str, bool]:
    """Return the message of a Status object and whether its cause is a namespace that is going away."""
    try:
        document = json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")[:MESSAGE_MAX_CHARS], False
    if not isinstance(document, dict):
        return "", False
    details = document.get("details") or {}
    causes = details.get("causes") or () if isinstance(details, dict) else ()
    terminating = any(cause.get("reason") == "NamespaceTerminating" for cause in causes if isinstance(cause, dict))
    return str(document.get("message", ""))[:MESSAGE_MAX_CHARS], terminating


def _seconds(retry_after: str | None) -> float:
    return float(retry_after) if retry_after and retry_after.isdigit() else RETRY_CONNECTION_S
