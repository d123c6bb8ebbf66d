# SPDX-License-Identifier: Apache-2.0
"""Two Envoys on one host: four values of the rendered bootstrap are moved, and nothing else."""

import copy
from pathlib import Path
from typing import Any

import pytest

from lab.envoy import BootstrapError, move


def mounted(folder: str) -> dict[str, Any]:
    return {"path": f"{folder}/closed.json", "watched_directory": {"path": folder}}


def bootstrap() -> dict[str, Any]:
    pipe = {"endpoint": {"address": {"pipe": {"path": "/run/weir/limiter.sock"}}}}
    other = {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 8081}}}}
    return {
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 9901}}},
        "static_resources": {
            "listeners": [
                {
                    "address": {"socket_address": {"address": "::", "port_value": 8080}},
                    "name": "http",
                    "filters": [{"path_config_source": mounted("/etc/weir/closed")}],
                }
            ],
            "clusters": [
                {"name": "limiter", "load_assignment": {"endpoints": [{"lb_endpoints": [pipe]}]}},
                {"name": "echo", "load_assignment": {"endpoints": [{"lb_endpoints": [other]}]}},
            ],
        },
    }


def test_ports_socket_and_mount_are_moved_and_the_rest_stays() -> None:
    expected = copy.deepcopy(bootstrap())
    expected["admin"]["address"]["socket_address"]["port_value"] = 2
    resources = expected["static_resources"]
    resources["listeners"][0]["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": 1}
    resources["listeners"][0]["filters"] = [{"path_config_source": mounted("/mnt")}]
    limiter = resources["clusters"][0]["load_assignment"]["endpoints"][0]["lb_endpoints"][0]
    limiter["endpoint"]["address"]["pipe"]["path"] = "/tmp/0.sock"  # noqa: S108
    moved = move(bootstrap(), port=1, admin_port=2, socket=Path("/tmp/0.sock"), closed=Path("/mnt"))  # noqa: S108
    assert moved == expected


def test_a_bootstrap_that_leads_to_no_limiter_is_an_error_and_not_an_open_gateway() -> None:
    without = bootstrap()
    del without["static_resources"]["clusters"][0]
    with pytest.raises(BootstrapError, match="Unix socket"):
        move(without, port=1, admin_port=2, socket=Path("0.sock"), closed=Path("/mnt"))


def test_a_bootstrap_without_closed_rules_is_an_error_and_not_an_open_gateway() -> None:
    without = bootstrap()
    del without["static_resources"]["listeners"][0]["filters"]
    with pytest.raises(BootstrapError, match="Closed"):
        move(without, port=1, admin_port=2, socket=Path("0.sock"), closed=Path("/mnt"))
