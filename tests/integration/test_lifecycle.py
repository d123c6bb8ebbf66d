# SPDX-License-Identifier: Apache-2.0
"""Start, refusal to start, draining, the end; and the program's other commands."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.store import Store
from lab.waiting import eventually
from rig.documents import document, limit, policy, rule, single
from rig.envoy import Envoy
from rig.sidecar import HASH_KEY, PROGRAM, Sidecar


def run(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [str(PROGRAM), *arguments], input=stdin, capture_output=True, timeout=30, check=False, env=environment
    )


async def test_sigterm_lets_calls_under_way_finish_and_ends_in_good_order(
    store: Store, start_sidecar: Callable[..., Sidecar]
) -> None:
    sidecar = start_sidecar(store.url)
    sidecar.wait_store("Up")
    sidecar.publish(single(limit=limit(1_000_000)))
    async with Envoy.beside(sidecar.socket) as envoy:
        await envoy.key("warm")
        calls = [asyncio.ensure_future(envoy.key("k")) for _ in range(200)]
        await asyncio.sleep(0)
        sidecar.part.signal(signal.SIGTERM)
        answers = await asyncio.gather(*calls, return_exceptions=True)
        finished = [answer for answer in answers if not isinstance(answer, BaseException)]
        assert all(answer.allowed for answer in finished)
    eventually(lambda: not sidecar.part.alive, 10)
    assert not sidecar.socket.exists()
    assert "panic" not in sidecar.log()


@pytest.mark.requirement("R24")
def test_a_sidecar_that_was_stopped_for_a_while_goes_on(sidecar: Sidecar) -> None:
    """D37: frozen for longer than its main thread waits for a signal at a time, as by a debugger or a paused node."""
    frozen_until = time.monotonic() + 1.5
    sidecar.part.pause()
    eventually(lambda: time.monotonic() > frozen_until, within_s=5)
    sidecar.part.resume()
    eventually(lambda: sidecar.get("/healthz")[0] == 200, within_s=5)
    look_again = time.monotonic() + 1.5
    eventually(lambda: time.monotonic() > look_again, within_s=5)
    assert sidecar.part.alive


def test_the_socket_is_for_owner_and_group(sidecar: Sidecar) -> None:
    assert stat.S_IMODE(sidecar.socket.stat().st_mode) == 0o660


def test_a_socket_that_a_crash_left_is_taken_over(store: Store, start_sidecar: Callable[..., Sidecar]) -> None:
    sidecar = start_sidecar(store.url)
    sidecar.part.kill()
    assert sidecar.socket.exists()
    sidecar.restart()
    assert sidecar.get("/healthz")[0] == 200


def test_a_second_sidecar_on_the_same_socket_is_refused(sidecar: Sidecar, tmp_path: Path) -> None:
    second = run(
        "serve", "--gateway", "edge", "--listen", f"unix:{sidecar.socket}", "--admin", "127.0.0.1:0",
        "--rules-dir", str(tmp_path), WEIR_LIMITER_STORE=sidecar.store_url, WEIR_LIMITER_HASH_KEY=HASH_KEY,
    )  # fmt: skip
    assert second.returncode == 2
    assert b"another process listens there" in second.stderr
    assert sidecar.get("/healthz")[0] == 200


def test_all_wrong_settings_are_named_at_once_without_secrets() -> None:
    wrong = run(
        "serve", "--listen", "/run/x.sock", "--admin", "localhost:9090", "--store", "http://:hunter2@host",
        "--store-deadline", "5", "--max-held", "many", "--threads", "0", "--rules-configmap", "edge-rules-0",
        "--log-level", "loud",
        WEIR_LIMITER_HASH_KEY="too-short-hunter3", WEIR_LIMITER_DRAIN="soon",
    )  # fmt: skip
    assert wrong.returncode == 2
    said = wrong.stderr.decode()
    for name in ("--gateway", "--listen", "--admin", "--store ", "--store-deadline", "--max-held", "--threads",
                 "--rules-configmap",
                 "--log-level", "WEIR_LIMITER_DRAIN", "WEIR_LIMITER_HASH_KEY"):  # fmt: skip
        assert f"weir-limiter: {name}" in said, said
    assert "hunter" not in said


def test_every_flag_is_also_a_variable(store: Store, start_sidecar: Callable[..., Sidecar], tmp_path: Path) -> None:
    url = tmp_path / "store-url"
    url.write_text(store.url + "\n")
    key = tmp_path / "hash-key"
    key.write_bytes(b"k" * 32)
    env = {
        "WEIR_LIMITER_STORE_FILE": str(url), "WEIR_LIMITER_HASH_KEY_FILE": str(key), "WEIR_LIMITER_LOG_FORMAT": "json",
        "WEIR_LIMITER_MODE_HEADER": "false",
    }  # fmt: skip
    sidecar = start_sidecar(store.url, env=env)
    assert [json.loads(line) for line in sidecar.log().splitlines()]


def test_check_accepts_a_good_document_and_names_the_path_of_what_is_wrong(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_bytes(document(policy(rule())))
    bad.write_bytes(document(policy(rule(limit=limit(0, burst=1)))))
    assert run("check", str(good)).returncode == 0
    refused = run("check", str(bad))
    assert refused.returncode == 1
    assert b"policies[0].rules[0].limit" in refused.stderr
    missing = run("check", str(tmp_path / "none.json"))
    assert (missing.returncode, b"No such file" in missing.stderr) == (2, True)


def test_explain_says_which_rule_matches_and_shows_no_value(tmp_path: Path) -> None:
    ruleset = tmp_path / "ruleset.json"
    ruleset.write_bytes(document(policy(rule())))
    request = {"method": "GET", "host": "api.example.com", "path": "/v1", "headers": {"x-api-key": "sk-secret"}}
    explained = run("explain", str(ruleset), "-", stdin=json.dumps(request).encode())
    assert explained.returncode == 0, explained.stderr
    assert b"burst" in explained.stdout
    assert b"sk-secret" not in explained.stdout


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_are_there(flag: str) -> None:
    told = run(flag)
    assert told.returncode == 0
    assert b"weir-limiter" in told.stdout


def test_a_sidecar_is_idle_in_25_megabytes(sidecar: Sidecar) -> None:
    """With Python, connected to the store, with a ruleset in force."""
    sidecar.publish(single())
    assert sidecar.resident_bytes() <= 25_000_000
