# SPDX-License-Identifier: Apache-2.0
"""What Envoy refuses while the limiter gives no answer: the Closed rules of a ruleset, as a filter that Envoy reloads.

Owns the ConfigMap `<gateway>-closed` and its place in Envoy's filter chain. The filter is a script
(`envoy_closed.lua`) that runs for requests which the ext_authz filter has marked as unanswered, and for no other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from weir_operator.domain.gateways import Gateway
from weir_operator.domain.limits import FailureMode, Mode, Visibility
from weir_operator.domain.matching import methods_with_head, parse_path
from weir_operator.domain.modes import mode_for_all
from weir_operator.domain.problems import Problem
from weir_operator.domain.ruleset import Match, Policy, Route, Rule, Ruleset
from weir_operator.render.envoy_document import Message, extension, typed
from weir_operator.render.names import DIGEST_ANNOTATION, Part, closed_config_map, labels
from weir_operator.render.ruleset_config import MAX_PLAIN_BYTES, RulesetTooLarge

CLOSED_KEY = "closed.json"
CLOSED_FILTER = "weir.closed"
FAILURE_MARKER = "x-envoy-auth-failure-mode-allowed"
"""The header that Envoy's ext_authz filter adds to a request which it lets pass unanswered."""

_SCRIPT = files("weir_operator.render").joinpath("envoy_closed.lua").read_text("utf-8")
_WITH_MATCHER = "envoy.extensions.common.matching.v3.ExtensionWithMatcher"
_EVERY_REQUEST = "/*"
_REMEMBERED_LINES = 4096  # arbitrary; what has not changed since the last turn is not written anew


def closed_filter(gateway: Gateway) -> Message:
    """The entry of `http_filters`, right after ext_authz; what it does stands in the mounted ConfigMap.

    Until that is read, and when what is mounted is refused before anything was accepted, nothing is Closed here.
    """
    folder = gateway.envoy.closed_directory
    source = {
        # Without the watched directory Envoy never sees that the kubelet has swapped the ConfigMap's files.
        "path_config_source": {"path": f"{folder}/{CLOSED_KEY}", "watched_directory": {"path": folder}},
        "resource_api_version": "V3",
    }
    return {
        "name": CLOSED_FILTER,
        "config_discovery": {
            "config_source": source,
            "type_urls": [f"type.googleapis.com/{_WITH_MATCHER}"],
            "default_config": _marked_requests_only("function envoy_on_request() end"),
        },
    }


def render_closed(ruleset: Ruleset, gateway: Gateway) -> Mapping[str, Any] | RulesetTooLarge:
    """The ConfigMap with what Envoy refuses for this ruleset."""
    script = f'local CLOSED = "{_listing(ruleset.policies)}"\n{_SCRIPT}'
    digest = hashlib.sha256(script.encode()).hexdigest()
    resource = typed(
        "envoy.config.core.v3.TypedExtensionConfig", name=CLOSED_FILTER, typed_config=_marked_requests_only(script)
    )
    text = json.dumps({"version_info": digest, "resources": [resource]}, separators=(",", ":"))
    if len(text) > MAX_PLAIN_BYTES:
        what, remedy = (
            "Closed rules take {size} bytes for Envoy",
            "give policies with Closed rules fewer hosts and routes",
        )
        return RulesetTooLarge(len(text), MAX_PLAIN_BYTES, what, remedy)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": closed_config_map(gateway.name),
            "namespace": gateway.namespace,
            "labels": dict(labels(gateway.name, Part.CLOSED)),
            "annotations": {DIGEST_ANNOTATION: f"sha256:{digest}"},
        },
        "data": {CLOSED_KEY: text},
    }


def _marked_requests_only(script: str) -> Message:
    """The script as a filter that is skipped for every request that the limiter has answered."""
    marker = extension("marker", "envoy.type.matcher.v3.HttpRequestHeaderMatchInput", header_name=FAILURE_MARKER)
    marked = {"single_predicate": {"input": marker, "value_match": {"prefix": "true"}}}
    skip = extension("skip", "envoy.extensions.filters.common.matcher.action.v3.SkipFilter")
    return typed(
        _WITH_MATCHER,
        extension_config=extension(
            CLOSED_FILTER,
            "envoy.extensions.filters.http.lua.v3.Lua",
            stat_prefix="weir_closed",
            default_source_code={"inline_string": script},
        ),
        xds_matcher={
            "matcher_list": {"matchers": [{"predicate": {"not_matcher": marked}, "on_match": {"action": skip}}]}
        },
    )


def closed_size(policy: Policy) -> int:
    """How many bytes of the ConfigMap are one policy's."""
    return len(_listing([policy])) + len("\\n")


def _listing(policies: Iterable[Policy]) -> str:
    """The policies with a Closed rule that all of its requests are held to, a line each: see `read` in the script.

    What exempts a request, the key it lacks and what it costs are not among it: see docs/decisions/0021. Nor are plans
    and subjects, so a rule that is only enforced for some of its requests is left out, and so is one that is switched
    off for a while: docs/decisions/0038.
    """
    lines = [
        _line(policy.id, rule.name, rule.visibility, policy.response.documentation, policy.match)
        for policy in policies
        if (rule := _closed_rule(policy)) is not None
    ]
    return "\\n".join(lines)


def _closed_rule(policy: Policy) -> Rule | None:
    """The rule that the client is told of: the first public one, else the first."""
    closed = [rule for rule in policy.rules if _closes(rule)]
    public = [rule for rule in closed if rule.visibility is Visibility.PUBLIC]
    return next(iter((*public, *closed)), None)


def _closes(rule: Rule) -> bool:
    mode = mode_for_all(rule.mode, rule.stage, rule.switches or ())
    return mode is Mode.ENFORCE and rule.on_store_failure is FailureMode.CLOSED


@lru_cache(maxsize=_REMEMBERED_LINES)
def _line(policy: str, rule: str, visibility: Visibility, documentation: str | None, match: Match) -> str:
    """Every word is quoted, also where its form is known: who can edit a ConfigMap must not get a script into Envoy."""
    words = [
        quote(policy),
        quote(rule),
        "P" if visibility is Visibility.PUBLIC else "S",
        quote(json.dumps(documentation)) if documentation is not None else "-",
        ",".join(quote(host, safe="*") for host in match.hosts) or "*",
    ]
    for route in match.routes or (Route(_EVERY_REQUEST, ()),):
        words += [",".join(quote(method) for method in sorted(methods_with_head(route.methods))) or "*"]
        words += [_path(route.path)]
    return " ".join(words)


def _path(path: str) -> str:
    """A pattern in the script's form: literals in lower case with escapes, `{}` for a parameter, `*` at an open end."""
    pattern = parse_path(path, "path")
    if isinstance(pattern, Problem):  # no version of the operator has ever accepted it; too much is the safe side
        return _EVERY_REQUEST
    segments = ["{}" if segment is None else quote(segment, safe="") for segment in pattern.segments]
    return "/" + "/".join([*segments, *(["*"] if pattern.open_ended else [])])
