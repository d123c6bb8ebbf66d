// SPDX-License-Identifier: Apache-2.0
//! The request as the core sees it: borrowed text, nothing parsed yet.
//!
//! Owns which headers carry what the limiter itself needs. Trusts no other source for the client's address.

use crate::claims::Claims;

/// The header in which Envoy hands over the client's address. Envoy overwrites it on every request, so a client cannot set it.
pub const CLIENT_IP_HEADER: &str = "x-weir-client-ip";

const REQUEST_ID_HEADER: &str = "x-request-id";
const CONTENT_TYPE_HEADER: &str = "content-type";

/// Read access to a request's headers.
///
/// A header that was sent several times must have one value here, the same for the same lines (Envoy joins them with `,`).
pub trait Headers: Sync {
    /// The value of the header `name` (lower case), or nothing when it was not sent.
    fn value(&self, name: &str) -> Option<&[u8]>;
}

/// Headers as a short list of (lower-case name, value); the last of several entries with one name counts, as in a protobuf map.
impl<V: AsRef<[u8]> + Sync> Headers for [(&str, V)] {
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value.as_ref())
    }
}

impl<K, V, S> Headers for std::collections::HashMap<K, V, S>
where
    K: std::borrow::Borrow<str> + Eq + std::hash::Hash + Sync,
    V: AsRef<[u8]> + Sync,
    S: std::hash::BuildHasher + Sync,
{
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.get(name).map(AsRef::as_ref)
    }
}

impl<K, V> Headers for std::collections::BTreeMap<K, V>
where
    K: std::borrow::Borrow<str> + Ord + Sync,
    V: AsRef<[u8]> + Sync,
{
    fn value(&self, name: &str) -> Option<&[u8]> {
        self.get(name).map(AsRef::as_ref)
    }
}

/// One request to be decided.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The method, as sent (upper case for the registered ones).
    pub method: &'a str,
    /// The authority, as sent; a port and upper case are tolerated.
    pub host: &'a str,
    /// The request target, as sent: with query, not normalised, perhaps no text.
    pub path: &'a [u8],
    /// All headers that Envoy forwards to the limiter.
    pub headers: &'a dyn Headers,
    /// The principal of the client's certificate as Envoy verified it; empty without one.
    pub principal: &'a [u8],
    /// The claims of the token that Envoy verified.
    pub claims: &'a dyn Claims,
}

impl<'a> Request<'a> {
    /// The client's address as Envoy saw it, or nothing when the header is missing or no text.
    pub fn client_ip(&self) -> Option<&'a str> {
        self.text(CLIENT_IP_HEADER)
    }

    /// Envoy's id of the request, which is a UUID unless somebody changed Envoy's generator.
    pub fn id(&self) -> Option<&'a str> {
        self.text(REQUEST_ID_HEADER)
    }

    /// Whether a refusal must be told in gRPC's way (`application/grpc`, `application/grpc+proto`, …). As Envoy tells it:
    /// gRPC-Web is not gRPC, since it reads neither such a status nor an empty answer.
    pub fn is_grpc(&self) -> bool {
        const TYPE: &[u8] = b"application/grpc";
        let split = self.headers.value(CONTENT_TYPE_HEADER).and_then(|value| value.split_at_checked(TYPE.len()));
        split.is_some_and(|(start, rest)| {
            start.eq_ignore_ascii_case(TYPE) && matches!(rest.first(), None | Some(b'+' | b';'))
        })
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.headers.value(name).and_then(|value| std::str::from_utf8(value).ok())
    }
}

#[cfg(test)]
mod tests;
