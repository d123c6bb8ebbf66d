// SPDX-License-Identifier: Apache-2.0
//! What a request is known by in the document: the sources of keys and of plans, and where a token's claims lie.

use serde::Deserialize;

/// One source of a rule's key.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum KeyDoc {
    /// A header, by lower-case name.
    Header(String),
    /// A cookie, by name.
    Cookie(String),
    /// A query parameter, by name.
    Query(String),
    /// The client's network.
    #[serde(rename = "clientIP")]
    ClientIp(PrefixesDoc),
    /// A claim of the verified token, by the names of the members that lead to it.
    Claim(Vec<String>),
    /// The principal of the client's certificate.
    Principal(NothingDoc),
    /// The segment of the path that the route's template gives this name.
    Path(String),
    /// The host.
    Host(NothingDoc),
    /// The method.
    Method(NothingDoc),
}

/// An object without members, for sources that need none.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct NothingDoc {}

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
    /// A claim of the verified token, by the names of the members that lead to it.
    Claim(Vec<String>),
}

/// Where the payload of a verified token lies.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JwtDoc {
    /// The namespace of Envoy's dynamic metadata.
    pub metadata_namespace: String,
    /// The payload's key in it.
    pub payload_key: String,
}
