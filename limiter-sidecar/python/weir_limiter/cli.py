# SPDX-License-Identifier: Apache-2.0
"""The program `weir-limiter`: serve, check, explain.

Owns the command line and what is printed. Exit status: 0 = done, 1 = the document or the request is wrong,
2 = the command line or a setting is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from weir_limiter import _core, config, lifecycle

EXIT_REFUSED: Final = 1
_MODE_HEADER: Final = "mode-header"  # the one flag that is a switch


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        match options.command:
            case "serve":
                return _serve(options)
            case "check":
                print(_core.check(_read(options.file)))
            case "explain":
                print(_core.explain(_read(options.file), _read(options.request)))
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}", lifecycle.EXIT_USAGE)
    except ValueError as error:
        return _fail(str(error), EXIT_REFUSED)
    return lifecycle.EXIT_OK


def _serve(options: argparse.Namespace) -> int:
    given = {flag.name: getattr(options, flag.name) for flag in config.FLAGS}
    try:
        settings = config.read(given, os.environ)
    except config.SettingsError as error:
        return _fail("\n".join(error.problems), lifecycle.EXIT_USAGE)
    return lifecycle.serve(settings)


class _Version(argparse.Action):
    """Prints the version. What knows it is imported only here: it would be a tenth of an idle sidecar's memory."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415

        print(f"weir-limiter {version('weir-limiter')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="weir-limiter", description="Decides for Envoy which requests pass.")
    parser.add_argument("--version", action=_Version, help="print the version")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser(
        "serve",
        help="decide requests until SIGTERM",
        description="Serves Envoy's external authorization API.",
        epilog=f"Every flag is also an environment variable: --store-deadline is {config.ENV_PREFIX}STORE_DEADLINE.",
        allow_abbrev=False,
    )
    for flag in config.FLAGS:
        _add(serve, flag)
    check = commands.add_parser("check", help="say whether a ruleset document would be accepted")
    check.add_argument("file", metavar="FILE", help="the document, or - for standard input")
    explain = commands.add_parser("explain", help="say which rules match a request, and which limits they apply")
    explain.add_argument("file", metavar="FILE", help="the ruleset document")
    explain.add_argument(
        "request",
        metavar="REQUEST",
        help="JSON with method, host, path, headers, clientIP, principal and claims; - for standard input",
    )
    return parser


def _add(parser: argparse.ArgumentParser, flag: config.Flag) -> None:
    default = "" if flag.default is None else f" (default: {flag.default})"
    text = (flag.help + default).replace("%", "%%")
    if flag.name == _MODE_HEADER:
        parser.add_argument(f"--{flag.name}", dest=flag.name, action="store_const", const="true", help=text)
        parser.add_argument(f"--no-{flag.name}", dest=flag.name, action="store_const", const="false", help="do not")
    else:
        parser.add_argument(f"--{flag.name}", dest=flag.name, metavar=flag.metavar, help=text)


def _read(name: str) -> bytes:
    return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()


def _fail(message: str, status: int) -> int:
    for line in message.splitlines():
        print(f"weir-limiter: {line}", file=sys.stderr)
    return status
