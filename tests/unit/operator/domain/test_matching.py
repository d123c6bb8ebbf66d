# SPDX-License-Identifier: Apache-2.0
import ipaddress
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir_operator.domain.matching import (
    PathPattern,
    check_host,
    check_methods,
    covers_everybody,
    host_covers,
    parse_network,
    parse_path,
)
from weir_operator.domain.problems import Problem


@pytest.mark.parametrize(
    ("allowed", "wanted", "covered"),
    [
        ("api.example.com", "api.example.com", True),
        ("api.example.com", "www.example.com", False),
        ("*.example.com", "api.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "*.example.com", True),
        ("*.example.com", "*.api.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "badexample.com", False),
        ("*.example.com", "*.com", False),
        ("api.example.com", "*.example.com", False),
        ("*.api.example.com", "*.example.com", False),
        ("*", "anything.test", True),
        ("*", "*.test", True),
        ("*.example.com", "*", False),
    ],
)
def test_a_host_pattern_is_covered_when_all_its_hosts_are(allowed: str, wanted: str, covered: bool) -> None:
    assert covered == host_covers(allowed, wanted)


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "*.example.com",
        "localhost",
        "a-b.c0",
        "127.0.0.1",
        "xn--nxasmq6b.test",
    ],
)
def test_a_host_name_with_or_without_wildcard_is_good(host: str) -> None:
    assert check_host(host, "") == []


@pytest.mark.parametrize(
    "host",
    [
        "",
        "*",
        "API.example.com",
        "a.com:80",
        "a..b",
        "-a.com",
        "a-.com",
        "*.*.com",
        "a.*.com",
        "*a.com",
        "a.com.",
        "é.com",
        "a/b",
        "a.com\n",
        "x" * 64 + ".com",
        "a." * 130 + "com",
    ],
)
def test_what_no_request_can_have_as_its_host_is_refused(host: str) -> None:
    (problem,) = check_host(host, "spec.match.hosts[0]")
    assert problem.path == "spec.match.hosts[0]"


@pytest.mark.parametrize(
    ("path", "segments", "open_ended"),
    [
        ("/", (), False),
        ("/*", (), True),
        ("/a/b", ("a", "b"), False),
        ("/A/b", ("a", "b"), False),
        ("/a/*", ("a",), True),
        ("/v1/orgs/{org}/*", ("v1", "orgs", None), True),
        ("/{a}/{b}", (None, None), False),
        ("/a b/ü/100%/a.b", ("a b", "ü", "100%", "a.b"), False),
    ],
)
def test_a_path_is_exact_a_prefix_or_a_template(path: str, segments: tuple[str | None, ...], open_ended: bool) -> None:
    assert PathPattern(segments, open_ended) == parse_path(path, "")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "*",
        "//a",
        "/a//b",
        "/a/",
        "/./a",
        "/a/../b",
        "/a/*/b",
        "/a*",
        "/a/**",
        "/a?x=1",
        "/a#b",
        "/a;v=1",
        "/a%20b",
        "/a%2Fb",
        "/{a",
        "/a{b}",
        "/{}",
        "/{a-b}",
        "/{a}/{a}",
        "/a\\b",
        "/a\nb",
        "/" + "x" * 1024,
    ],
)
def test_a_path_that_no_normalised_request_can_have_is_refused(path: str) -> None:
    """D60: the pattern is compared with the normalised path, so a respelt pattern would never match."""
    problem = parse_path(path, "spec.match.routes[0].path")
    assert isinstance(problem, Problem)
    assert problem.path == "spec.match.routes[0].path"


ALPHABET = ("a", "b", None)
patterns = st.builds(
    PathPattern, st.lists(st.sampled_from(ALPHABET), max_size=3).map(tuple), st.booleans()
)  # None = any one segment
PATHS = [path for length in range(5) for path in itertools.product("abc", repeat=length)]


def matched(pattern: PathPattern) -> set[tuple[str, ...]]:
    return {
        path
        for path in PATHS
        if len(path) >= len(pattern.segments)
        and (pattern.open_ended or len(path) == len(pattern.segments))
        and all(mine in (None, theirs) for mine, theirs in zip(pattern.segments, path, strict=False))
    }


@given(patterns, patterns)
def test_covering_and_overlapping_mean_what_they_say_of_paths(one: PathPattern, other: PathPattern) -> None:
    """A pattern of three segments is decided by the paths of up to four segments over three letters."""
    assert one.covers(other) == (matched(other) <= matched(one))
    assert one.overlaps(other) == bool(matched(one) & matched(other))


@pytest.mark.parametrize("method", ["get", "Get", "", "GET ", "GET1", "X" * 33])
def test_a_method_that_no_request_has_is_refused(method: str) -> None:
    (problem,) = check_methods(["POST", method], "methods")
    assert problem.path == "methods[1]"


@pytest.mark.parametrize("text", ["10.0.0.0/8", "0.0.0.0/0", "203.0.113.7/32", "2001:db8::/32", "::/0"])
def test_a_network_in_cidr_notation_is_good(text: str) -> None:
    assert ipaddress.ip_network(text) == parse_network(text, "")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("10.0.0.1/8", 'write "10.0.0.0/8"'),
        ("10.0.0.1", 'write "10.0.0.1/32" for this address'),
        ("2001:db8::1", 'write "2001:db8::1/128" for this address'),
        ("10.0.0.0/255.0.0.0", 'write "10.0.0.0/8"'),
        ("10.0.0.0/33", ""),
        ("10.0.0/8", ""),
        ("everybody", ""),
        ("", ""),
        ("::ffff:10.0.0.0/104", ""),
        ("fe80::%eth0/64", "leave it out"),
    ],
)
def test_a_bad_network_is_refused_with_the_right_spelling_where_there_is_one(text: str, hint: str) -> None:
    problem = parse_network(text, "spec.exempt[0].clientIP[0]")
    assert isinstance(problem, Problem)
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("texts", "everybody"),
    [
        (["0.0.0.0/0", "::/0"], True),
        (["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"], True),
        (["0.0.0.0/0"], False),
        (["0.0.0.0/1", "::/0"], False),
        ([], False),
    ],
)
def test_networks_that_hold_every_address_are_recognised(texts: list[str], everybody: bool) -> None:
    assert everybody == covers_everybody([ipaddress.ip_network(text) for text in texts])
