// SPDX-License-Identifier: Apache-2.0
//! Hosts: patterns, and a request's authority in the form that is compared.

use std::borrow::Cow;

/// The longest name that DNS has.
const MAX_LENGTH: usize = 253;

/// Which hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// This one.
    Exact(Box<str>),
    /// Every host that ends in `.` and this, with at least one label before it.
    Wildcard(Box<str>),
}

impl HostPattern {
    /// Reads `api.example.com` or `*.example.com`.
    ///
    /// # Errors
    /// A message that says what would be right.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        let (wildcard, name) = match pattern.strip_prefix("*.") {
            Some(suffix) => (true, suffix),
            None => (false, pattern),
        };
        let is_label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
        };
        if name.len() > MAX_LENGTH || !name.split('.').all(is_label) {
            return Err(format!(
                "{pattern:?} is no host: write it in lower case without a port, as \"api.example.com\" or \"*.example.com\""
            ));
        }
        Ok(if wildcard { Self::Wildcard(name.into()) } else { Self::Exact(name.into()) })
    }
}

/// A request's host: lower case, without port and trailing dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalHost<'a>(Cow<'a, str>);

impl<'a> NormalHost<'a> {
    /// Normalises an authority.
    pub fn new(authority: &'a str) -> Self {
        let host = match authority.rsplit_once(':') {
            // A bracketed IPv6 address holds colons itself; there only what follows the bracket is a port.
            Some((host, port)) if !port.contains(']') => host,
            _ => authority,
        };
        let host = host.strip_suffix('.').unwrap_or(host);
        Self(if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(host.to_ascii_lowercase())
        } else {
            Cow::Borrowed(host)
        })
    }

    /// The host as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What follows each dot, longest first, but nothing longer than `longest`.
    pub fn suffixes(&self, longest: usize) -> impl Iterator<Item = &str> {
        let host = self.as_str();
        // One byte more than the suffix, for the dot before it.
        let from = host.len().saturating_sub(longest + 1);
        let tail = host.as_bytes().get(from..).unwrap_or_default();
        let dots = tail.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(move |(index, _)| from + index);
        dots.filter_map(|dot| host.get(dot + 1..))
    }
}
