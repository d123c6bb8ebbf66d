// SPDX-License-Identifier: Apache-2.0
//! A rule's counts by plan. A rule without plans has none, and pays for none.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// How many plans are shown: those with the most requests. Arbitrary; a status document must stay readable.
const SHOWN: usize = 32;

/// The counts of each plan of one rule.
pub(super) struct Plans(Box<[Plan]>);

struct Plan {
    name: String,
    requests: AtomicU64,
    would_reject: AtomicU64,
    rejected: AtomicU64,
}

/// One plan's counts as the status document shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanCounts {
    requests: u64,
    would_reject: u64,
    rejected: u64,
}

/// What a rule said, as far as it is counted by plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    WouldReject,
    Rejected,
}

impl Plans {
    /// `names`: of the rule's limits; a single one is no plan.
    pub(super) fn new(names: Vec<String>) -> Self {
        let names = if names.len() > 1 { names } else { Vec::new() };
        let plan = |name| Plan {
            name,
            requests: AtomicU64::new(0),
            would_reject: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
        };
        Self(names.into_iter().map(plan).collect())
    }

    /// Counts one request of the plan at `place`.
    pub(super) fn count(&self, place: usize, said: Said) {
        let Some(plan) = self.0.get(place) else { return };
        plan.requests.fetch_add(1, Ordering::Relaxed);
        match said {
            Said::Nothing => {}
            Said::WouldReject => {
                plan.would_reject.fetch_add(1, Ordering::Relaxed);
            }
            Said::Rejected => {
                plan.rejected.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The counts by plan; "" stands for requests without a listed one. Plans that nobody used are left out.
    pub(super) fn counts(&self) -> BTreeMap<String, PlanCounts> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = |plan: &Plan| PlanCounts {
            requests: read(&plan.requests),
            would_reject: read(&plan.would_reject),
            rejected: read(&plan.rejected),
        };
        let mut used: Vec<_> = self.0.iter().map(|plan| (plan.name.clone(), counts(plan))).collect();
        used.retain(|(_, counts)| counts.requests > 0);
        used.sort_by(|(name, one), (other, two)| two.requests.cmp(&one.requests).then_with(|| name.cmp(other)));
        used.truncate(SHOWN);
        used.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_plan() {
        let plans = Plans::new(vec![String::new(), "gold".to_owned(), "silver".to_owned()]);
        plans.count(0, Said::Nothing);
        plans.count(1, Said::WouldReject);
        plans.count(1, Said::Rejected);
        let counted = |requests, would_reject, rejected| PlanCounts { requests, would_reject, rejected };
        let wanted = [(String::new(), counted(1, 0, 0)), ("gold".to_owned(), counted(2, 1, 1))];
        assert_eq!(BTreeMap::from(wanted), plans.counts());
    }

    #[test]
    fn a_rule_without_plans_has_no_counts() {
        let plans = Plans::new(vec![String::new()]);
        plans.count(0, Said::Rejected);
        assert!(plans.counts().is_empty());
    }

    #[test]
    fn the_plans_with_the_most_requests_are_shown() {
        let plans = Plans::new((0..100).map(|number| format!("p{number:02}")).collect());
        for place in 0..100 {
            (0..=place).for_each(|_| plans.count(place, Said::Nothing));
        }
        let shown = plans.counts();
        assert_eq!((SHOWN, true, false), (shown.len(), shown.contains_key("p99"), shown.contains_key("p67")));
    }
}
