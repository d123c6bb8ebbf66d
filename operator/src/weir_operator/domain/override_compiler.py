# SPDX-License-Identifier: Apache-2.0
"""One override to its part of the ruleset, checked against the version of its policy that runs.

What its subjects mean is `override_subjects`' business, what it makes of numbers `override_numbers`'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir_operator.domain.limits import Action
from weir_operator.domain.override_numbers import Change, check_numbers, parse_factor
from weir_operator.domain.override_subjects import Named, check_value, hash_subject, resolve, sources_of
from weir_operator.domain.override_target import Selection, Target, one_entry_each
from weir_operator.domain.overriding import NewLimit, Override, Subject
from weir_operator.domain.problems import Problem, did_you_mean, invalid
from weir_operator.domain.ruleset import Policy, Rule
from weir_operator.domain.specs import LimitPatch, Meta, OverrideSpec, SubjectValue

Who = Sequence[Named]


def compile_override(meta: Meta, spec: OverrideSpec, target: Target) -> Override | tuple[Problem, ...]:
    """The compiled override, or every problem that it has with itself and with the policy as it runs."""
    selected = target.select(spec.rules)
    problems = [
        *_check_rules(spec.rules, target.policy),
        *_check_action(spec),
        *_check_times(spec),
        *_check_subjects(spec.subjects),
    ]
    subjects, unresolved = _resolve(spec, selected)
    shapes = frozenset(_names(who) for who in subjects)
    if not problems:
        problems += unresolved or _check_fit(spec, subjects, selected)
    change = _change_of(spec)
    if isinstance(change, Problem):
        problems.append(change)
    if problems or isinstance(change, Problem):
        return tuple(problems)
    fitting = selected.fitting(shapes)
    wrong = target.check_numbers(change, fitting) if change is not None else ()
    return wrong or Override(
        id=meta.id,
        policy=target.policy.id,
        rules=tuple(rule.name for rule in fitting),
        subjects=tuple(dict.fromkeys(found for found, _ in _hashed(subjects, fitting))),
        action=spec.action,
        limit=change if isinstance(change, NewLimit) else None,
        not_before=spec.not_before,
        # An end before all time is over at every time, as is the end of its first second; 0 would be no time span.
        not_after=None if spec.not_after is None else max(1, spec.not_after),
        factor_milli=change if isinstance(change, int) else None,
    )


def subject_places(spec: OverrideSpec, target: Target) -> dict[tuple[Subject, ...], int]:
    """Which entry of `spec.subjects` each compiled subject of an accepted override came from."""
    selected = target.select(spec.rules)
    places: dict[tuple[Subject, ...], int] = {}
    for found, place in _hashed(_resolve(spec, selected)[0], selected.rules):
        places.setdefault(found, place)
    return places


def still_fits(piece: Override, policy: Policy) -> bool:
    """Whether an already compiled override can stay beside `policy` as it runs now, however long the gateway holds."""
    rules = [rule for rule in one_entry_each(policy) if rule.name in piece.rules]
    change = piece.limit if piece.limit is not None else piece.factor_milli
    named = [{item.source for item in subject} for subject in piece.subjects]
    return (
        len(rules) == len(piece.rules)
        and all(any(names <= sources_of(rule) for names in named) for rule in rules)
        and all(any(names <= sources_of(rule) for rule in rules) for names in named)
        and not (change is not None and check_numbers(change, rules, None))
    )


def _resolve(spec: OverrideSpec, selected: Selection) -> tuple[list[Who], list[Problem]]:
    """The subjects with their sources' one names, and what is wrong with them by themselves."""
    subjects: list[Who] = []
    problems: list[Problem] = []
    for index, subject in enumerate(spec.subjects):
        path = f"spec.subjects[{index}]"
        who: list[Named] = []
        for value in subject:
            found = resolve(value, f"{path}.{value.source}", selected.keyed)
            if isinstance(found, Problem):
                problems.append(found)
            else:
                who.append(found)
                problems += check_value(found)
        if len(_names(who)) < len(who):
            problems.append(invalid(path, "names a source twice", "header names are compared without case"))
        subjects.append(who)
    return subjects, problems


