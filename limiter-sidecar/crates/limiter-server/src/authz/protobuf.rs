// SPDX-License-Identifier: Apache-2.0
//! Protobuf's wire format, read in place and written once into a buffer of the right size. Knows no message.
//!
//! A generated decoder makes an object of each field, and a header alone takes three of them; a decision looks at few.

/// How deep groups may lie in each other: what other decoders bear.
const DEEPEST: usize = 100;

/// The fields of a message, by number. Ends where the format is broken; [`Fields::is_whole`] tells that from the end.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    broken: bool,
}

/// A field's content, by wire type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Content<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
    /// An old form of message, which none of ours has; what it holds is skipped.
    Group,
}

impl<'a> Content<'a> {
    /// What a text, a list of bytes or a message consists of; nothing for a number.
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Content<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
            self.broken = true;
        }
        field
    }
}

impl<'a> Fields<'a> {
    /// Those of this message.
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message, broken: false }
    }

    /// Whether nothing was broken so far.
    pub(super) fn is_whole(&self) -> bool {
        !self.broken
    }

    fn field(&mut self) -> Option<(u64, Content<'a>)> {
        let tag = self.varint()?;
        Some((tag >> 3, self.content(tag)?))
    }

    fn content(&mut self, tag: u64) -> Option<Content<'a>> {
        Some(match tag & 7 {
            0 => Content::Varint(self.varint()?),
            1 => Content::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Content::Bytes(self.take(length)?)
            }
            3 => {
                self.skip_group(tag >> 3)?;
                Content::Group
            }
            5 => {
                self.take(4)?;
                Content::Fixed32
            }
            _ => return None,
        })
    }

    /// Skips the rest of a group whose beginning was read, and the groups in it.
    fn skip_group(&mut self, number: u64) -> Option<()> {
        let mut open = vec![number];
        while let Some(innermost) = open.last() {
            let tag = self.varint()?;
            match tag & 7 {
                3 if open.len() == DEEPEST => return None,
                3 => open.push(tag >> 3),
                4 if tag >> 3 != *innermost => return None,
                4 => drop(open.pop()),
                _ => drop(self.content(tag)?),
            }
        }
        Some(())
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

/// The length of a field that holds so many bytes; its number is below 16, as all of ours are.
pub(super) const fn length_of(content: usize) -> usize {
    let mut length = 2 + content;
    let mut rest = content >> 7;
    while rest > 0 {
        length += 1;
        rest >>= 7;
    }
    length
}

/// Begins a field that so many bytes follow.
pub(super) fn begin(out: &mut Vec<u8>, number: u8, content: usize) {
    out.push(number << 3 | 2);
    put_varint(out, content);
}

/// A text.
pub(super) fn put_text(out: &mut Vec<u8>, number: u8, text: &str) {
    begin(out, number, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// A number that is not negative.
pub(super) fn put_number(out: &mut Vec<u8>, number: u8, value: u16) {
    out.push(number << 3);
    put_varint(out, usize::from(value));
}

fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        #[expect(clippy::cast_possible_truncation, reason = "the lowest seven bits are meant")]
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "at most 0x7f, see above")]
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_as_long_as_was_said(
            texts in proptest::collection::vec(".{0,300}", 0..5), number: u16,
        ) {
            let mut message = Vec::new();
            for text in &texts {
                let before = message.len();
                put_text(&mut message, 15, text);
                prop_assert_eq!(message.len() - before, length_of(text.len()));
            }
            put_number(&mut message, 1, number);
            let mut fields = Fields::of(&message);
            for text in &texts {
                prop_assert_eq!(fields.next(), Some((15, Content::Bytes(text.as_bytes()))));
            }
            prop_assert_eq!(fields.next(), Some((1, Content::Varint(u64::from(number)))));
            prop_assert!(fields.next().is_none() && fields.is_whole());
        }

        #[test]
        fn bytes_of_any_kind_end_and_never_panic(message: Vec<u8>) {
            let mut fields = Fields::of(&message);
            prop_assert!(fields.by_ref().count() <= message.len());
        }
    }

    /// So many groups in each other, the innermost with a number and a text.
    fn nested(depth: usize) -> Vec<u8> {
        let mut message = vec![0x0b; depth];
        message.extend([0x08, 5, 0x12, 2, 0x0c, 0x0c]);
        message.extend(vec![0x0c; depth]);
        message
    }

    #[test]
    fn groups_are_skipped_with_all_that_they_hold() {
        for depth in [1, 2, DEEPEST] {
            let message = [nested(depth), vec![0x08, 7]].concat();
            let mut fields = Fields::of(&message);
            assert_eq!(vec![(1, Content::Group), (1, Content::Varint(7))], fields.by_ref().collect::<Vec<_>>());
            assert!(fields.is_whole());
        }
    }

    #[test]
    fn a_group_that_another_end_closes_or_none_or_that_is_too_deep_is_broken() {
        for message in [&[0x0b, 0x14][..], &[0x0b, 0x13, 0x0c, 0x14], &[0x0b, 0x08, 1], &[0x0c], &nested(DEEPEST + 1)] {
            let mut fields = Fields::of(message);
            assert_eq!((0, false), (fields.by_ref().count(), fields.is_whole()), "{message:?}");
        }
    }

    #[test]
    fn what_is_cut_off_is_not_whole() {
        for message in [&[0x0a][..], &[0x0a, 2, 1], &[0x80], &[0x08], &[0x0d, 1, 2, 3], &[0x09], &[0x0b], &[0xff; 11]] {
            let mut fields = Fields::of(message);
            assert_eq!((fields.by_ref().count(), fields.is_whole()), (0, false), "{message:?}");
        }
    }
}
