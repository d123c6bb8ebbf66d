# SPDX-License-Identifier: Apache-2.0
"""A throw-away certificate authority, made with the openssl command, and kubeconfigs with its certificates."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

_DAYS = "30"  # longer than any `make up` that somebody forgot, short enough to be worthless when it leaks


@dataclass(frozen=True, slots=True)
class Authority:
    """A folder with `ca.crt`, `ca.key` and the key pair that signs service account tokens (`sa.key`, `sa.pub`)."""

    folder: Path

    @staticmethod
    def create(folder: Path) -> Authority:
        """Make the authority; `folder` becomes readable by us only."""
        folder.mkdir(parents=True, mode=0o700)
        authority = Authority(folder)
        authority._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "ca.key")
        authority._openssl(
            "req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=weir-lab", "-days", _DAYS, "-out", "ca.crt",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )  # fmt: skip
        authority._openssl("genrsa", "-out", "sa.key", "2048")
        authority._openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
        return authority

    def issue_server(self, name: str, alternative_names: str) -> None:
        """A server certificate `NAME.crt`, `NAME.key` for names such as `DNS:localhost,IP:127.0.0.1`."""
        self._issue(name, f"/CN={name}", f"extendedKeyUsage=serverAuth\nsubjectAltName={alternative_names}\n")

    def issue_client(self, name: str, subject: str) -> None:
        """A client certificate; Kubernetes reads the user from the subject's CN and the groups from its O."""
        self._issue(name, subject, "extendedKeyUsage=clientAuth\n")

    def kubeconfig(self, name: str, server: str) -> Path:
        """A kubeconfig that uses the client certificate `name`, beside the folder; JSON, which is YAML too."""
        path = self.folder.parent / f"{name}.kubeconfig"
        credentials = {"client-certificate": f"{self.folder}/{name}.crt", "client-key": f"{self.folder}/{name}.key"}
        write_kubeconfig(path, {"server": server, "certificate-authority": f"{self.folder}/ca.crt"}, credentials)
        return path

    def _issue(self, name: str, subject: str, extensions: str) -> None:
        (self.folder / f"{name}.ext").write_text(f"keyUsage=critical,digitalSignature\n{extensions}")
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
        self._openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
        self._openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", _DAYS, "-extfile", f"{name}.ext", "-out", f"{name}.crt",
        )  # fmt: skip

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)


def write_kubeconfig(path: Path, cluster: dict[str, str], user: dict[str, str]) -> None:
    """A kubeconfig with one cluster, one user and one context, readable by us only (it carries a credential)."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "lab", "user": user}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        "current-context": "lab",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=1))
