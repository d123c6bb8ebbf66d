# SPDX-License-Identifier: Apache-2.0
"""Where the API server is and who we are: the file in KUBECONFIG, else the pod's service account, else ~/.kube/config.

Owns the choice, so that the client and kopf always speak to the same server as the same identity. Must not cache: a
caller loads again when the server no longer accepts what it had (tokens in files are rotated under us).
"""

from __future__ import annotations

import os
from pathlib import Path

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from kubernetes.aio.config.kube_config import list_kube_config_contexts

_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class NoCredentials(Exception):  # noqa: N818  named by its consequence
    """There is no usable kubeconfig and no service account."""


async def load_configuration() -> Configuration:
    """Return a fresh client configuration.

    Raises NoCredentials with what was tried.
    """
    configuration = Configuration()
    kubeconfig = os.environ.get("KUBECONFIG", "")
    try:
        if kubeconfig:
            await load_kube_config(config_file=kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]
        elif "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        tried = f"KUBECONFIG={kubeconfig}" if kubeconfig else "the pod's service account and ~/.kube/config"
        raise NoCredentials(f"no way to the API server: tried {tried}: {error}") from error
    return configuration


def default_namespace() -> str:
    """Return the namespace of whoever names none: of the kubeconfig's context, else of the pod, else `default`."""
    kubeconfig = os.environ.get("KUBECONFIG") or None
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return _POD_NAMESPACE.read_text("utf-8").strip()
    try:
        _, context = list_kube_config_contexts(kubeconfig)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        raise NoCredentials(f"no kubeconfig that could name a namespace: {error}; give one with -n") from error
    return str(context["context"].get("namespace") or "default")


async def bearer_token(configuration: Configuration) -> str | None:
    """Return the bare bearer token of a configuration, or None when it has none (client certificates)."""
    header = await configuration.get_api_key_with_prefix("BearerToken")
    return header.split(" ", 1)[-1] if header else None
