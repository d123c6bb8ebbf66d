// SPDX-License-Identifier: Apache-2.0
//! The rate limit header fields, in each dialect, and the structured field values (RFC 9651) that they are made of.
//!
//! Owns which rules are shown, under which name. Shadow and silent rules leave no trace here.

use std::borrow::Cow;

use crate::compiled::Rule;
use crate::limit::ceil_seconds;
use crate::prepare::{Check, Prepared, RuleUse, Standing};
use crate::reply::{CheckReply, Wait};
use crate::respond::Header;
use crate::ruleset::Dialect;
use crate::verdict::{Outcome, Verdict};

/// The largest integer that a structured field can hold.
const MAX_INTEGER: u64 = 999_999_999_999_999;

const US_PER_S: u64 = 1_000_000;
const US_PER_MS: u64 = 1_000;

/// A rule that clients are told about, with what the store said.
#[derive(Clone, Copy)]
struct Shown<'p, 'r> {
    rule: &'p RuleUse<'r>,
    check: Check<'r>,
    reply: CheckReply,
}

/// Appends the fields of one answer: all public rules that speak the tightest one's dialect. `now_ms`: ms since the epoch.
pub(crate) fn append_fields(prepared: &Prepared<'_>, verdict: &Verdict, now_ms: u64, headers: &mut Vec<Header>) {
    let judged = || prepared.rules().iter().zip(&verdict.checks).zip(&verdict.outcomes);
    let shown = || judged().filter_map(|((rule, reply), outcome)| show(rule, *reply, *outcome));
    let Some(tightest) = tightest(shown()) else {
        return;
    };
    match tightest.rule.policy.dialect() {
        Dialect::None => {}
        Dialect::RateLimit => {
            let listed = shown().filter(|entry| entry.rule.policy.dialect() == Dialect::RateLimit);
            append_rate_limit(prepared, listed, now_ms.saturating_mul(US_PER_MS), headers);
        }
        Dialect::XRateLimit => append_x_rate_limit(tightest, 0, headers),
        Dialect::XRateLimitEpoch => append_x_rate_limit(tightest, now_ms, headers),
    }
}

/// What a rule is called in the fields of this request, and in its problem body.
pub(crate) fn item_name<'r>(prepared: &Prepared<'r>, rule: &'r Rule) -> &'r str {
    &item(prepared, rule).text
}

/// A String in quotes, or nothing when the text holds something else than printable ASCII.
pub(crate) fn sf_string(text: &str) -> Option<String> {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='~' => quoted.push(character),
            _ => return None,
        }
    }
    quoted.push('"');
    Some(quoted)
}

fn show<'p, 'r>(rule: &'p RuleUse<'r>, reply: Option<CheckReply>, outcome: Outcome) -> Option<Shown<'p, 'r>> {
    match rule.standing {
        Standing::Check(check) if rule.enforces() && rule.rule.is_public() => {
            // The limit that was applied.
            let share = check.limit.local().filter(|_| outcome.is_local());
            Some(Shown { rule, check: Check { limit: share.unwrap_or(check.limit), ..check }, reply: reply? })
        }
        _ => None,
    }
}

/// The rule that binds the client most: of those that refuse the longest wait, else the fewest tokens left; the first of equals.
fn tightest<'p, 'r>(shown: impl Iterator<Item = Shown<'p, 'r>>) -> Option<Shown<'p, 'r>> {
    use std::cmp::Reverse;
    shown.min_by_key(|entry| {
        let refusing = (!entry.reply.ok).then_some(entry.reply.wait);
        (Reverse(refusing), entry.reply.remaining)
    })
}

/// The name by which this rule differs from every other public rule that matches the request, whatever was decided,
/// so that a route's fields keep their names.
fn item<'r>(prepared: &Prepared<'r>, rule: &'r Rule) -> &'r crate::compiled::ItemName {
    let is_other =
        |other: &&RuleUse<'r>| other.enforces() && other.rule.is_public() && other.rule.ordinal() != rule.ordinal();
    rule.items.among(prepared.rules().iter().filter(is_other).map(|other| &other.rule.items))
}

fn append_rate_limit<'p, 'r: 'p>(
    prepared: &Prepared<'r>,
    listed: impl Iterator<Item = Shown<'p, 'r>>,
    now_us: u64,
    headers: &mut Vec<Header>,
) {
    let (mut policy, mut state) = (String::with_capacity(64), String::with_capacity(64));
    let mut digits = itoa::Buffer::new();
    for entry in listed {
        for field in [&mut policy, &mut state] {
            if !field.is_empty() {
                field.push_str(", ");
            }
            field.push_str(&item(prepared, entry.rule.rule).serialised);
        }
        entry.check.limit.append_policy_parameters(now_us, &mut policy);
        state.push_str(";r=");
        state.push_str(digits.format(entry.reply.remaining.min(MAX_INTEGER)));
        state.push_str(";t=");
        state.push_str(digits.format(effective_window_s(&entry).min(MAX_INTEGER)));
    }
    headers.push(("ratelimit-policy", Cow::Owned(policy)));
    headers.push(("ratelimit", Cow::Owned(state)));
}

/// Seconds until something changes for the better: until a refused request passes, else until one token is back, and where
/// requests do not come back one by one, until all have.
fn effective_window_s(entry: &Shown<'_, '_>) -> u64 {
    match entry.reply.wait {
        Wait::Us(us) if !entry.reply.ok => ceil_seconds(us),
        _ => entry.check.limit.token_s().unwrap_or_else(|| ceil_seconds(entry.reply.reset_us)),
    }
}

/// `since_ms`: what the reset is added to, 0 for seconds from now. Only the sum is rounded, up: a client that waits until
/// then is never early.
fn append_x_rate_limit(entry: Shown<'_, '_>, since_ms: u64, headers: &mut Vec<Header>) {
    let reset_s = since_ms.saturating_mul(US_PER_MS).saturating_add(entry.reply.reset_us).div_ceil(US_PER_S);
    let fields = [
        ("x-ratelimit-limit", entry.check.limit.quota()),
        ("x-ratelimit-remaining", entry.reply.remaining),
        ("x-ratelimit-reset", reset_s),
    ];
    headers.extend(fields.map(|(name, value)| (name, Cow::Owned(value.to_string()))));
}

#[cfg(test)]
mod tests;
