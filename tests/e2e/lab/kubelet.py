# SPDX-License-Identifier: Apache-2.0
"""The kubelet's part: a ConfigMap's keys as files of a folder, swapped all at once when it changes.

A process of its own (`python -m lab.kubelet`), so that it also serves a lab whose starter has gone. It follows the
ConfigMap by a watch: a real kubelet looks about every minute, and what happens until then is not what tests are about.
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

_AGAIN_S = 0.5  # between a watch that ended and the next
_stamps = itertools.count(time.time_ns())


def swap(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a new directory, point `..data` at it in one rename, remove the old one; as a kubelet does it."""
    folder.mkdir(parents=True, exist_ok=True)
    data, partial = folder / "..data", folder / "..data_tmp"
    fresh = folder / f"..{next(_stamps)}"
    fresh.mkdir()
    for name, content in files.items():
        (fresh / name).write_bytes(content)
    old = folder / data.readlink() if data.is_symlink() else None
    partial.symlink_to(fresh.name)
    partial.rename(data)
    for link in folder.iterdir():
        if not link.name.startswith("..") and link.name not in files:
            link.unlink()
    for name in files:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data") / name)
    if old is not None:
        for file in old.iterdir():
            file.unlink()
        old.rmdir()


class _Health(BaseHTTPRequestHandler):
    """Says whether the folder has its files."""

    folder: Path

    def do_GET(self) -> None:
        """200 once the ConfigMap has been mounted, else 503."""
        self.send_response(200 if (self.folder / "..data").exists() else 503)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


def _documents(stream: IO[str] | None) -> Iterator[Any]:
    """The JSON documents that a watch writes one after the other, each when it has come in whole."""
    decoder, text = json.JSONDecoder(), ""
    for line in stream or ():
        text += line
        if line.rstrip() != "}":  # kubectl indents all but the outermost braces
            continue
        yield decoder.decode(text)
        text = ""


def _follow(kubectl: str, namespace: str, name: str, folder: Path) -> None:
    """Mount every state of the ConfigMap until the watch ends; one that is gone stays mounted."""
    watch = [kubectl, "get", "configmap", name, "-n", namespace, "--watch", "-o", "json"]
    mounted: Any = None
    with subprocess.Popen(watch, stdout=subprocess.PIPE, text=True) as process:
        try:
            for document in _documents(process.stdout):
                data = document.get("data") or {}
                if data != mounted:
                    swap(folder, {key: value.encode() for key, value in data.items()})
                    mounted = data
        finally:
            process.terminate()


def main() -> None:
    """Follow until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--kubectl", "--namespace", "--configmap"):
        parser.add_argument(option, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # by way of every `finally`: kubectl ends with us
    _Health.folder = given.folder
    health = ThreadingHTTPServer(("127.0.0.1", given.port), _Health)
    threading.Thread(target=health.serve_forever, daemon=True).start()
    while True:
        _follow(given.kubectl, given.namespace, given.configmap, given.folder)
        time.sleep(_AGAIN_S)


if __name__ == "__main__":
    main()
