# SPDX-License-Identifier: Apache-2.0
"""Reads a policy from the API server for a command that only looks. Owns the words of what can go wrong."""

from __future__ import annotations

from weir_operator.kube.credentials import NoCredentials, default_namespace, load_configuration
from weir_operator.kube.policy_status import PolicyStatus
from weir_operator.kube.transport import Transport
from weir_operator.reconcile.ports import Missing, Object, Stalled, Waiting


class Unread(Exception):  # noqa: N818  named by its consequence
    """The policy cannot be read; the message says why."""


async def read_policy(namespace: str | None, name: str) -> Object:
    """Return the policy. Raises Unread."""
    transport = Transport(load_configuration, lambda _verb, _status: None, "weir-cli")
    try:
        return await PolicyStatus(transport, namespace or default_namespace(), name).read()
    except (Stalled, NoCredentials, Waiting, Missing) as error:
        raise Unread(str(error)) from error
    finally:
        await transport.close()
