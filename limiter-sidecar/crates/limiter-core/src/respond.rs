// SPDX-License-Identifier: Apache-2.0
//! The answer to Envoy as plain data: status, headers, body, metadata.
//!
//! Owns which parts an answer has. What stands in them is `headers` and `problem`; how they travel is the server's matter.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::headers;
use crate::prepare::{Prepared, RuleUse};
use crate::problem::{self, Problem};
use crate::request::Request;
use crate::verdict::{Decision, Outcome, Verdict};

const GRPC_RESOURCE_EXHAUSTED: &str = "8";
const GRPC_UNAVAILABLE: &str = "14";

/// One response header: lower-case name and value, always to be set with OVERWRITE.
pub type Header = (&'static str, Cow<'static, str>);

/// What the answer depends on beside the request and its verdict.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// ms since the epoch (for the epoch dialect).
    pub now_ms: u64,
    /// The limiter's name, part of a decision's id where the request has no UUID.
    pub instance: &'a str,
    /// A number that this limiter gives out once.
    pub sequence: u64,
    /// Whether passing because of a store failure is shown in `x-ratelimit-mode`.
    pub mode_header: bool,
}

/// For access logs: what decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata<'r> {
    /// `namespace/name` of the policy; empty when none matched.
    pub policy: &'r str,
    /// The rule's name; empty when none applied.
    pub rule: &'r str,
    /// `allowed`, `refused`, `open`, `local` or `closed`.
    pub decision: &'static str,
    /// The rule's mode, `Enforce` or `Shadow`; empty when none applied.
    pub mode: &'static str,
}

/// A refusal's own parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// 429, 503, or 200 for a gRPC request (whose status stands in `grpc-status`).
    pub status: u16,
    /// `application/problem+json`, one line; empty for a gRPC request.
    pub body: String,
}

/// The answer. `denial` is absent when the request passes; then `headers` are for the response to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'r> {
    /// Present when the request must not pass.
    pub denial: Option<Denial>,
    /// In the order of sending.
    pub headers: Vec<Header>,
    /// For access logs.
    pub metadata: Metadata<'r>,
}

impl<'r> Prepared<'r> {
    /// What Envoy is told about a request that was judged.
    pub fn respond(&self, request: &Request<'_>, verdict: &Verdict, delivery: &Delivery<'_>) -> Response<'r> {
        let metadata = self.metadata(verdict);
        let named = verdict.named.and_then(|place| self.rules().get(place));
        let (denial, headers) = match named {
            Some(named) => {
                let problem = Problem::new(self, named, request, verdict, delivery);
                let (denial, mut headers) = deny(&problem, request.is_grpc(), verdict);
                if named.rule.is_public() {
                    headers::append_fields(self, verdict, delivery.now_ms, &mut headers);
                    headers.extend(self.mode(verdict, delivery));
                }
                (Some(denial), headers)
            }
            None => (None, self.passing_headers(verdict, delivery)),
        };
        Response { denial, headers, metadata }
    }

    fn passing_headers(&self, verdict: &Verdict, delivery: &Delivery<'_>) -> Vec<Header> {
        let mut headers = Vec::new();
        if matches!(verdict.decision, Decision::Allowed | Decision::Local) {
            headers::append_fields(self, verdict, delivery.now_ms, &mut headers);
        }
        headers.extend(self.mode(verdict, delivery));
        headers
    }

    /// The header that says what stood in for the store. Of a rule that is not shown there is no trace here either.
    fn mode(&self, verdict: &Verdict, delivery: &Delivery<'_>) -> Option<Header> {
        let judged = || self.rules().iter().zip(&verdict.outcomes).filter(|(rule, _)| is_shown(rule));
        let mode = match verdict.decision {
            Decision::Open if judged().any(|(_, outcome)| *outcome == Outcome::StoreFailureOpen) => "open",
            Decision::Open | Decision::Local | Decision::Refused if judged().any(|(_, outcome)| outcome.is_local()) => {
                "local"
            }
            _ => return None,
        };
        delivery.mode_header.then_some(("x-ratelimit-mode", Cow::Borrowed(mode)))
    }

    /// The rule that decided: the named one, else the enforcing one with the fewest tokens left, else the first.
    fn metadata(&self, verdict: &Verdict) -> Metadata<'r> {
        let fewest = || {
            let checked = self.rules().iter().zip(&verdict.checks).filter_map(|(rule, check)| Some((rule, (*check)?)));
            let enforcing = checked.filter(|(rule, _)| rule.enforces());
            enforcing.min_by_key(|(_, check)| check.remaining).map(|(rule, _)| rule)
        };
        let rule = match verdict.named {
            Some(place) => self.rules().get(place),
            None => fewest().or_else(|| self.rules().first()),
        };
        Metadata {
            policy: rule.map_or("", |rule| rule.policy.id()),
            rule: rule.map_or("", |rule| rule.rule.name()),
            decision: match verdict.decision {
                Decision::Allowed | Decision::Unmatched | Decision::Exempt => "allowed",
                Decision::Refused => "refused",
                Decision::Open => "open",
                Decision::Local => "local",
                Decision::Closed => "closed",
            },
            mode: rule.map_or("", |rule| rule.mode.as_str()),
        }
    }
}

fn is_shown(rule: &RuleUse<'_>) -> bool {
    rule.enforces() && rule.rule.is_public()
}

/// The refusal without the rate limit fields. gRPC has its own status and no body that a client would read.
fn deny(problem: &Problem<'_>, grpc: bool, verdict: &Verdict) -> (Denial, Vec<Header>) {
    let closed = verdict.decision == Decision::Closed;
    let mut headers: Vec<Header> = Vec::with_capacity(8);
    if let Some(seconds) = problem::retry_after_s(verdict) {
        headers.push(("retry-after", Cow::Owned(seconds.to_string())));
    }
    headers.push(("cache-control", Cow::Borrowed("no-store")));
    if !closed {
        // Tells Envoy's own retry policy to leave it at that.
        headers.push(("x-envoy-ratelimited", Cow::Borrowed("true")));
    }
    if grpc {
        headers.push(("grpc-status", Cow::Borrowed(if closed { GRPC_UNAVAILABLE } else { GRPC_RESOURCE_EXHAUSTED })));
        headers.push(("grpc-message", Cow::Owned(percent_encoded(problem.sentence()))));
        return (Denial { status: 200, body: String::new() }, headers);
    }
    headers.push(("content-type", Cow::Borrowed("application/problem+json")));
    (Denial { status: problem.status(), body: problem.to_json() }, headers)
}

/// As gRPC encodes messages: printable ASCII stays, `%` and all else become `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | ..b' ' | 0x7f.. => {
                // Writing to a String cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
            _ => encoded.push(char::from(byte)),
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
