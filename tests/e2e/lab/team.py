# SPDX-License-Identifier: Apache-2.0
"""A team that uses Weir: its namespace, the host it may limit, and what its people do with kubectl and with HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.client import Answer, Client
from lab.environment import Environment
from lab.waiting import eventually

LIVE_S = 15.0  # within which an edit is Ready everywhere also on a machine that builds things meanwhile


@dataclass(frozen=True, slots=True)
class Team:
    """A namespace and a host in an environment."""

    environment: Environment
    namespace: str
    host: str

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002
        """Run kubectl in the team's namespace. Raises KubectlError with what the API server refused."""
        return self.environment.cluster.kubectl("-n", self.namespace, *arguments, input=input)

    def policy(self, name: str = "limits", **spec: Any) -> str:
        """A RateLimitPolicy for the team's host, enforced, as JSON; `spec` replaces or adds fields."""
        whole = {"gateway": "edge", "mode": "Enforce", "match": {"hosts": [self.host]}, **spec}
        return self._manifest("RateLimitPolicy", name, whole)

    def override(self, name: str = "exception", **spec: Any) -> str:
        """A RateLimitOverride of the policy `limits`, as JSON."""
        return self._manifest("RateLimitOverride", name, {"policyRef": {"name": "limits"}, **spec})

    def apply(self, *manifests: str) -> None:
        """`kubectl apply`, and nothing more; the word HOST stands for the team's host."""
        for manifest in manifests:
            self.kubectl("apply", "-f", "-", input=manifest.replace("HOST", self.host))

    def apply_ready(self, *manifests: str) -> None:
        """Apply, and wait until everything in the namespace is Ready at its present generation."""
        self.apply(*manifests)
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until everything in the namespace is Ready at its present generation."""
        eventually(self._settled, LIVE_S, what=f"everything in {self.namespace} is Ready")

    def get(self, kind: str, name: str) -> Any:
        """One object as JSON, with all that the API server keeps of it."""
        return json.loads(self.kubectl("get", kind, name, "-o", "json", "--show-managed-fields"))

    def condition(self, kind: str, name: str, condition: str) -> dict[str, Any]:
        """A condition of an object, judged for its present generation. Raises AssertionError while it is not."""
        found = self.get(kind, name)
        conditions = {entry["type"]: entry for entry in found.get("status", {}).get("conditions", [])}
        assert condition in conditions, f"{kind} {name} has no condition {condition} yet"
        seen: dict[str, Any] = conditions[condition]
        assert seen.get("observedGeneration") == found["metadata"]["generation"], f"{seen} is of an older generation"
        return seen

    def connect(self, gateway: int = 0, *, source: str | None = None) -> Client:
        """A keep-alive connection to one of the Envoys."""
        return Client(self.environment.urls[gateway], source=source)

    def send(
        self,
        path: str = "/",
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        gateway: int = 0,
        source: str | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """One request for the team's host, on a connection of its own."""
        with self.connect(gateway, source=source) as client:
            return client.send(method, path, host=self.host, headers=headers, body=body)

    def statuses(self, count: int, path: str = "/", *, headers: Mapping[str, str] | None = None) -> list[int]:
        """The statuses of `count` requests, one after the other, to the Envoys in turn."""
        clients = [self.connect(number) for number in range(len(self.environment.urls))]
        try:
            turn = [clients[number % len(clients)] for number in range(count)]
            return [client.send("GET", path, host=self.host, headers=headers).status for client in turn]
        finally:
            for client in clients:
                client.close()

    def rules(self) -> list[dict[str, Any]]:
        """What all limiters count for the team's rules, one entry per limiter and rule."""
        documents = [limiter.status() for limiter in self.environment.limiters]
        mine = f"{self.namespace}/"
        return [rule for document in documents for rule in document["rules"] if rule["policy"].startswith(mine)]

    def leave(self) -> None:
        """Delete everything of the team's, and wait until no limiter knows of it."""
        self.kubectl("delete", "rlpol,rlovr", "--all")
        eventually(lambda: not self.rules(), LIVE_S, what=f"no limiter knows a rule of {self.namespace}")

    def _manifest(self, kind: str, name: str, spec: dict[str, Any]) -> str:
        metadata = {"name": name, "namespace": self.namespace}
        return json.dumps({"apiVersion": "weir.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})

    def _settled(self) -> bool:
        found = json.loads(self.kubectl("get", "rlpol,rlovr", "-o", "json"))["items"]
        return all(_ready(item) for item in found)


def _ready(item: dict[str, Any]) -> bool:
    generation, status = item["metadata"]["generation"], item.get("status", {})
    ready = [entry for entry in status.get("conditions", []) if entry["type"] == "Ready"]
    return bool(
        status.get("observedGeneration") == generation
        and ready
        and ready[0]["status"] == "True"
        and ready[0]["observedGeneration"] == generation
    )
