# SPDX-License-Identifier: Apache-2.0
"""The load generator and the echo of the crate `limiter-bench`: built here, run here, their answers given types."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from lab.progress import run_logged, step
from lab.workspace import LOGS, ROOT

_SIDECAR = ROOT / "limiter-sidecar"
PROGRAM = _SIDECAR / "target" / "release" / "limiter-bench"

Pace = dict[str, Any]
Address = dict[str, str]  # {"unix": path} or {"tcp": "host:port"}
CLOSED = {"closed": {"in_flight": 16}}


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts and latencies (in microseconds) over some of the calls. `lost` calls were never answered."""

    calls: int
    allowed: int
    refused: int
    lost: int
    p50_us: float
    p90_us: float
    p99_us: float
    p999_us: float
    max_us: float

    @classmethod
    def of(cls, found: dict[str, Any]) -> Self:
        """The summary from its JSON."""
        return cls(**{name: found[name] for name in Summary.__slots__})


@dataclass(frozen=True, slots=True)
class Report:
    """What one run of the generator measured: over all calls, and over those that are reported `apart` too."""

    all: Summary
    apart: Summary
    per_s: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """The report from the generator's output. Raises RuntimeError when calls failed: such figures mean nothing."""
        found = json.loads(text)
        if found["failed"]:
            raise RuntimeError(f"{found['failed']} of {found['calls']} calls failed: {found['first_failure']}")
        return cls(Summary.of(found), Summary.of(found["apart"]), found["per_s"])


def build() -> None:
    """Build the crate, optimised. Raises CommandFailedError with the compiler's words."""
    with step("Build the load generator (half a minute the first time)"):
        command = ["cargo", "build", "--release", "-p", "limiter-bench"]
        run_logged(command, log=LOGS / "bench" / "build.log", cwd=_SIDECAR)


def echo_command(listen: Address) -> list[str]:
    """How to start the echo."""
    return [str(PROGRAM), "echo", json.dumps({"listen": listen})]


def drive(address: Address, target: dict[str, Any], pace: Pace, *, connections: int, seconds: float) -> Report:
    """Run the generator for so long. All of it is measured: warm up with a run of its own."""
    load = {
        "address": address, "connections": connections, "pace": pace, "warmup_s": 0.0, "seconds": seconds,
        "target": target,
    }  # fmt: skip
    return Report.parse(_run("load", json.dumps(load)))


def open_loop(per_s: int) -> dict[str, Any]:
    """Calls on a schedule; latencies count from the scheduled time."""
    return {"open": {"per_s": per_s}}


def request(host: str, key: str, *, apart: bool = False) -> dict[str, Any]:
    """One request as a gateway sees it: an API key, and the headers that browsers send."""
    headers = [
        ["accept", "application/json"], ["accept-encoding", "gzip, br"], ["user-agent", "client/1.0 (linux; x86_64)"],
        ["x-forwarded-proto", "https"], ["x-request-id", "7a2f4c9e-55d1-4c1c-9f0a-0c1e6a6f9d11"],
        ["x-weir-client-ip", "192.0.2.10"], ["x-api-key", key],
    ]  # fmt: skip
    return {"method": "GET", "host": host, "path": "/v1/orders?page=2", "headers": headers, "apart": apart}


def checks(requests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """ext_authz calls as a gateway makes them, one for each of these requests in turn."""
    return {"grpc": {"requests": list(requests)}}


def through_envoy(requests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The requests themselves, sent as gRPC, so that Envoy speaks HTTP/2 with the upstream too."""
    grpc = [["content-type", "application/grpc"], ["te", "trailers"]]
    sent = [
        {**each, "method": "POST", "headers": [*each["headers"][:3], each["headers"][-1], *grpc]} for each in requests
    ]
    return {"http": {"requests": sent}}


def counted(calls: int, *, in_flight: int) -> Pace:
    """So many calls, however long they take."""
    return {"counted": {"in_flight": in_flight, "calls": calls}}


def commands(calls: Sequence[Sequence[str | bytes]]) -> dict[str, Any]:
    """Commands for a store."""
    return {"script": {"commands": [[_bytes(argument).hex() for argument in call] for call in calls]}}


def _bytes(argument: str | bytes) -> bytes:
    return argument.encode() if isinstance(argument, str) else argument


def _run(command: str, configuration: str) -> str:
    # On standard input: a thousand requests are more than a command line may hold.
    done = subprocess.run(
        [str(PROGRAM), command, "-"], input=configuration, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{PROGRAM.name} {command} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout
