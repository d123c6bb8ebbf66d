// SPDX-License-Identifier: Apache-2.0
//! A request's value for a source: text for hashes and plan names, never for people.

use std::borrow::Cow;

use super::Masked;
use crate::claims::Claim;

/// A value. Has no `Debug`, so that no log shows one.
pub enum Value<'a> {
    /// The bytes that the source holds.
    Text(Cow<'a, [u8]>),
    /// The client's network.
    Network(Masked),
    /// A list of claims as canonical JSON. Not the same value as a text that reads alike.
    List(String),
}

impl<'a> Value<'a> {
    pub(super) fn borrowed(bytes: &'a [u8]) -> Self {
        Self::Text(Cow::Borrowed(bytes))
    }

    pub(super) fn owned(text: String) -> Self {
        Self::Text(Cow::Owned(text.into_bytes()))
    }

    /// A text stands for itself, a number or a boolean for its JSON. An empty list is no value.
    pub(super) fn of_claim(claim: Claim<'a>) -> Option<Self> {
        match claim {
            Claim::Text(text) => Some(Self::borrowed(text.as_bytes())),
            Claim::List(elements) if elements.is_empty() => None,
            Claim::List(_) => claim.to_json().map(Self::List),
            Claim::Number(_) | Claim::Bool(_) => claim.to_json().map(Self::owned),
        }
    }

    /// The text: what overrides are hashed from and plans are named by.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Network(masked) => masked.as_bytes(),
            Self::List(json) => json.as_bytes(),
        }
    }
}
