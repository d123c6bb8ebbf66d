# SPDX-License-Identifier: Apache-2.0
"""Redis and Valkey servers of the lab: one server, or a cluster, on loopback ports.

An installed server is taken when there is one, else one of a wheel, run as our own process. It keeps nothing on disk
and evicts nothing: a store that dropped buckets would hand out full ones.
"""

from lab.store.cluster import StoreCluster, start_cluster
from lab.store.server import Flavour, StoreMissingError, find_server
from lab.store.single import Store, start_store

__all__ = [
    "Flavour",
    "Store",
    "StoreCluster",
    "StoreMissingError",
    "find_server",
    "start_cluster",
    "start_store",
]
