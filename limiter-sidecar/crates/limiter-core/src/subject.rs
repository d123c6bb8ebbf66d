// SPDX-License-Identifier: Apache-2.0
//! Who a request counts for: the sources of a rule's key, their values, and the store key made of them.
//!
//! Owns the injective encoding and the keyed hash. Raw values leave this module only towards hashes, never as text.

mod address;
mod hash;

use std::net::IpAddr;

use crate::request::Request;
use crate::ruleset::KeyDoc;

pub use address::{Masked, Prefixes, parse_client_ip};
pub use hash::{BucketKey, HashKey, HashKeyError, PolicyTag, RuleId, Subject, rule_id};

/// One source of a rule's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The value of a header (lower-case name).
    Header(Box<str>),
    /// The client's network.
    ClientIp(Prefixes),
}

impl Source {
    /// As overrides name it: `header:<name>` or `clientIP`.
    pub fn name(&self) -> String {
        match self {
            Self::Header(name) => format!("header:{name}"),
            Self::ClientIp(_) => "clientIP".to_owned(),
        }
    }

    /// For people: `header x-api-key` or `client address`.
    pub fn describe(&self) -> String {
        match self {
            Self::Header(name) => format!("header {name}"),
            Self::ClientIp(_) => "client address".to_owned(),
        }
    }
}

/// What tells the subjects of a rule apart: sources in the user's order; none means one counter for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeySpec {
    sources: Box<[Source]>,
}

/// A request has no value for a source of the key: the position of the first such source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingSource(pub usize);

/// A request with its client address parsed once.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    request: Request<'a>,
    client: Option<IpAddr>,
}

impl<'a> Identity<'a> {
    /// Parses the client's address out of the request.
    pub fn of(request: Request<'a>) -> Self {
        Self { request, client: request.client_ip().and_then(parse_client_ip) }
    }

    /// The client's address, un-mapped, or nothing when it is missing or unreadable.
    pub fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// A header's value; an empty one counts as missing.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.request.headers.value(name).filter(|value| !value.is_empty())
    }
}

impl KeySpec {
    /// From the document. The caller has checked that names and prefix lengths make sense.
    pub fn from_doc(key: &[KeyDoc]) -> Self {
        let sources = key.iter().map(|entry| match entry {
            KeyDoc::Header(name) => Source::Header(name.as_str().into()),
            KeyDoc::ClientIp(prefixes) => {
                Source::ClientIp(Prefixes { ipv4: prefixes.ipv4_prefix, ipv6: prefixes.ipv6_prefix })
            }
        });
        Self { sources: sources.collect() }
    }

    /// The sources in the user's order.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Calls `visit` with each source and the request's value for it, if it has one, in order.
    pub fn visit<'s>(&'s self, identity: &Identity<'_>, mut visit: impl FnMut(&'s Source, Option<&[u8]>)) {
        for source in &self.sources {
            match source {
                Source::Header(name) => visit(source, identity.header(name)),
                Source::ClientIp(prefixes) => {
                    let masked = identity.client().map(|client| prefixes.mask(client));
                    visit(source, masked.as_ref().map(Masked::as_bytes));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
