// SPDX-License-Identifier: Apache-2.0
//! Claims of the verified token, read in place out of the metadata that Envoy sends along.
//!
//! Nothing is decoded before a rule asks for a claim, and then only what lies on the way to it. Knows the wire format of
//! `envoy.config.core.v3.Metadata` and `google.protobuf.Struct`; a message that breaks it holds no claim.

use bytes::Bytes;
use limiter_core::claims::{Claim, Claims, MAX_LIST_DEPTH, PayloadPlace};

/// `Metadata.filter_metadata`, `Struct.fields` (both maps by name) and `ListValue.values`.
const ENTRIES: u64 = 1;
/// Members of a map's entry.
const KEY: u64 = 1;
const VALUE: u64 = 2;

/// A request's `metadata_context`, as it came.
pub(super) struct ReceivedClaims<'p> {
    pub(super) metadata: Bytes,
    pub(super) place: &'p PayloadPlace,
}

impl Claims for ReceivedClaims<'_> {
    fn claim(&self, path: &[Box<str>]) -> Option<Claim<'_>> {
        let (last, parents) = path.split_last()?;
        let payload = object(member(member(&self.metadata, &self.place.namespace)?, &self.place.key)?)?;
        let parent = parents.iter().try_fold(payload, |parent, name| object(member(parent, name)?))?;
        claim(member(parent, last)?, MAX_LIST_DEPTH)
    }
}

/// The value under a name in a message whose field 1 is a map. As in any protobuf map, the last of equal names counts.
fn member<'a>(message: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let entries = Fields(message).filter_map(|(number, content)| content.bytes().filter(|_| number == ENTRIES));
    entries.filter(|entry| field(entry, KEY) == Some(Content::Bytes(name.as_bytes()))).last().and_then(|entry| {
        // An entry without a value holds the default one, a message without fields.
        field(entry, VALUE).map_or(Some(&[][..]), Content::bytes)
    })
}

/// The `Struct` inside a `Value`.
fn object(value: &[u8]) -> Option<&[u8]> {
    match Fields(value).last()? {
        (5, Content::Bytes(fields)) => Some(fields),
        _ => None,
    }
}

/// What a `Value` holds. Of its kinds, which exclude each other, the last one counts.
fn claim(value: &[u8], depth: usize) -> Option<Claim<'_>> {
    match Fields(value).last()? {
        (2, Content::Fixed64(bits)) => Some(Claim::Number(f64::from_bits(bits))),
        (3, Content::Bytes(text)) => std::str::from_utf8(text).ok().map(Claim::Text),
        (4, Content::Varint(value)) => Some(Claim::Bool(value != 0)),
        (6, Content::Bytes(list)) => {
            let depth = depth.checked_sub(1)?;
            let elements = Fields(list).filter(|(number, _)| *number == ENTRIES);
            elements.map(|(_, element)| claim(element.bytes()?, depth)).collect::<Option<_>>().map(Claim::List)
        }
        _ => None,
    }
}

/// The last field of this number.
fn field(message: &[u8], number: u64) -> Option<Content<'_>> {
    Fields(message).filter(|(found, _)| *found == number).last().map(|(_, content)| content)
}

/// The fields of a message, by number. Ends where the format is broken.
struct Fields<'a>(&'a [u8]);

/// A field's content, by wire type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Content<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

impl<'a> Content<'a> {
    fn bytes(self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Content<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.varint()?;
        let content = match tag & 7 {
            0 => Content::Varint(self.varint()?),
            1 => Content::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Content::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Content::Fixed32
            }
            _ => return None,
        };
        Some((tag >> 3, content))
    }
}

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *self.take(1)?.first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
