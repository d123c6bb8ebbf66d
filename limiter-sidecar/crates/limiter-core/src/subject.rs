// SPDX-License-Identifier: Apache-2.0
//! Who a request counts for: the sources of a rule's key, their values, and the store key made of them.
//!
//! Owns the injective encoding and the keyed hash. Raw values leave this module only towards hashes, never as text.

mod address;
mod cookie;
mod hash;
mod query;
mod source;
mod value;

use std::net::IpAddr;

use crate::matching::{Captures, NormalHost};
use crate::request::Request;

pub use address::{Masked, Prefixes, parse_client_ip};
pub use hash::{BucketKey, HashKey, HashKeyError, PolicyTag, RuleId, Subject, rule_id};
pub use source::Source;
pub use value::Value;

/// What tells the subjects of a rule apart: sources in the user's order; none means one counter for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeySpec {
    sources: Box<[Source]>,
}

/// A request has no value for a source of the key: the position of the first such source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingSource(pub usize);

/// A request as one policy knows it: its client address parsed once, and what the policy's route takes from its path.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    request: Request<'a>,
    client: Option<IpAddr>,
    captures: Captures<'a>,
}

impl<'a> Identity<'a> {
    /// Parses the client's address out of the request. No policy has taken anything from the path yet.
    pub fn of(request: Request<'a>) -> Self {
        Self { request, client: request.client_ip().and_then(parse_client_ip), captures: Captures::NONE }
    }

    /// The same request for a policy whose route takes this from its path.
    #[must_use]
    pub fn with_captures(self, captures: Captures<'a>) -> Self {
        Self { captures, ..self }
    }

    /// The client's address, un-mapped, or nothing when it is missing or unreadable.
    pub fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// A header's value; an empty one counts as missing.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.request.headers.value(name).filter(|value| !value.is_empty())
    }

    /// The request's value for a source; an empty one counts as missing.
    pub fn value(&self, source: &Source) -> Option<Value<'a>> {
        let value = match source {
            Source::Header(name) => self.header(name).map(Value::borrowed),
            Source::Cookie(name) => {
                self.header("cookie").and_then(|header| cookie::value(header, name)).map(Value::borrowed)
            }
            Source::Query(name) => query::value(self.request.path, name).map(Value::Text),
            Source::ClientIp(prefixes) => self.client.map(|client| Value::Network(prefixes.mask(client))),
            Source::Claim(path) => self.request.claims.claim(path).and_then(Value::of_claim),
            Source::Principal => Some(Value::borrowed(self.request.principal)),
            Source::Path(name) => self.captures.get(name).map(Value::borrowed),
            Source::Host => Some(Value::owned(NormalHost::new(self.request.host).as_str().to_owned())),
            Source::Method => Some(Value::owned(self.request.method.to_ascii_uppercase())),
        };
        value.filter(|value| !value.as_bytes().is_empty())
    }
}

impl KeySpec {
    /// A key of these sources, in the user's order.
    pub fn new(sources: impl Into<Box<[Source]>>) -> Self {
        Self { sources: sources.into() }
    }

    /// The sources in the user's order.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Whether a value of it depends on the policy's routes.
    pub fn needs_captures(&self) -> bool {
        self.sources.iter().any(Source::needs_captures)
    }
}

#[cfg(test)]
mod tests;
