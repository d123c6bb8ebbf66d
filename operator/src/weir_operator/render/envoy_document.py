# SPDX-License-Identifier: Apache-2.0
"""How an Envoy message is written down as YAML: typed values, durations, one deterministic text.

Knows protobuf's JSON form and nothing about limits.
"""

from __future__ import annotations

from collections.abc import Sequence

import yaml

Message = dict[str, object]


class _PlainDumper(yaml.SafeDumper):
    """Without anchors: a person who reads or pastes a part of the file must not meet `*id001`."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  PyYAML's signature
        """Write every value out, also one that has been written before."""
        return True


def typed(message_type: str, **fields: object) -> Message:
    """A `google.protobuf.Any` that holds a message of this type."""
    return {"@type": f"type.googleapis.com/{message_type}", **fields}


def extension(name: str, message_type: str, **fields: object) -> Message:
    """A named extension point entry: `name` and its `typed_config`."""
    return {"name": name, "typed_config": typed(message_type, **fields)}


def seconds(milliseconds: int) -> str:
    """A protobuf duration: 50 -> `0.050s`."""
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}s"


def socket_address(address: str, port: int) -> Message:
    """Where to listen or connect over TCP. On `::` IPv4 clients are served too, and seen under their own addresses."""
    dual_stack: Message = {"ipv4_compat": True} if address == "::" else {}
    return {"socket_address": {"address": address, "port_value": port, **dual_stack}}


def to_yaml(comment: str, content: Message | Sequence[Message]) -> str:
    """The file: `comment` as its head (one line each, without `#`), then the content in the order it was built."""
    head = "".join(f"# {line}".rstrip() + "\n" for line in comment.strip().splitlines())
    body = yaml.dump(content, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=120)
    return head + body
