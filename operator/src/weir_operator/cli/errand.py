# SPDX-License-Identifier: Apache-2.0
"""One errand to the API server: read, say what will be done, ask, write, wait for the limiters.

Owns the order of these steps and the words of their failures. What is written is each command's own.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from weir_operator.api.intervening import interventions_digest
from weir_operator.cli.intervention import Change, Context, Planner, Refused
from weir_operator.clock import SystemClock
from weir_operator.kube.credentials import NoCredentials, default_namespace, load_configuration
from weir_operator.kube.policy_status import PolicyStatus
from weir_operator.kube.transport import Transport
from weir_operator.reconcile.ports import Missing, Object, Stalled, Waiting

EXIT_REFUSED = 1
POLL_S = 0.2
_RIGHTS = "it takes get and patch of ratelimitpolicies/status, which the cluster role weir-switcher has"


def run(options: argparse.Namespace, plan: Planner) -> int:
    """Do it; return the exit status."""
    try:
        return asyncio.run(_carry_out(options, plan))
    except Stalled as error:
        message = f"the API server refuses it: {error.forbidden}; {_RIGHTS}" if error.forbidden else str(error)
    except (Refused, NoCredentials, Waiting, Missing) as error:
        message = str(error)
    print(f"weir {options.command}: {message}", file=sys.stderr)
    return EXIT_REFUSED


async def _carry_out(options: argparse.Namespace, plan: Planner) -> int:
    namespace = options.namespace or default_namespace()
    transport = Transport(load_configuration, lambda _verb, _status: None, "weir-cli")
    try:
        status = PolicyStatus(transport, namespace, options.policy)
        context = Context(await status.read(), await status.who(), SystemClock().now())
        change = plan(options, context)
        host = (await load_configuration()).host
        _show(change, [*change.details, ("cluster", host), ("as", context.who)])
        if not options.yes and not _confirmed():
            print("Nothing was changed.")
            return EXIT_REFUSED
        stored = await status.patch(change.fields)
        check_kept(stored, change)
        return await _await_limiters(status, stored, options.wait)
    finally:
        await transport.close()


def _show(change: Change, details: Sequence[tuple[str, str]]) -> None:
    print(change.question)
    for name, value in details:
        print(f"  {name:<9} {value}")


def _confirmed() -> bool:
    try:
        return input("Go on? [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        print()
        return False


def check_kept(stored: Object, change: Change) -> None:
    """An API server whose CRD is older than the field drops it and says nothing."""
    status = stored.get("status") or {}
    for field, entries in change.fields.items():
        kept = status.get(field) or {}
        if any((kept.get(name) is None) != (entry is None) for name, entry in entries.items()):
            raise Refused(
                f"the API server did not keep status.{field}: its CustomResourceDefinition is older than this command; "
                "upgrade the chart, and meanwhile use the break-glass ConfigMap"
            )


async def _await_limiters(status: PolicyStatus, stored: Object, within_s: float) -> int:
    """Wait until every limiter runs it, and say so."""
    clock = SystemClock()
    start_s = clock.monotonic()
    while True:
        taken, programmed, message = progress(stored)
        passed_s = clock.monotonic() - start_s
        if taken and programmed:
            print(f"Done after {passed_s:.1f} s: {message}.")
            return 0
        if passed_s >= within_s:
            break
        await asyncio.sleep(POLL_S)
        stored = await status.read()
    if taken:
        raise Refused(f"it is set, but after {within_s:g} s not everywhere: {message}")
    if refusal := refusal_of(stored):
        raise Refused(f"it is set, but no limiter runs the policy as it is: {refusal}")
    raise Refused(
        f"it is set, but no operator has taken it up within {within_s:g} s; "
        "if none runs, use the break-glass ConfigMap: docs/how-to/switch-a-rule-off.md"
    )


def progress(policy: Object) -> tuple[bool, bool, str]:
    """Return whether the operator judged what people wrote, whether all limiters run it, and its words."""
    status = policy.get("status") or {}
    taken = (status.get("observedInterventions") or "") == interventions_digest(status)
    programmed = _condition(policy, "Programmed")
    return taken, programmed.get("status") == "True", str(programmed.get("message", "the operator says nothing yet"))


def refusal_of(policy: Object) -> str:
    """Return why the operator does not accept the policy, "" if it does."""
    accepted = _condition(policy, "Accepted")
    return str(accepted.get("message", "see Accepted")) if accepted.get("status") == "False" else ""


def _condition(policy: Object, name: str) -> Mapping[str, Any]:
    conditions = (policy.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == name), {})
