// SPDX-License-Identifier: Apache-2.0
//! What is decided when the store has failed for a request: the rules' failure modes, with this limiter's own shares where
//! a rule has one.
//!
//! Never asked because the store refused: a refusal is an answer.

use limiter_core::{Part, Prepared, Verdict};

use super::charge::Charge;
use crate::memory::Counted;
use crate::shared::Shared;

/// The verdict. `beside`: what memory and the store's other calls have let pass. What the shares were charged is added to
/// `charge`; where a rule fails closed that is nothing.
pub(super) fn verdict(shared: &Shared, prepared: &mut Prepared<'_>, beside: &[Part], charge: &mut Charge) -> Verdict {
    let counted = if prepared.fails_closed(beside) {
        None
    } else {
        shared.memory.stand_in(prepared, beside, shared.clock.now_us())
    };
    let verdict = prepared.verdict_on_store_failure(beside, counted.as_ref().map(Counted::part).as_ref());
    charge.in_memory.extend(counted);
    verdict
}
