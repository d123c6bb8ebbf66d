# SPDX-License-Identifier: Apache-2.0
"""One override to its part of the ruleset, checked against the version of its policy that runs.

Raw subjects are hashed here, addresses in each form in which a selected rule counts them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence

from weir_operator.domain.limits import Action, TokenBucket, check_bucket
from weir_operator.domain.policy_compiler import sha256
from weir_operator.domain.problems import Problem, did_you_mean, invalid
from weir_operator.domain.rule_checks import FIELD_NAME, is_header_value
from weir_operator.domain.ruleset import ClientIPKey, HeaderKey, NewLimit, Override, Policy, Rule, Subject
from weir_operator.domain.specs import Meta, OverrideSpec, SubjectValue

CLIENT_IP = "clientIP"
_SHA256 = re.compile(r"[0-9A-Fa-f]{64}")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def compile_override(meta: Meta, spec: OverrideSpec, policy: Policy) -> Override | tuple[Problem, ...]:
    """The compiled override, or every problem that it has with itself and with `policy` as it runs."""
    new_limit = NewLimit(spec.limit.requests, spec.limit.period_us, spec.limit.burst) if spec.limit else None
    selected = [rule for rule in policy.rules if not spec.rules or rule.name in spec.rules]
    problems = [
        *_check_rules(spec.rules, policy),
        *_check_action(spec),
        *_check_times(spec),
        *_check_subjects(spec.subjects),
    ]
    if not problems:
        problems += _check_fit(spec, selected)
    if problems:
        return tuple(problems)
    fitting = [rule for rule in selected if any(_names(subject) <= _sources(rule) for subject in spec.subjects)]
    if new_limit:
        problems += check_numbers(new_limit, fitting)
    return tuple(problems) or Override(
        id=meta.id,
        policy=policy.id,
        rules=tuple(rule.name for rule in fitting),
        subjects=tuple(_hash_subjects(spec.subjects, fitting)),
        action=spec.action,
        limit=new_limit,
        not_before=spec.not_before,
        # An end before all time is over at every time, as is the end of its first second; 0 would be no time span.
        not_after=None if spec.not_after is None else max(1, spec.not_after),
    )


def check_numbers(new: NewLimit, rules: Iterable[Rule]) -> list[Problem]:
    """What is wrong with the numbers that result when `new` replaces those of `rules`, in every plan."""
    problems: list[Problem] = []
    for rule in rules:
        dearest = max((entry.cost for entry in rule.cost), default=1)
        for plan, limit in _limits(rule):
            bucket = new.over(limit)
            where = f'with rule "{rule.name}"' + (f' and plan "{plan}"' if plan else "")
            problems += (
                invalid(found.path, f"{where}, {found.message}", found.hint)
                for found in check_bucket(bucket, "spec.limit")
            )
            if dearest > bucket.burst:
                message = f"{where}, a burst of {bucket.burst} is less than the cost of its dearest request, {dearest}"
                problems.append(invalid("spec.limit.burst", message, f"write at least {dearest}"))
    return problems


def still_fits(piece: Override, policy: Policy) -> bool:
    """Whether an already compiled override can stay beside `policy` as it runs now."""
    rules = [rule for rule in policy.rules if rule.name in piece.rules]
    return len(rules) == len(piece.rules) and not (piece.limit and check_numbers(piece.limit, rules))


def _limits(rule: Rule) -> list[tuple[str, TokenBucket]]:
    return [("", rule.limit), *(sorted(rule.plans.limits.items()) if rule.plans else [])]


def _check_rules(names: Sequence[str], policy: Policy) -> Iterator[Problem]:
    known = [rule.name for rule in policy.rules]
    for index, name in enumerate(names):
        if name not in known:
            message = f'the policy, as it runs (generation {policy.generation}), has no rule "{name}"'
            yield invalid(f"spec.rules[{index}]", message, did_you_mean(name, known))


def _check_action(spec: OverrideSpec) -> Iterator[Problem]:
    given = spec.limit is not None and any((spec.limit.requests, spec.limit.period_us, spec.limit.burst))
    if spec.action is Action.SET and not given:
        yield invalid("spec.limit", "is missing", "action Set needs at least one of requests, period and burst")
    if spec.action is not Action.SET and spec.limit is not None:
        yield invalid("spec.limit", f"means nothing with action {spec.action}", "leave it out, or write action: Set")


def _check_times(spec: OverrideSpec) -> Iterator[Problem]:
    if spec.not_before is not None and spec.not_after is not None and spec.not_before >= spec.not_after:
        yield invalid("spec.startsAt", "is not before spec.expiresAt, so the override would never hold", "swap them")


def _check_subjects(subjects: Sequence[Sequence[SubjectValue]]) -> Iterator[Problem]:
    if not subjects:
        yield invalid("spec.subjects", "is empty", "name at least one subject")
    for index, subject in enumerate(subjects):
        path = f"spec.subjects[{index}]"
        if not subject:
            yield invalid(path, "names nobody", 'write {source: value}, like {x-api-key: "k_1"}')
        if len(_names(subject)) < len(subject):
            yield invalid(path, "names a source twice", "header names are compared without case")
        if len(subject) != len(subjects[0]):
            message = f"names {len(subject)} sources, the first subject {len(subjects[0])}"
            hint = "precedence goes by the number of sources; write two overrides"
            yield invalid(path, message, hint)
        for value in subject:
            yield from _check_value(value, f"{path}.{value.source}")


def _check_value(value: SubjectValue, path: str) -> Iterator[Problem]:
    # Values are not quoted in messages: they may be secrets, and conditions are widely readable.
    if value.source != CLIENT_IP and not FIELD_NAME.fullmatch(value.source):
        yield invalid(path, f'"{value.source}" is no source', f'write a header\'s name or "{CLIENT_IP}"')
    elif value.hashed:
        if not _SHA256.fullmatch(value.value):
            yield invalid(f"{path}.sha256", "is no SHA-256", "write 64 hexadecimal digits")
    elif value.source == CLIENT_IP:
        if parse_address(value.value) is None:
            hint = 'write one address, like "203.0.113.7"; the rule\'s prefix length decides how far it reaches'
            yield invalid(path, "is no IP address", hint)
    elif not is_header_value(value.value):
        hint = "write the value without space around it; an empty value counts as missing"
        yield invalid(path, "is a value that no header can have", hint)


def _check_fit(spec: OverrideSpec, selected: Sequence[Rule]) -> Iterator[Problem]:
    keyed = sorted(set().union(*(_sources(rule) for rule in selected)))
    known = f"their keys are made of: {', '.join(keyed)}" if keyed else "they have one counter for everybody"
    misfits: list[Problem] = []
    for index, subject in enumerate(spec.subjects):
        path = f"spec.subjects[{index}]"
        strangers = [value.source for value in subject if _canonical(value.source) not in keyed]
        message = "is a source that no selected rule is keyed on"
        misfits += (invalid(f"{path}.{source}", message, known) for source in strangers)
        if not strangers and not any(_names(subject) <= _sources(rule) for rule in selected):
            hint = "write one override for each rule's own sources"
            misfits.append(invalid(path, "names sources that no single selected rule is keyed on together", hint))
    yield from misfits
    if misfits:
        return  # that a rule is left without a subject only follows from these
    for index, name in enumerate(spec.rules):
        (rule,) = (rule for rule in selected if rule.name == name)
        if not any(_names(subject) <= _sources(rule) for subject in spec.subjects):
            message = f'no subject fits the key of rule "{name}"'
            sources = ", ".join(sorted(_sources(rule))) or "nothing: one counter for everybody"
            yield invalid(f"spec.rules[{index}]", message, f"it is made of: {sources}")


def _names(subject: Sequence[SubjectValue]) -> set[str]:
    return {_canonical(value.source) for value in subject}


def _canonical(source: str) -> str:
    return source if source == CLIENT_IP else source.lower()


def _sources(rule: Rule) -> set[str]:
    return {part.header if isinstance(part, HeaderKey) else CLIENT_IP for part in rule.key}


def _hash_subjects(subjects: Sequence[Sequence[SubjectValue]], rules: Sequence[Rule]) -> list[tuple[Subject, ...]]:
    """One subject for each form that it takes: rules may count addresses by networks of different sizes."""
    hashed = (
        tuple(sorted((_hash(value, rule) for value in subject), key=lambda item: item.source))
        for subject in subjects
        for rule in rules
        if _names(subject) <= _sources(rule)
    )
    return list(dict.fromkeys(hashed))


def _hash(value: SubjectValue, rule: Rule) -> Subject:
    source = CLIENT_IP if value.source == CLIENT_IP else f"header:{value.source.lower()}"
    if value.hashed:
        return Subject(source, value.value.lower())
    if value.source != CLIENT_IP:
        return Subject(source, sha256(value.value))
    (prefixes,) = (part.client_ip for part in rule.key if isinstance(part, ClientIPKey))
    address = parse_address(value.value)
    if address is None:  # refused by _check_value
        raise AssertionError(value.source)
    bits = prefixes.ipv4_prefix if isinstance(address, ipaddress.IPv4Address) else prefixes.ipv6_prefix
    return Subject(source, sha256(network_text(address, bits)))


def parse_address(text: str) -> Address | None:
    """An address without zone, IPv4-mapped ones as IPv4; None for anything else."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        return None if address.scope_id is not None else address.ipv4_mapped or address
    return address


def network_text(address: Address, bits: int) -> str:
    """The canonical text of the network of `bits` bits around an address; a whole address has no `/n`."""
    network = ipaddress.ip_network((address, bits), strict=False)
    return str(network.network_address) if bits == address.max_prefixlen else str(network)
