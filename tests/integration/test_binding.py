# SPDX-License-Identifier: Apache-2.0
"""The compiled module, used from Python without the program around it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab.processes import free_port
from lab.waiting import eventually
from rig.documents import document, policy, revision_of, rule, single
from rig.sidecar import HASH_KEY, in_process
from weir_limiter import _core
from weir_limiter.config import Settings

LUA = Path(__file__).resolve().parents[2] / "lua"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return in_process(tmp_path / "s.sock", f"redis://127.0.0.1:{free_port()}")


@pytest.fixture
def server(settings: Settings) -> Iterator[_core.Server]:
    server = _core.Server(settings)
    server.start()
    yield server
    server.stop(1.0)


def test_a_pushed_document_comes_into_force_once(server: _core.Server) -> None:
    assert (server.stats().ready, server.stats().revision) == (False, 0)
    older, newer = single(), single()
    server.apply(newer)
    server.apply(newer)
    eventually(lambda: server.stats().ready, 20, what="it has tried the store, and is ready without it")
    assert server.stats().revision == revision_of(newer)
    with pytest.raises(_core.RulesetError, match="is older than"):
        server.apply(older)


def test_a_bad_document_is_refused_with_the_path_of_what_is_wrong(server: _core.Server) -> None:
    with pytest.raises(_core.RulesetError, match=r"policies\[0\].rules\[0\]"):
        server.apply(document(policy(rule(mode="Off"))))


def test_a_stopped_server_is_neither_ready_nor_alive(settings: Settings) -> None:
    server = _core.Server(settings)
    server.start()
    server.apply(single())
    eventually(lambda: server.stats().alive, 5)
    server.stop(1.0)
    assert (server.stats().ready, server.stats().alive) == (False, False)
    server.stop(1.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"listen": "/run/x.sock"}, "listen"),
        ({"admin": "localhost:1"}, "admin"),
        ({"store": "http://:hunter2@host"}, "store"),
        ({"hash_key": b"short"}, "hash-key"),
        ({"rules_configmap": "no-namespace"}, "rules-configmap"),
        ({"state_dir": Path("/proc/nowhere")}, "state-dir"),
        ({"log_level": "loud"}, "log-level"),
    ],
)
def test_a_wrong_setting_is_a_config_error_that_names_it(
    settings: Settings, change: dict[str, object], says: str
) -> None:
    with pytest.raises(_core.ConfigError, match=says) as refused:
        _core.Server(replace(settings, **change))
    assert "hunter2" not in str(refused.value)


def test_the_embedded_scripts_are_the_repositorys() -> None:
    files = {name: hashlib.sha1((LUA / f"{name}.lua").read_bytes()).hexdigest() for name in _core.SCRIPTS}  # noqa: S324
    assert files == _core.SCRIPTS


def test_settings_do_not_show_their_secrets(settings: Settings) -> None:
    shown = repr(replace(settings, store="redis://:hunter2@host"))
    assert "hunter2" not in shown
    assert HASH_KEY not in shown