def _hashed(subjects: Sequence[Who], rules: Sequence[Rule]) -> Iterator[tuple[tuple[Subject, ...], int]]:
    """Each subject in the form in which each rule counts it, with its place."""
    for place, who in enumerate(subjects):
        for rule in rules:
            if _names(who) <= sources_of(rule):
                yield hash_subject(who, rule), place


def _check_rules(names: Sequence[str], policy: Policy) -> Iterator[Problem]:
    known = [rule.name for rule in policy.rules]
    for index, name in enumerate(names):
        if name not in known:
            message = f'the policy, as it runs (generation {policy.generation}), has no rule "{name}"'
            yield invalid(f"spec.rules[{index}]", message, did_you_mean(name, known))


def _check_action(spec: OverrideSpec) -> Iterator[Problem]:
    given = spec.limit is not None and spec.limit != LimitPatch()
    numbers = "requests, period, burst, queue and maxDelay"
    if spec.action is Action.SET and not given:
        yield invalid("spec.limit", "is missing", f"action Set needs at least one of {numbers}")
    if spec.action is not Action.SET and spec.limit is not None:
        yield invalid("spec.limit", f"means nothing with action {spec.action}", "leave it out, or write action: Set")
    if spec.action is Action.MULTIPLY and spec.factor is None:
        yield invalid("spec.factor", "is missing", 'action Multiply needs it, like "2.5"')
    if spec.action is not Action.MULTIPLY and spec.factor is not None:
        hint = "leave it out, or write action: Multiply"
        yield invalid("spec.factor", f"means nothing with action {spec.action}", hint)


def _change_of(spec: OverrideSpec) -> Change | Problem | None:
    if spec.action is Action.SET and spec.limit is not None:
        patch = spec.limit
        # Who says queue: 0 means that nobody waits, so the rule's longest wait goes with it.
        max_delay_us = 0 if patch.queue == 0 and patch.max_delay_us is None else patch.max_delay_us
        return NewLimit(patch.requests, patch.period_us, patch.burst, patch.queue, max_delay_us)
    if spec.action is Action.MULTIPLY and spec.factor is not None:
        return parse_factor(spec.factor)
    return None


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
        if len(subject) != len(subjects[0]):
            message = f"names {len(subject)} sources, the first subject {len(subjects[0])}"
            hint = "precedence goes by the number of sources; write two overrides"
            yield invalid(path, message, hint)


def _check_fit(spec: OverrideSpec, subjects: Sequence[Who], selected: Selection) -> list[Problem]:
    keyed = selected.keyed
    known = f"their keys are made of: {', '.join(keyed)}" if keyed else "they have one counter for everybody"
    misfits: list[Problem] = []
    for index, who in enumerate(subjects):
        strangers = [named for named in who if named.source not in keyed]
        message = "is a source that no selected rule is keyed on"
        misfits += (invalid(named.path, message, known) for named in strangers)
        if not strangers and not selected.fitting(frozenset([_names(who)])):
            hint = "write one override for each rule's own sources"
            message = "names sources that no single selected rule is keyed on together"
            misfits.append(invalid(f"spec.subjects[{index}]", message, hint))
    if misfits:
        return misfits  # that a rule is left without a subject only follows from these
    fitting = {rule.name for rule in selected.fitting(frozenset(_names(who) for who in subjects))}
    for index, name in enumerate(spec.rules):
        if name not in fitting:
            (rule,) = (rule for rule in selected.rules if rule.name == name)
            message = f'no subject fits the key of rule "{name}"'
            sources = ", ".join(sorted(sources_of(rule))) or "nothing: one counter for everybody"
            misfits.append(invalid(f"spec.rules[{index}]", message, f"it is made of: {sources}"))
    return misfits


def _names(who: Who) -> frozenset[str]:
    return frozenset(named.source for named in who)
