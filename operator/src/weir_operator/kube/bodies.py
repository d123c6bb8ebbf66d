# SPDX-License-Identifier: Apache-2.0
"""The bodies of server-side applies: JSON that the API server's YAML reader takes for the same thing.

Such a body is read as YAML, and YAML knows no surrogate pairs: what `json.dumps` makes of one character beyond the
Basic Multilingual Plane, a snail in a path, is an error there, and a ConfigMap with it would never be written.
"""

from __future__ import annotations

import json
import re
from typing import Any

APPLY = "application/apply-patch+yaml; charset=utf-8"
"""With a parameter, without which the client would encode the body by its own means."""

# What YAML does not take as it is, or takes for the end of a line: controls, line separators, the byte order mark.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def encode_apply(manifest: Any) -> bytes:
    """Return the body for an object."""
    text = json.dumps(manifest, ensure_ascii=False, separators=(",", ":"))
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()
