// SPDX-License-Identifier: Apache-2.0
//! The answer to Envoy as plain data: status, headers, body, metadata.
//!
//! Owns which parts an answer has. What stands in them is `headers` and `problem`; how they travel is the server's matter.

use std::borrow::Cow;

/// One response header: lower-case name and value, always to be set with OVERWRITE.
pub type Header = (&'static str, Cow<'static, str>);

/// What the answer depends on beside the request and its verdict.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// Epoch seconds (for the epoch dialect).
    pub now_s: u64,
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
    /// `allowed`, `refused`, `open` or `closed`.
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

impl<'r> crate::prepare::Prepared<'r> {
    /// What Envoy is told.
    pub fn respond(&self, request: &crate::Request<'_>, verdict: &crate::Verdict, delivery: &Delivery<'_>) -> Response<'r> {
        let _ = (request, verdict, delivery);
        todo!()
    }
}
