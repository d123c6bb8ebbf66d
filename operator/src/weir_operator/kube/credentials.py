# SPDX-License-Identifier: Apache-2.0
"""Where the API server is and who we are: the file in KUBECONFIG, else the pod's service account, else ~/.kube/config.

Owns the choice, so that the client and kopf always speak to the same server as the same identity. Must not cache: a
caller loads again when the server no longer accepts what it had (tokens in files are rotated under us).
"""

from __future__ import annotations

import os

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config


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


async def bearer_token(configuration: Configuration) -> str | None:
    """Return the bare bearer token of a configuration, or None when it has none (client certificates)."""
    header = await configuration.get_api_key_with_prefix("BearerToken")
    return header.split(" ", 1)[-1] if header else None
