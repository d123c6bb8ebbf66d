// SPDX-License-Identifier: Apache-2.0
//! What a request is known by in the document: the sources of keys and of plans.

use serde::Deserialize;

/// One source of a rule's key.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum KeyDoc {
    /// A header, by lower-case name.
    Header(String),
    /// The client's network.
    #[serde(rename = "clientIP")]
    ClientIp(PrefixesDoc),
}

/// How much of a client's address counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrefixesDoc {
    /// 0 to 32 bits.
    pub ipv4_prefix: u8,
    /// 0 to 128 bits.
    pub ipv6_prefix: u8,
}

/// Where a request's plan is read from.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum PlanSourceDoc {
    /// A header, by lower-case name.
    Header(String),
}
