// SPDX-License-Identifier: Apache-2.0
//! Claims of a token that Envoy has verified, as values that tell subjects apart.
//!
//! Owns what of a claim can be such a value, and its one text. Never reads a token: who implements [`Claims`] has it
//! from Envoy.

use serde_json::Value as Json;

/// Lists nested deeper than this are no value; tokens that people issue nest them once. Bounds the recursion.
pub const MAX_LIST_DEPTH: usize = 8;

/// Where Envoy's JWT filter leaves the payload of a token that it has verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadPlace {
    /// The namespace of the dynamic metadata.
    pub namespace: Box<str>,
    /// The key in it: the filter's `payload_in_metadata`.
    pub key: Box<str>,
}

/// Read access to the claims of a request's verified token.
pub trait Claims: Sync {
    /// The claim at the end of a path of member names. Nothing when there is no token or no such member, and for what
    /// tells no subjects apart: `null`, objects, lists that hold one of them.
    fn claim(&self, path: &[Box<str>]) -> Option<Claim<'_>>;
}

/// A claim, borrowed from the request. Numbers are doubles, as in Envoy's metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim<'a> {
    /// A string.
    Text(&'a str),
    /// A number.
    Number(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A list of claims.
    List(Vec<Self>),
}

/// The claims of a request without a token.
#[derive(Clone, Copy, Debug)]
pub struct NoClaims;

impl Claims for NoClaims {
    fn claim(&self, _path: &[Box<str>]) -> Option<Claim<'_>> {
        None
    }
}

/// A token's payload as people write it.
impl Claims for Json {
    fn claim(&self, path: &[Box<str>]) -> Option<Claim<'_>> {
        let found = path.iter().try_fold(self, |object, member| object.as_object()?.get(&**member))?;
        from_json(found, MAX_LIST_DEPTH)
    }
}

fn from_json(json: &Json, depth: usize) -> Option<Claim<'_>> {
    match json {
        Json::Null | Json::Object(_) => None,
        Json::Bool(value) => Some(Claim::Bool(*value)),
        Json::Number(number) => number.as_f64().map(Claim::Number),
        Json::String(text) => Some(Claim::Text(text)),
        Json::Array(elements) => {
            let depth = depth.checked_sub(1)?;
            elements.iter().map(|element| from_json(element, depth)).collect::<Option<_>>().map(Claim::List)
        }
    }
}

impl Claim<'_> {
    /// Canonical JSON (RFC 8785): one text for each value. Nothing when a number in it is none (infinite or NaN).
    pub fn to_json(&self) -> Option<String> {
        let mut out = String::new();
        self.write_json(&mut out)?;
        Some(out)
    }

    fn write_json(&self, out: &mut String) -> Option<()> {
        match self {
            // Texts have nothing that could fail; the escapes are those of RFC 8785.
            Self::Text(text) => out.push_str(&serde_json::to_string(text).ok()?),
            Self::Number(number) => out.push_str(&number_text(*number)?),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::List(elements) => {
                out.push('[');
                for (place, element) in elements.iter().enumerate() {
                    out.push_str(if place == 0 { "" } else { "," });
                    element.write_json(out)?;
                }
                out.push(']');
            }
        }
        Some(())
    }
}

/// A number as ECMAScript writes it: the shortest digits that read back as the same double, with an exponent only below
/// 10^-6 and from 10^21 on.
fn number_text(number: f64) -> Option<String> {
    // Both zeros are one number.
    let number = if number == 0.0 { 0.0 } else { number };
    match number.abs() {
        0.0 | 1e-6..1e21 => Some(number.to_string()),
        size if !size.is_finite() => None,
        size if size < 1.0 => Some(format!("{number:e}")),
        _ => Some(format!("{number:e}").replace('e', "e+")),
    }
}

#[cfg(test)]
mod tests;
