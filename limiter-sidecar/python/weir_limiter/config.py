# SPDX-License-Identifier: Apache-2.0
"""The settings of `weir-limiter serve`: one table of flags, each also an environment variable, parsed once at the edge.

Owns names, defaults and forms. Must not start anything. All mistakes are collected and reported together, each with the
flag's name and what would be right; no message quotes a secret.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weir_limiter import forms

HASH_KEY_MIN_BYTES: Final = 32  # the output length of SHA-256; a shorter key would be the weakest part
ENV_PREFIX: Final = "WEIR_LIMITER_"
LOG_LEVELS: Final = ("error", "warn", "info", "debug", "trace")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a limiter needs to know. Secrets do not appear in its `repr`."""

    gateway: str
    instance: str
    listen: str  # unix:PATH or tcp:ADDRESS:PORT
    admin: str  # ADDRESS:PORT
    store: str  # a URL, perhaps with a password
    store_deadline_s: float
    threads: int
    max_held: int
    deny_cache: int
    rules_configmap: str | None  # NAMESPACE/NAME
    rules_dir: Path | None
    breakglass_dir: Path | None
    state_dir: Path | None
    jwt_namespace: str
    jwt_payload_key: str
    hash_key: bytes
    mode_header: bool
    log_level: str
    log_format: str
    drain_s: float

    def __repr__(self) -> str:
        return f"Settings(gateway={self.gateway!r}, instance={self.instance!r}, listen={self.listen!r}, …)"


class SettingsError(ValueError):
    """Settings that cannot work; `problems` has one line for each mistake."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: `--name`, or `WEIR_LIMITER_NAME` in the environment."""

    name: str
    metavar: str
    help: str
    parse: Callable[[str], Any]  # raises ValueError with what would be right
    default: str | None = None  # as it would be written; None = unset

    @property
    def variable(self) -> str:
        """The environment variable that stands for the flag."""
        return ENV_PREFIX + self.name.upper().replace("-", "_")


FLAGS: Final = (
    Flag("gateway", "NAME", "gateway whose rules are applied", forms.name),
    Flag("instance", "NAME", "this limiter's name (default: the host's name)", forms.name),
    Flag("listen", "unix:PATH|tcp:ADDRESS:PORT", "where Envoy asks", forms.listen, "unix:/run/weir/limiter.sock"),
    Flag("admin", "ADDRESS:PORT", "health, metrics and status", forms.address, "127.0.0.1:9090"),
    Flag("store", "URL", "redis[s]://, redis[s]+cluster:// or redis+unix://; better not given here", forms.store_url),
    Flag("store-file", "FILE", "file that holds the store's URL", Path),
    Flag("store-deadline", "TIME", "time that the store has for a decision", forms.duration, "5ms"),
    Flag("threads", "NUMBER", "threads that decide, each with a connection to the store", forms.threads, "1"),
    Flag("max-held", "NUMBER", "requests that may be held at once for leaky buckets", forms.count, "10000"),
    Flag("deny-cache", "NUMBER", "refusals remembered, to repeat them without the store", forms.count, "10000"),
    Flag("rules-configmap", "NAMESPACE/NAME", "ConfigMap with the rules, watched through the API", forms.configmap),
    Flag("rules-dir", "DIR", "directory where that ConfigMap is mounted", Path),
    Flag("breakglass-dir", "DIR", "directory where GATEWAY-breakglass is mounted, watched beside the rules", Path),
    Flag("state-dir", "DIR", "directory for the last good rules, kept over restarts", Path),
    Flag("jwt-namespace", "NAME", "metadata namespace of tokens", forms.non_empty, "envoy.filters.http.jwt_authn"),
    Flag("jwt-payload-key", "NAME", "key of the payload there (payload_in_metadata)", forms.non_empty, "jwt_payload"),
    Flag("hash-key-file", "FILE", "file with the key that hides subjects; or the key in WEIR_LIMITER_HASH_KEY", Path),
    Flag("mode-header", "", "tell clients with X-RateLimit-Mode when a limit is not enforced", forms.boolean, "true"),
    Flag("log-level", "LEVEL", ", ".join(LOG_LEVELS), forms.one_of(*LOG_LEVELS), "info"),
    Flag("log-format", "FORMAT", "json or text", forms.one_of("json", "text"), "text"),
    Flag("drain", "TIME", "time that calls under way have to finish at the end", forms.duration, "5s"),
)  # fmt: skip


