// SPDX-License-Identifier: Apache-2.0
//! Rate limit decisions as pure functions: no clock, no IO, no environment, no logging, no globals.
//!
//! The way of a request: [`Ruleset::prepare`] finds the rules that apply and what the store must check;
//! the caller has them counted, by [`local::LocalCounters`] and by the script with [`Prepared::store_calls`], whose answer is
//! a [`Reply`]; [`Prepared::verdict`] (or [`Prepared::verdict_without_store`], [`Prepared::verdict_on_store_failure`]) decides;
//! [`Prepared::respond`] says what the client gets.
#![forbid(unsafe_code)]

pub mod breakglass;
pub mod calendar;
pub mod claims;
pub mod compiled;
pub mod counters;
pub mod evaluate;
pub mod explain;
mod failing;
mod headers;
mod hex;
mod hold;
mod label;
pub mod limit;
pub mod local;
pub mod matching;
pub mod overrides;
mod percent;
pub mod prepare;
mod problem;
pub mod reply;
pub mod request;
pub mod respond;
pub mod ruleset;
#[cfg(test)]
mod samples;
pub mod subject;
pub mod verdict;

pub use breakglass::{BreakGlass, Caps};
pub use claims::{Claim, Claims, NoClaims, PayloadPlace};
pub use compiled::{Lasting, Policy, Rule, Ruleset};
pub use label::subject_label;
pub use limit::Limit;
pub use local::LocalCounters;
pub use prepare::{Check, LocalCall, Prepared, RuleUse, Standing, StoreCall};
pub use reply::{Answer, CheckReply, Reply, ReplyError, Wait};
pub use request::{CLIENT_IP_HEADER, Headers, Request};
pub use respond::{Delivery, Denial, Header, Metadata, Response};
pub use ruleset::{Mode, OnStoreFailure, RulesetError, Scope, Slot};
pub use subject::{BucketKey, HashKey, HashKeyError, Subject};
pub use verdict::{Decision, Outcome, Part, Verdict};
