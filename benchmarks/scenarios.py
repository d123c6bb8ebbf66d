# SPDX-License-Identifier: Apache-2.0
"""What is put under load: the canaries, the limiter in each of its situations, an Envoy; all up at once.

Windows come in random order, so that what changes slowly on a machine falls on all alike.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import bare_script
import envoy_path
import load
import policies
import sidecars
from lab.processes import Part, spawn, stop_all
from lab.progress import say
from lab.store import Store, start_store
from lab.waiting import eventually
from lab.workspace import LOGS
from machine import on_cpus, resident_mb, two_sides
from sidecars import Sidecar
from windows import ATTEMPTS, SATURATION, Subject, Window, measure

RATES = ("400", "2400", "10000")
ECHO, SCRIPT, ONE, REFUSED, HOT, LAYERED = "echo", "script", "one rule", "90 % refused", "hot key", "layered rules"
CROWDED, RELOAD, STOPPED = "crowded", "reload", "store stopped"
WITH_FILTER, WITHOUT_FILTER = "envoy with the filter", "envoy without it"
POLICIES, OVERRIDES = 1000, 12_000  # of the crowded limiter: what a big gateway holds

POINTS = {
    **dict.fromkeys((ECHO, SCRIPT, ONE, REFUSED, HOT, LAYERED, STOPPED), (*RATES, SATURATION)),
    CROWDED: ("2400", SATURATION),
    RELOAD: ("2400",),
    **dict.fromkeys((WITH_FILTER, WITHOUT_FILTER), ("400", "2400", SATURATION)),
}
_KEYS = [f"key-{number:04}" for number in range(1000)]
_RELOADS = 2  # of one window, a second apart
_UP_S = 30.0


@dataclass(frozen=True, slots=True)
class Measured:
    """All windows of a run, and the memory of a limiter before it."""

    windows: list[Window]
    idle_mb: float


def run(folder: Path, rounds: int, seconds: float) -> Measured:
    """Bring everything up, measure every subject at every point so many times, take it down."""
    reloads = rounds * ATTEMPTS * _RELOADS  # as many as are needed when every window is repeated
    with _running(folder, reloads) as (subjects, parts, idle_mb):
        windows = []
        for number in range(rounds):
            jobs = [(subject, point) for subject in subjects for point in POINTS[subject.name]]
            random.shuffle(jobs)
            windows += [measure(subject, point, seconds, parts) for subject, point in jobs]
            say(f"  round {number + 1} of {rounds}")
    noisy = sum(not window.clean for window in windows)
    if noisy:
        say(f"  {noisy} of {len(windows)} windows were kept although others were busy: run it again on a quiet machine")
    return Measured(windows, idle_mb)


@contextmanager
def _running(folder: Path, reloads: int) -> Iterator[tuple[list[Subject], list[Part], float]]:
    folder.mkdir(parents=True)
    logs, parts = LOGS / "bench", list[Part]()
    servers, _ = two_sides()
    objects = [policies.generous(), policies.exhausted(), policies.layered()]
    crowd = [policies.generous(), *policies.varied(POLICIES)], policies.overrides(OVERRIDES, of=POLICIES)
    entries = policies.render(policies.parse(objects))
    try:
        with on_cpus(servers):
            stores = [start_store(logs, name=name) for name in ("store", "stopped-store")]
            parts += [store.part for store in stores]
            echo = folder / "echo.sock"
            parts.append(spawn("echo", load.echo_command({"unix": str(echo)}), log=logs / "echo.log"))
            limiters = [
                sidecars.start(folder / "one", entries, stores[0].url),
                sidecars.start(folder / "many", policies.render(policies.parse(*crowd)), stores[0].url),
                sidecars.start(folder / "stopped", entries, stores[1].url),
            ]
            parts += [limiter.part for limiter in limiters]
            for limiter in limiters:
                limiter.wait_ready()
            gateway = envoy_path.start(folder / "envoy", limiters[0].socket)
            parts += gateway.parts
        eventually(echo.exists, _UP_S, what="the echo listens")
        time.sleep(1.0)  # what the start needed and gave back is not idle memory
        idle_mb = resident_mb(limiters[0].part.pid)
        stores[1].pause()
        edits = policies.revisions(*crowd)
        prepared = [next(edits) for _ in range(reloads)]
        yield (
            [
                *_canaries(echo, parts[2], stores[0]),
                *_plain(limiters[0], stores[0]),
                *_special(limiters[1], limiters[2], stores[0], prepared),
                *envoy_path.subjects(
                    gateway, limiters[0].part, _requests(policies.HOST), (WITH_FILTER, WITHOUT_FILTER)
                ),
            ],
            parts,
            idle_mb,
        )
    finally:
        stop_all(parts)


def _canaries(echo: Path, part: Part, store: Store) -> list[Subject]:
    script = load.commands(bare_script.calls(store, _KEYS))
    return [
        Subject(ECHO, {"unix": str(echo)}, load.checks(_requests(policies.HOST)), 4, {"server": part}),
        Subject(SCRIPT, {"tcp": f"127.0.0.1:{store.port}"}, script, 1, {"server": store.part}),
    ]


def _plain(limiter: Sidecar, store: Store) -> list[Subject]:
    """The limiter whose rules have a host for each scenario."""
    exhausted = [load.request(policies.EXHAUSTED_HOST, key) for key in _KEYS[:9]]
    refused = [each for number in range(100) for each in (*exhausted, load.request(policies.HOST, _KEYS[number]))]
    hot = load.request(policies.HOST, "hot-key")
    # Two of five requests are the hot key's; the others are what is reported apart.
    others = [load.request(policies.HOST, key, apart=True) for key in _KEYS[:600]]
    mixed = [each for at in range(0, 600, 3) for each in (hot, others[at], others[at + 1], hot, others[at + 2])]
    targets = {
        ONE: _requests(policies.HOST),
        REFUSED: refused,
        HOT: mixed,
        LAYERED: _requests(policies.LAYERED_HOST),
    }
    return [
        Subject(name, {"unix": str(limiter.socket)}, load.checks(asked), 4, _counted(limiter, store))
        for name, asked in targets.items()
    ]


def _special(crowded: Sidecar, stopped: Sidecar, store: Store, prepared: list[dict[str, bytes]]) -> list[Subject]:
    checks = load.checks(_requests(policies.HOST))
    counted, address = _counted(crowded, store), {"unix": str(crowded.socket)}

    def reloading() -> AbstractContextManager[object]:
        now, prepared[:] = prepared[:_RELOADS], prepared[_RELOADS:]
        return crowded.reloading(now)

    return [
        Subject(CROWDED, address, checks, 4, counted),
        Subject(RELOAD, address, checks, 4, counted, during=reloading),
        Subject(STOPPED, {"unix": str(stopped.socket)}, checks, 4, {"server": stopped.part}),
    ]


def _counted(limiter: Sidecar, store: Store) -> dict[str, Part]:
    return {"server": limiter.part, "store": store.part}


def _requests(host: str) -> Sequence[dict[str, object]]:
    return [load.request(host, key) for key in _KEYS]
