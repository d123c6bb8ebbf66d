// SPDX-License-Identifier: Apache-2.0
//! Problem bodies (RFC 9457): one line of JSON, and the same in a sentence for gRPC.
//!
//! Owns the texts. Echoes nothing of the request but its id, and that only when it is a UUID.

use serde::Serialize;

use crate::headers;
use crate::limit::ceil_seconds;
use crate::prepare::{Prepared, RuleUse, Standing};
use crate::reply::Wait;
use crate::request::Request;
use crate::respond::Delivery;
use crate::verdict::{Decision, Outcome, Verdict};

const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const REDUCED_CAPACITY: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

/// The `code` of a refusal for want of the rule's key.
const MISSING_KEY: &str = "missing_key";

/// The `code` of a refusal because the store does not answer.
const UNAVAILABLE: &str = "limiter_unavailable";

/// A refusal's body.
#[derive(Debug, Serialize)]
pub(crate) struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    #[serde(flatten)]
    public: Option<Public<'a>>,
}

/// What the client of a silent rule is not told.
#[derive(Debug, Serialize)]
struct Public<'a> {
    detail: String,
    instance: String,
    code: &'a str,
    policy: &'a str,
    rule: &'a str,
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "Option::is_none")]
    retry_after_s: Option<u64>,
    #[serde(rename = "violated-policies")]
    violated: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documentation: Option<&'a str>,
}

impl<'a> Problem<'a> {
    /// The problem of a verdict that does not pass, as told by `named`.
    pub(crate) fn new(
        prepared: &Prepared<'a>,
        named: &RuleUse<'a>,
        request: &Request<'_>,
        verdict: &Verdict,
        delivery: &Delivery<'_>,
    ) -> Self {
        let closed = verdict.decision == Decision::Closed;
        let status = if closed { 503 } else { 429 };
        if !named.rule.is_public() {
            let title = if closed { "Service Unavailable" } else { "Too Many Requests" };
            return Self { kind: "about:blank", title, status, public: None };
        }
        let retry_after_s = retry_after_s(verdict);
        let public = Public {
            detail: detail(named, closed, is_local(verdict), retry_after_s),
            instance: instance(request, delivery),
            code: match named.standing {
                _ if closed => UNAVAILABLE,
                Standing::DeniedMissingKey(_) => MISSING_KEY,
                _ => named.rule.code(),
            },
            policy: named.policy.id(),
            rule: named.rule.name(),
            retry_after_s,
            violated: violated(prepared, verdict),
            documentation: named.policy.documentation(),
        };
        let (kind, title) = if closed {
            (REDUCED_CAPACITY, "Temporarily reduced capacity")
        } else {
            (QUOTA_EXCEEDED, "Quota exceeded")
        };
        Self { kind, title, status, public: Some(public) }
    }

    /// The HTTP status that it states.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// One line of JSON.
    pub(crate) fn to_json(&self) -> String {
        // Strings and numbers only: serialising them into memory cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// One sentence.
    pub(crate) fn sentence(&self) -> &str {
        self.public.as_ref().map_or(self.title, |public| &public.detail)
    }
}

/// Whole seconds that the client must wait, at least 1, or nothing when no waiting helps.
pub(crate) fn retry_after_s(verdict: &Verdict) -> Option<u64> {
    match verdict.wait? {
        Wait::Us(us) => Some(ceil_seconds(us)),
        Wait::Never => None,
    }
}

/// Whether the limiter's own share of the rule that is named has refused.
fn is_local(verdict: &Verdict) -> bool {
    let outcome = verdict.named.and_then(|place| verdict.outcomes.get(place));
    outcome.is_some_and(|outcome| outcome.is_local())
}

fn detail(named: &RuleUse<'_>, closed: bool, local: bool, retry_after_s: Option<u64>) -> String {
    let name = named.rule.name();
    let retry = retry_after_s.map_or_else(String::new, |seconds| format!("; retry in {seconds} s"));
    match named.standing {
        _ if closed => format!("Limit \"{name}\" cannot be checked at the moment{retry}."),
        Standing::Check(check) if local => {
            let share = check.limit.local().unwrap_or(check.limit);
            format!("Limit \"{name}\" allows {share} here while its counters cannot be reached{retry}.")
        }
        Standing::Check(check) if retry_after_s.is_none() => {
            let most = check.limit.describe_largest_cost();
            format!("The request costs {}, more than {most} that limit \"{name}\" can ever allow.", check.cost)
        }
        Standing::Check(check) => format!("Limit \"{name}\" allows {}{retry}.", check.limit),
        Standing::Blocked { .. } => format!("The subject of limit \"{name}\" is blocked by an override{retry}."),
        Standing::DeniedMissingKey(source) => {
            format!("Limit \"{name}\" needs the {}, which the request lacks.", source.describe())
        }
        Standing::Exempt | Standing::SkippedMissingKey => format!("Limit \"{name}\" does not apply."),
    }
}

/// The public rules that refuse, by the names of the header fields.
fn violated<'a>(prepared: &Prepared<'a>, verdict: &Verdict) -> Vec<&'a str> {
    let refusing = |outcome: &Outcome| {
        matches!(outcome, Outcome::Rejected | Outcome::LocalRejected | Outcome::Blocked | Outcome::StoreFailureClosed)
    };
    let judged = prepared.rules().iter().zip(&verdict.outcomes);
    judged
        .filter(|(rule, outcome)| rule.enforces() && rule.rule.is_public() && refusing(outcome))
        .map(|(rule, _)| headers::item_name(prepared, rule.rule))
        .collect()
}

/// The request's own UUID, or a number of this limiter.
fn instance(request: &Request<'_>, delivery: &Delivery<'_>) -> String {
    match request.id().filter(|id| is_uuid(id)) {
        Some(id) => format!("urn:uuid:{}", id.to_ascii_lowercase()),
        None => format!("urn:weir:decision:{}-{}", delivery.instance, delivery.sequence),
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests;
