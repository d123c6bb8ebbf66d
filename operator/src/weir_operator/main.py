# SPDX-License-Identifier: Apache-2.0
"""The command `weir-operator` and the composition root: arguments in, the running operator out.

Owns the process: arguments, logging, signals, exit status. Must not hold any behaviour of the operator.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import logging
import os
import signal
import socket
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

import aiohttp

from weir_operator.endpoints import Address, Hook, health_routes, metrics_routes, parse_address, serve
from weir_operator.logs import set_up_logging
from weir_operator.metrics import CONTENT_TYPE, Metrics
from weir_operator.reconcile.lease import Identity
from weir_operator.runtime import Candidate, Operator
from weir_operator.settings import InvalidSettings, Settings, read_settings

EXIT_INVALID = 2  # as for a mistake on the command line: starting again with the same input cannot help

logger = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        settings = read_settings(options.settings)
    except InvalidSettings as error:
        print(*error.mistakes, sep="\n", file=sys.stderr)
        return EXIT_INVALID
    if options.command == "check-settings":
        print(f"{options.settings}: {len(settings.gateways)} gateway(s), no mistakes")
        return 0
    set_up_logging(options.log_format, options.log_level)
    return asyncio.run(_run(settings, options))


async def _run(settings: Settings, options: argparse.Namespace) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics = Metrics()
    async with aiohttp.ClientSession() as session:
        operator = Operator(settings, metrics, session, _candidate(options), _hook(options))
        runners = []
        try:
            runners.append(
                await serve(options.health, health_routes(operator.complaints, operator.unready, operator.role))
            )
            runners.append(await serve(options.metrics, metrics_routes(metrics.expose, CONTENT_TYPE)))
            return await _run_until(stop, operator)
        except OSError as error:
            logger.error("cannot listen: %s", error)  # noqa: TRY400  the address says it all
            return 1
        finally:
            for runner in runners:
                await runner.cleanup()


async def _run_until(stop: asyncio.Event, operator: Operator) -> int:
    running = asyncio.create_task(operator.run(), name="operator")
    stopping = asyncio.create_task(stop.wait(), name="signal")
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        logger.info("stopping")
        running.cancel()
    stopping.cancel()
    (outcome,) = await asyncio.gather(running, return_exceptions=True)
    if isinstance(outcome, Exception):
        logger.error("ended by a fault", exc_info=outcome)
        return 1
    return 0


def _candidate(options: argparse.Namespace) -> Candidate | None:
    if options.lease is None:
        return None
    namespace, _, name = options.lease.partition("/")
    pod = options.identity or os.environ.get("POD_NAME", "")
    # A host may run two of us, so its name alone is no proof that an earlier holder of that name is dead.
    nonce = uuid.uuid4().hex[:12]
    identity = Identity(pod, nonce) if pod else Identity("", f"{socket.gethostname()}-{nonce}")
    return Candidate(namespace, name, identity)


def _hook(options: argparse.Namespace) -> Hook | None:
    if options.webhook is None:
        return None
    namespace, _, secret = options.webhook_secret.partition("/")
    return Hook(options.webhook, tuple(options.webhook_names.split(",")), namespace, secret)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="weir-operator", description="Turns RateLimitPolicy and RateLimitOverride objects into enforced limits."
    )
    parser.add_argument("--version", action="version", version=importlib.metadata.version("weir-operator"))
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="run the operator",
        description="Runs until SIGTERM. The API server is the one of KUBECONFIG, "
        "else of the pod's service account, else of ~/.kube/config.",
    )
    run.add_argument("--settings", type=Path, required=True, metavar="FILE", help="the gateways, YAML")
    run.add_argument(
        "--health",
        type=_address,
        default=Address("127.0.0.1", 8080),
        metavar="HOST:PORT",
        help="serve /healthz and /readyz here (default 127.0.0.1:8080)",
    )
    run.add_argument(
        "--metrics",
        type=_address,
        default=Address("127.0.0.1", 9100),
        metavar="HOST:PORT",
        help="serve /metrics here (default 127.0.0.1:9100)",
    )
    lease = run.add_mutually_exclusive_group()
    lease.add_argument(
        "--lease",
        type=_namespaced,
        default="weir-system/weir-operator",
        metavar="NAMESPACE/NAME",
        help="the Lease by which one of several replicas is elected to write (default weir-system/weir-operator)",
    )
    lease.add_argument(
        "--no-lease",
        dest="lease",
        action="store_const",
        const=None,
        help="write without being elected: only where nothing can start a second replica",
    )
    run.add_argument(
        "--identity",
        default="",
        metavar="NAME",
        help="this replica's name in the Lease (default POD_NAME of the environment, else the host's name); a process "
        "that is started again under its name goes on at once, so no two may bear one at the same time",
    )
    run.add_argument(
        "--webhook",
        type=_address,
        metavar="HOST:PORT",
        help="serve the validating webhook here, with TLS; without this there is none",
    )
    run.add_argument(
        "--webhook-names",
        default="weir-operator.weir-system.svc",
        metavar="NAMES",
        help="the names or addresses by which the API server reaches the webhook, with commas between "
        "(the chart's Service in weir-system unless given)",
    )
    run.add_argument(
        "--webhook-secret",
        type=_namespaced,
        default="weir-system/weir-webhook",
        metavar="NAMESPACE/NAME",
        help="the Secret in which the replicas share the webhook's certificate (default weir-system/weir-webhook)",
    )
    run.add_argument("--log-format", choices=["json", "text"], default="json", help="default json")
    run.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info", help="default info")
    check = commands.add_parser("check-settings", help="check a settings file and say all that is wrong with it")
    check.add_argument("settings", type=Path, metavar="FILE", help="the gateways, YAML")
    return parser


def _namespaced(text: str) -> str:
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAMESPACE/NAME")
    return text


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
