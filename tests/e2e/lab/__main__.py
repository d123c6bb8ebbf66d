# SPDX-License-Identifier: Apache-2.0
"""`python -m lab demo|up|revive|down|doctor`: what `make` calls. Reads arguments, turns failures into messages."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from lab import toolbox
from lab.progress import CommandFailedError, say
from lab.workspace import RUN

_INTERRUPTED = 130  # what a shell makes of Ctrl-C


def demo(_arguments: argparse.Namespace) -> int:
    """The main job, shown on real parts, with a verdict."""
    from lab import demo as show  # noqa: PLC0415 - needs the packages of .venv, which `doctor` does without

    toolbox.require()
    return show.run()


def up(arguments: argparse.Namespace) -> int:
    """The same environment, left running."""
    from lab.environment import Environment  # noqa: PLC0415
    from lab.layout import Layout, StoreKind  # noqa: PLC0415

    if arguments.store not in set(StoreKind):
        say(f"STORE={arguments.store} is not known; it is one of {', '.join(StoreKind)}.")
        return 2
    toolbox.require()
    environment = Environment("up", Layout(pairs=arguments.gateways, store=StoreKind(arguments.store)))
    if environment.state.running:
        say("An environment is already up: `. .weir/env` uses it, `make down` ends it.")
        return 1
    environment.start()
    environment.write_variables(RUN / "env")
    say("\nReady. In a shell: . .weir/env")
    for name, value in environment.variables().items():
        say(f"  {name}={value}")
    say("Try: kubectl apply -f examples/02-orders-enforce.yaml, then kubectl get rlpol -A, then")
    say("  curl -i -H 'Host: api.example.com' -H 'x-api-key: me' ${WEIR_GATEWAY_URLS%% *}/v1/orders")
    say("Logs: .weir/logs/up. `make revive` starts again what you kill; `make down` ends everything.")
    return 0


def down(arguments: argparse.Namespace) -> int:
    """End exactly what `up` started, or what another lab left when it was killed."""
    from lab.state import State  # noqa: PLC0415

    ended = State(RUN / arguments.lab).stop()
    if arguments.lab == "up":
        (RUN / "env").unlink(missing_ok=True)
    say(f"Ended: {', '.join(ended)}." if ended else "Nothing was up.")
    return 0


def revive(_arguments: argparse.Namespace) -> int:
    """Start again, as it was, what of `up` has been killed."""
    from lab.state import State  # noqa: PLC0415

    revived = State(RUN / "up").revive()
    say(f"Started again: {', '.join(revived)}." if revived else "Nothing of it has ended.")
    return 0


def doctor(_arguments: argparse.Namespace) -> int:
    """What this machine has and lacks."""
    findings = toolbox.examine()
    for found in findings:
        say(f"{'ok     ' if found.good else 'MISSING'}  {found.tool:<11} {found.note}")
    return 0 if all(found.good for found in findings) else 1


def main() -> int:
    """Parse the command line and run one command."""
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for command in (demo, up, revive, down, doctor):
        name = command.__name__
        sub = commands.add_parser(name, help=command.__doc__)
        sub.set_defaults(command=command)
        if name == "up":
            sub.add_argument("--gateways", type=int, default=2, metavar="N", help="Envoy and sidecar pairs")
            sub.add_argument("--store", default="single", help="single or cluster")
        if name == "down":
            sub.add_argument("lab", nargs="?", default="up", choices=["up", "demo", "test"])
    arguments = parser.parse_args()
    for ending in (signal.SIGINT, signal.SIGTERM):  # `kill` tears down as Ctrl-C does, also for a job in the background
        signal.signal(ending, signal.default_int_handler)
    try:
        return int(arguments.command(arguments))
    except KeyboardInterrupt:
        say("\nInterrupted; everything that was started has been ended.")
        return _INTERRUPTED
    except (toolbox.MissingToolError, CommandFailedError) as failure:
        say(f"\n{failure}")
        return 1
    except RuntimeError as failure:  # every error of the lab: a part, kubectl, Helm, a bootstrap
        say(f"\n{type(failure).__name__}: {failure}")
        return 1


if __name__ == "__main__":
    os.chdir(RUN.parent)
    sys.exit(main())
