// SPDX-License-Identifier: Apache-2.0
//! Claims of the verified token, read in place out of the metadata that Envoy sends along.
//!
//! Nothing is decoded before a rule asks for a claim, and then only what lies on the way to it. Knows the wire format of
//! `envoy.config.core.v3.Metadata` and `google.protobuf.Struct`; of a broken message, what comes before that is read.

use limiter_core::claims::{Claim, Claims, MAX_LIST_DEPTH, PayloadPlace};

use super::protobuf::{Content, Fields};

/// `Metadata.filter_metadata`, `Struct.fields` (both maps by name) and `ListValue.values`.
const ENTRIES: u64 = 1;
/// Members of a map's entry.
const KEY: u64 = 1;
const VALUE: u64 = 2;

/// A request's `metadata_context`, as it came.
pub(super) struct ReceivedClaims<'m> {
    pub(super) metadata: &'m [u8],
    pub(super) place: &'m PayloadPlace,
}

impl Claims for ReceivedClaims<'_> {
    fn claim(&self, path: &[Box<str>]) -> Option<Claim<'_>> {
        let (last, parents) = path.split_last()?;
        let payload = object(member(member(self.metadata, &self.place.namespace)?, &self.place.key)?)?;
        let parent = parents.iter().try_fold(payload, |parent, name| object(member(parent, name)?))?;
        claim(member(parent, last)?, MAX_LIST_DEPTH)
    }
}

/// The value under a name in a message whose field 1 is a map. As in any protobuf map, the last of equal names counts.
fn member<'a>(message: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let entries = Fields::of(message).filter_map(|(number, content)| content.bytes().filter(|_| number == ENTRIES));
    entries.filter(|entry| field(entry, KEY) == Some(Content::Bytes(name.as_bytes()))).last().and_then(|entry| {
        // An entry without a value holds the default one, a message without fields.
        field(entry, VALUE).map_or(Some(&[][..]), Content::bytes)
    })
}

/// The `Struct` inside a `Value`.
fn object(value: &[u8]) -> Option<&[u8]> {
    match Fields::of(value).last()? {
        (5, Content::Bytes(fields)) => Some(fields),
        _ => None,
    }
}

/// What a `Value` holds. Of its kinds, which exclude each other, the last one counts.
fn claim(value: &[u8], depth: usize) -> Option<Claim<'_>> {
    match Fields::of(value).last()? {
        (2, Content::Fixed64(bits)) => Some(Claim::Number(f64::from_bits(bits))),
        (3, Content::Bytes(text)) => std::str::from_utf8(text).ok().map(Claim::Text),
        (4, Content::Varint(value)) => Some(Claim::Bool(value != 0)),
        (6, Content::Bytes(list)) => {
            let depth = depth.checked_sub(1)?;
            let elements = Fields::of(list).filter(|(number, _)| *number == ENTRIES);
            elements.map(|(_, element)| claim(element.bytes()?, depth)).collect::<Option<_>>().map(Claim::List)
        }
        _ => None,
    }
}

/// The last field of this number.
fn field(message: &[u8], number: u64) -> Option<Content<'_>> {
    Fields::of(message).filter(|(found, _)| *found == number).last().map(|(_, content)| content)
}

#[cfg(test)]
mod tests;
