# SPDX-License-Identifier: Apache-2.0
"""Everything together: a cluster with Weir's chart, store, sidecars, operator, Envoys and the upstream behind them.

Used alike by `make demo`, `make up` and the tests. It brings the parts up in the order in which they need each other,
and takes them down in the opposite order whatever happens. Nothing here looks inside Weir.
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import signal
import tempfile
from pathlib import Path

import yaml

from lab import envoy as envoys
from lab import helm, programs, toolbox
from lab import store as stores
from lab.cluster import Cluster, KubectlError, bring_up
from lab.layout import (
    CLOSED_CONFIGMAP,
    ENVOY_CONFIGMAP,
    GATEWAY,
    RULES_CONFIGMAP,
    SYSTEM_NAMESPACE,
    Layout,
    StoreKind,
    chart_values,
)
from lab.processes import Part, free_port
from lab.programs import Command, Limiter, LimiterOptions, Program
from lab.progress import step
from lab.state import State
from lab.waiting import eventually
from lab.workspace import LOGS, ROOT, RUN

_CHART = ROOT / "charts" / "weir"
_DISCOVERED_S = 30.0  # a new kind is in the discovery documents about a second after it is established
_RENDERED_S = 30.0  # from the operator's start to its first ConfigMaps; about 2 s on an idle machine


class InUseError(RuntimeError):
    """Two labs of one name would share a folder and logs."""


class Environment:
    """One lab under a name (`up`, `demo`, `test`), with a folder and logs of its own."""

    cluster: Cluster
    store: stores.Store | stores.StoreCluster
    upstream: Program
    operator: Program
    kubelet: Program
    limiters: list[Limiter]
    envoys: list[envoys.Envoy]

    def __init__(self, name: str, layout: Layout | None = None) -> None:
        self.layout = layout or Layout()
        self.folder = RUN / name
        self.logs = LOGS / name
        self.state = State(self.folder)
        self.limiters, self.envoys = [], []
        self._ports = [free_port() for _ in range(self.layout.pairs)]
        self._upstream_port, self._webhook_port = free_port(), free_port()
        self._manifests = self.folder / "manifests"

    def start(self) -> None:
        """Bring everything up. Whatever goes wrong, also Ctrl-C, what had started is ended before this raises."""
        if self.state.in_use:
            raise InUseError(f"another process runs the lab `{self.folder.name}` right now; wait for it to end")
        self.state.stop()  # what an earlier run of this name left when it was killed
        shutil.rmtree(self.logs, ignore_errors=True)
        self._manifests.mkdir(parents=True)
        # a Unix socket's path may have 108 bytes; a repository's folder may be deeper than that
        self.sockets = Path(tempfile.mkdtemp(prefix="weir-"))
        try:
            envoy_program = toolbox.envoy()
            self.cluster = bring_up(self.folder / "cluster", self.logs)
            self.save()
            self._install_chart()
            with step(f"Start the store, the upstream, {self.layout.pairs} limiters and the operator"):
                self._start_weir()
            with step(f"Start {self.layout.pairs} Envoys ({envoy_program.name} {toolbox.ENVOY_VERSION})"):
                self._start_envoys()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Take everything down that `start` brought up, as far as it came. A second Ctrl-C does not stop that."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.save()
            self.state.stop()
        finally:
            signal.signal(signal.SIGINT, before)

    def save(self) -> None:
        """Write down what runs now; after a restart of a part, this makes `make down` find the new process."""
        self.state.remember(self._commands, getattr(self, "cluster", None), self.sockets, self._manifests)

    def revive(self) -> None:
        """Start what a test has killed, wait until it is ready, and remember the new processes."""
        dead = [program for program in self._programs if not program.part.alive]
        if not self.store.alive:
            self.store.restart()
        for program in dead:
            program.restart()
        for program in dead:
            program.wait_ready()
        self.save()

    @property
    def parts(self) -> list[Part]:
        """The processes in start order, without the cluster's own."""
        return list(self._commands)

    @property
    def _commands(self) -> dict[Part, Command]:
        commands = {program.part: program.command for program in self._programs}
        if "store" not in self.__dict__:
            return commands
        return {**{part: Command(argv) for part, argv in self.store.commands.items()}, **commands}

    @property
    def _programs(self) -> list[Program]:
        named = [self.__dict__[name] for name in ("upstream", "operator", "kubelet") if name in self.__dict__]
        limiters = [limiter.program for limiter in self.limiters]
        return [*named, *limiters, *(envoy.program for envoy in self.envoys)]

    @property
    def urls(self) -> list[str]:
        """The gateways as clients reach them, one URL per Envoy."""
        return [envoy.url for envoy in self.envoys]

    def variables(self) -> dict[str, str]:
        """What `.weir/env` holds."""
        return {
            "KUBECONFIG": str(self.cluster.kubeconfig),
            "WEIR_GATEWAY": GATEWAY,
            "WEIR_GATEWAY_URLS": " ".join(self.urls),
            "WEIR_LIMITER_URLS": " ".join(limiter.url for limiter in self.limiters),
            "WEIR_ENVOY_ADMIN_URLS": " ".join(envoy.admin_url for envoy in self.envoys),
            "WEIR_REDIS_URL": self.store.url,
            "WEIR_NAMESPACES": " ".join(self.layout.namespaces),
        }

    def write_variables(self, path: Path) -> None:
        """Write `variables` as shell assignments, to be read with `. .weir/env`."""
        path.write_text("".join(f"export {name}={shlex.quote(value)}\n" for name, value in self.variables().items()))

    def _install_chart(self) -> None:
        ports = {"upstream_port": self._upstream_port, "webhook_port": self._webhook_port}
        values = chart_values(self.layout, admin_ports=self._ports, **ports)
        # what Helm finds out by itself where it installs and does not only render
        stamps = self.cluster.serves("admissionregistration.k8s.io/v1", "mutatingadmissionpolicies")
        values["admission"] = {"stampAuthors": "Always" if stamps else "Never"}
        with step("Render charts/weir with Helm and apply it"):
            names = [SYSTEM_NAMESPACE, *self.layout.namespaces]
            self._refuse_what_is_not_ours(names)
            chart = helm.render(_CHART, values, release="weir", namespace=SYSTEM_NAMESPACE)
            (self._manifests / "0-namespaces.yaml").write_text("---\n".join(_namespace(name) for name in names))
            (self._manifests / "1-chart.yaml").write_text(chart)
            for manifest in sorted(self._manifests.glob("*.yaml")):
                self.cluster.kubectl("apply", "--server-side", "-f", str(manifest))
            self.cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
            eventually(self._discovered, _DISCOVERED_S, what="the API server shows the new kinds to kubectl")

    def _discovered(self) -> bool:
        """Whether kubectl finds the kinds, and their document is made.

        A new server makes its OpenAPI v2 document when it is first asked, in seconds, and kubectl asks before an edit.
        A cluster that has been up for a minute has it; no time measured in this lab should contain it.
        """
        try:
            return bool(self.cluster.kubectl("explain", "rlpol", "--output=plaintext-openapiv2"))
        except KubectlError:
            return False

    def _refuse_what_is_not_ours(self, namespaces: list[str]) -> None:
        """Taking the lab down removes CRDs and namespaces, with all in them: never those that were there before it."""
        if self.cluster.disposable:
            return
        wanted = ["crd/ratelimitpolicies.weir.dev", *(f"namespace/{name}" for name in namespaces)]
        found = self.cluster.kubectl("get", *wanted, "--ignore-not-found", "-o", "name").split()
        if found:
            raise KubectlError(f"the cluster of WEIR_KUBECONFIG already has {', '.join(found)}; name another one")

    def _start_weir(self) -> None:
        if self.layout.store is StoreKind.CLUSTER:
            self.store = stores.start_cluster(self.logs, replicas=1)
        else:
            self.store = stores.start_store(self.logs, name="store")
        self.upstream = programs.start_upstream(self._upstream_port, log=self.logs / "upstream.log")
        self.save()
        hash_key = self.folder / "hash-key"
        hash_key.touch(mode=0o600)
        hash_key.write_text(secrets.token_hex(32))
        kubeconfig = self.cluster.token_kubeconfig(SYSTEM_NAMESPACE, "weir-limiter", self.folder)
        rules = f"{SYSTEM_NAMESPACE}/{RULES_CONFIGMAP}"
        deadline = ("--store-deadline", f"{self.layout.patience.store_ms}ms")
        options = LimiterOptions(GATEWAY, rules, self.store.url, kubeconfig, hash_key, deadline)
        for number, port in enumerate(self._ports):
            log = self.logs / f"limiter-{number}.log"
            self.limiters.append(
                programs.start_limiter(number, options, admin_port=port, sockets=self.sockets, run=self.folder, log=log)
            )
            self.save()
        settings = self.folder / "settings.yaml"
        settings.write_text(self.cluster.get("configmap", "weir-settings", SYSTEM_NAMESPACE)["data"]["settings.yaml"])
        kubeconfig = self.cluster.token_kubeconfig(SYSTEM_NAMESPACE, "weir-operator", self.folder)
        self.operator = programs.start_operator(
            settings,
            kubeconfig,
            log=self.logs / "operator.log",
            webhook=self._webhook_port if self.layout.reviewed else 0,
        )
        self.save()
        for program in [self.upstream, self.operator, *(limiter.program for limiter in self.limiters)]:
            program.wait_ready()

    def _start_envoys(self) -> None:
        closed = self.folder / "closed"
        self.kubelet = programs.start_kubelet(
            self.cluster.kubectl_program,
            self.cluster.kubeconfig,
            configmap=f"{SYSTEM_NAMESPACE}/{CLOSED_CONFIGMAP}",
            folder=closed,
            log=self.logs / "kubelet.log",
        )
        self.save()
        self.kubelet.wait_ready()
        bootstrap = eventually(self._rendered_bootstrap, _RENDERED_S, what="the operator has rendered a bootstrap")
        for number, limiter in enumerate(self.limiters):
            name = f"envoy-{number}"
            log = self.logs / f"{name}.log"
            files = {"socket": limiter.socket, "closed": closed, "folder": self.folder, "log": log}
            self.envoys.append(envoys.start(name, bootstrap, **files))
            self.save()
        for envoy in self.envoys:
            envoy.program.wait_ready()

    def _rendered_bootstrap(self) -> str:
        try:
            return str(self.cluster.get("configmap", ENVOY_CONFIGMAP, SYSTEM_NAMESPACE)["data"]["bootstrap.yaml"])
        except KubectlError:
            return ""


def _namespace(name: str) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
