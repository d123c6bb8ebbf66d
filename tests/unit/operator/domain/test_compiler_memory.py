# SPDX-License-Identifier: Apache-2.0
"""A compiler that has seen other objects before makes the same, to the byte, as one that has just been born."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir_operator.domain.compiler import Compiled, Compiler
from weir_operator.domain.gateways import Gateway, NamespaceBudget
from weir_operator.domain.limits import Action
from weir_operator.domain.problems import invalid
from weir_operator.domain.ruleset import Ruleset, publish, seal, to_bytes
from weir_operator.domain.specs import (
    HeaderSource,
    LimitPatch,
    LimitSpec,
    Meta,
    OverrideInput,
    OverrideSpec,
    PolicyInput,
    PolicySpec,
    RuleSpec,
    SubjectValue,
)
from weir_operator.domain.wire_text import Texts

GATEWAY = Gateway(
    "edge",
    "weir-system",
    allowed_namespaces=frozenset({"a", "b"}),
    hosts={"a": ("a.test", "*.a.test"), "b": ("*",)},
    namespace_budget=NamespaceBudget(rules=5, document_bytes=2500),  # of which two policies need 2000
    rule_budget=2,  # so that three policies of one host already have to give way to each other
)
KEYS = [(HeaderSource("x-api-key"),), (HeaderSource("x-user"),), ()]

rules = st.builds(
    RuleSpec, st.sampled_from(["burst", "daily"]), st.builds(LimitSpec, st.integers(5, 8), st.just(1_000_000)),
    st.sampled_from(KEYS),
)  # fmt: skip
policy_specs = st.one_of(
    st.builds(
        PolicySpec,
        st.lists(rules, min_size=1, max_size=2, unique_by=lambda rule: rule.name).map(tuple),
        hosts=st.sampled_from([(), ("a.test",), ("x.a.test",), ("*.a.test", "a.test"), ("b.test",)]),
    ),
    st.just((invalid("spec.rules", "is missing"),)),
)
override_specs = st.one_of(
    st.builds(
        OverrideSpec,
        st.sampled_from(["p0", "p1", "p2"]),
        st.sampled_from([((SubjectValue("x-api-key", key),),) for key in "kl"]),
        st.just(Action.SET),
        st.sampled_from([(), ("burst",)]),
        st.builds(LimitPatch, burst=st.integers(1, 9)),
        not_after=st.none() | st.integers(5, 9),
    ),
    st.just((invalid("spec.subjects", "is empty"),)),
)
kinds = st.sampled_from(["policy", "policy", "override", "override", "drop policy", "drop override", "recreate"])
names = st.tuples(st.sampled_from("ab"), st.integers(0, 2))
edits = st.tuples(kinds, names, policy_specs, override_specs, st.integers(0, 2))


class World:
    """Objects as a cluster would hold them: generations rise, and who comes back under a name is somebody else."""

    def __init__(self) -> None:
        self.policies: dict[str, PolicyInput] = {}
        self.overrides: dict[str, OverrideInput] = {}
        self._births = 0

    def edit(self, kind: str, place: tuple[str, int], policy: object, override: object, created: int) -> None:
        """Apply one edit."""
        namespace, number = place
        at = f"{namespace}/{number}"
        match kind:
            case "policy" | "recreate":
                old = self.policies.get(at) if kind == "policy" else None
                meta = self._meta(namespace, f"p{number}", old.meta if old else None, created)
                self.policies[at] = PolicyInput(meta, "edge", policy)  # type: ignore[arg-type]
            case "override":
                before = self.overrides.get(at)
                meta = self._meta(namespace, f"o{number}", before.meta if before else None, created)
                target = override.policy if isinstance(override, OverrideSpec) else "p0"
                self.overrides[at] = OverrideInput(meta, target, override)  # type: ignore[arg-type]
            case "drop policy":
                self.policies.pop(at, None)
            case "drop override":
                self.overrides.pop(at, None)

    def compile_with(self, compiler: Compiler, previous: Ruleset | None) -> Compiled:
        """Compile what is there now."""
        return compiler.compile(self.policies.values(), self.overrides.values(), previous)

    def _meta(self, namespace: str, name: str, old: Meta | None, created: int) -> Meta:
        if old is not None:
            return replace(old, generation=old.generation + 1)
        self._births += 1
        return Meta(namespace, name, f"uid-{self._births}", 1, created)


@pytest.mark.requirement("R47")
@settings(max_examples=150)
@given(st.lists(edits, min_size=1, max_size=12))
def test_what_was_compiled_before_changes_no_byte(
    steps: list[tuple[str, tuple[str, int], object, object, int]],
) -> None:
    """D47, D63"""
    world, compiler, texts = World(), Compiler(GATEWAY), Texts()
    previous: Ruleset | None = None
    for step in steps:
        world.edit(*step)
        remembered = world.compile_with(compiler, previous)
        fresh = world.compile_with(Compiler(GATEWAY), previous)
        assert fresh == remembered
        assert to_bytes(publish(fresh.ruleset, 7)) == seal(remembered.ruleset, texts).to_bytes(7)
        previous = remembered.ruleset


def test_only_what_changed_is_compiled_anew() -> None:
    world, compiler = World(), Compiler(GATEWAY)
    good = PolicySpec((RuleSpec("burst", LimitSpec(5, 1_000_000), KEYS[0]),), hosts=("a.test",))
    vip = OverrideSpec("p0", ((SubjectValue("x-api-key", "k"),),), Action.EXEMPT)
    world.edit("policy", ("a", 0), good, None, 0)
    world.edit("policy", ("a", 1), good, None, 0)
    world.edit("override", ("a", 0), None, vip, 0)
    before = world.compile_with(compiler, None).ruleset
    world.edit("policy", ("a", 1), replace(good, hosts=("x.a.test",)), None, 0)
    after = world.compile_with(compiler, before).ruleset
    assert after.policies[0] is before.policies[0]
    assert after.policies[1] is not before.policies[1]
    assert after.overrides[0] is before.overrides[0]