def read(given: Mapping[str, str | None], environment: Mapping[str, str]) -> Settings:
    """Make settings of the flags as `given` on the command line (by name) and of the environment.

    A flag wins over its variable. Raises SettingsError with every mistake.
    """
    reader = _Reader(given, environment)
    values = {flag.name: reader.value(flag) for flag in FLAGS}
    store, hash_key = reader.store(values), reader.hash_key(values)
    if values["gateway"] is None:
        reader.problem("--gateway", "is required: the name of the gateway whose rules are applied")
    if not (values["rules-configmap"] or values["rules-dir"]):
        reader.problem("--rules-configmap", "or --rules-dir is required: without one there would never be rules")
    if reader.problems:
        raise SettingsError(tuple(reader.problems))
    return Settings(
        gateway=values["gateway"],
        instance=values["instance"] or os.uname().nodename,
        listen=values["listen"],
        admin=values["admin"],
        store=store,
        store_deadline_s=values["store-deadline"],
        threads=values["threads"],
        max_held=values["max-held"],
        deny_cache=values["deny-cache"],
        rules_configmap=values["rules-configmap"],
        rules_dir=values["rules-dir"],
        breakglass_dir=values["breakglass-dir"],
        state_dir=values["state-dir"],
        jwt_namespace=values["jwt-namespace"],
        jwt_payload_key=values["jwt-payload-key"],
        hash_key=hash_key,
        mode_header=values["mode-header"],
        log_level=values["log-level"],
        log_format=values["log-format"],
        drain_s=values["drain"],
    )


class _Reader:
    """Reads one value after the other and collects what is wrong."""

    def __init__(self, given: Mapping[str, str | None], environment: Mapping[str, str]) -> None:
        self._given = given
        self._environment = environment
        self.problems: list[str] = []

    def problem(self, source: str, message: str) -> None:
        self.problems.append(f"{source} {message}")

    def value(self, flag: Flag) -> Any:
        """The parsed value; None when it is unset or wrong."""
        source, text = f"--{flag.name}", self._given.get(flag.name)
        if text is None and flag.variable in self._environment:
            source, text = flag.variable, self._environment[flag.variable]
        if text is None:
            text = flag.default
        if text is None:
            return None
        try:
            return flag.parse(text)
        except ValueError as error:
            self.problem(source, str(error))
            return None

    def store(self, values: Mapping[str, Any]) -> str:
        """The store's URL, from the flag, the file or the environment."""
        if values["store"] is not None and self._given.get("store-file") is None:
            return str(values["store"])
        if values["store-file"] is not None:
            text = self._file("--store-file", values["store-file"])
            if text is None:
                return ""
            try:
                return forms.store_url(text.decode("utf-8", "replace"))
            except ValueError as error:
                self.problem("--store-file", f"holds a text that {error}")
        elif not any(problem.startswith(("--store ", ENV_PREFIX + "STORE ")) for problem in self.problems):
            self.problem("--store", f"is required (or --store-file, or {ENV_PREFIX}STORE): the URL of the store")
        return ""

    def hash_key(self, values: Mapping[str, Any]) -> bytes:
        """The key that hides subjects, from the file or the environment."""
        source = ENV_PREFIX + "HASH_KEY"
        key = _without_line_end(self._environment.get(source, "").encode())
        if values["hash-key-file"] is not None:
            source, key = "--hash-key-file", self._file("--hash-key-file", values["hash-key-file"]) or b""
            if self.problems and self.problems[-1].startswith(source):
                return b""
        if not key:
            wanted = f"at least {HASH_KEY_MIN_BYTES} secret bytes, the same for all limiters of the gateway"
            self.problem("--hash-key-file", f"is required (or {ENV_PREFIX}HASH_KEY): {wanted}")
        elif len(key) < HASH_KEY_MIN_BYTES:
            self.problem(source, f"must have at least {HASH_KEY_MIN_BYTES} bytes, not {len(key)}")
        return key

    def _file(self, source: str, path: Path) -> bytes | None:
        """The content without the line end that editors add; None when it cannot be read."""
        try:
            return _without_line_end(path.read_bytes())
        except OSError as error:
            self.problem(source, f"{path}: {error.strerror}")
            return None


def _without_line_end(text: bytes) -> bytes:
    """The text as it was meant. Limiters whose hash keys differ by a line end would count every subject apart."""
    return text.removesuffix(b"\n").removesuffix(b"\r")
