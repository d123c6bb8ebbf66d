# SPDX-License-Identifier: Apache-2.0
"""What is refused in a policy's rollout, and what is said about it."""

import pytest

from weir_operator.domain.rollout_checks import check_rollout
from weir_operator.domain.rollout_terms import OnChange, Promote, RollbackTerms, RolloutTerms, StageTerms
from weir_operator.domain.specs import HeaderSource, LimitSpec, PlansSpec, PolicySpec, RuleSpec

LIMIT = LimitSpec(5, 1_000_000)
PLANS = PlansSpec(HeaderSource("x-plan"), (("internal", LIMIT),))
INTERNAL = StageTerms(60, plans=("internal",))


def problems(terms: RolloutTerms) -> list[str]:
    spec = PolicySpec((RuleSpec("a", LIMIT, plans=PLANS), RuleSpec("b", LIMIT)), rollout=terms)
    return [str(problem) for problem in check_rollout(spec)]


@pytest.mark.requirement("R43", "R40")
def test_a_whole_rollout_is_fine() -> None:
    """D45."""
    stages = INTERNAL, StageTerms(60, percent=10), StageTerms(60, percent=100)
    terms = RolloutTerms(OnChange.SHADOW, Promote.AUTOMATIC, 60, 5, 100, stages, RollbackTerms(5_000, 30))
    assert problems(terms) == []


@pytest.mark.requirement("R43", "R40")
@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (RolloutTerms(promote=Promote.MANUAL), "spec.rollout.onChange: enforces a change at once"),
        (RolloutTerms(stages=(INTERNAL,)), "spec.rollout.onChange: enforces a change at once"),
        (RolloutTerms(OnChange.SHADOW, after_s=5), "spec.rollout.after: means nothing without promote: Automatic"),
        (RolloutTerms(OnChange.SHADOW, Promote.AUTOMATIC, after_s=5), "spec.rollout.promote: Automatic needs after"),
        (
            RolloutTerms(OnChange.SHADOW, stages=(StageTerms(1, percent=10), StageTerms(1, percent=10))),
            "spec.rollout.stages[1].percent: 10 is not above the 10",
        ),
        (
            RolloutTerms(OnChange.SHADOW, stages=(StageTerms(1, percent=100), INTERNAL)),
            "spec.rollout.stages[1]: comes after a stage that already has everybody",
        ),
        (
            RolloutTerms(OnChange.SHADOW, stages=(StageTerms(1, plans=("intern",)),)),
            'spec.rollout.stages[0].plans: no rule of this policy has limits for the plan "intern"; '
            "did you mean internal?",
        ),
        (RolloutTerms(rollback=RollbackTerms(1, 0.5)), "spec.rollout.rollbackWhen.for: is too short"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_field_and_the_way_out(terms: RolloutTerms, said: str) -> None:
    """D45, D68."""
    (problem,) = problems(terms)
    assert problem.startswith(said)
