// SPDX-License-Identifier: Apache-2.0
//! Query parameters, as servers read forms (application/x-www-form-urlencoded of the WHATWG's URL standard).

use std::borrow::Cow;

use crate::percent;

/// The value of the first parameter of this name (names are case-sensitive): percent-decoded, with `+` as a space.
///
/// Nearly every server reads `+` so; left as it is, `a+b` and `a%20b` would be two subjects behind it that are one.
/// Invalid escapes stay as they are.
pub(super) fn value<'a>(target: &'a [u8], name: &str) -> Option<Cow<'a, [u8]>> {
    let end = target.iter().position(|byte| *byte == b'#').unwrap_or(target.len());
    let target = target.get(..end)?;
    let start = target.iter().position(|byte| *byte == b'?')? + 1;
    target.get(start..)?.split(|byte| *byte == b'&').find_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (found, value) = pair.split_at_checked(equals)?;
        // Compared byte by byte: a target of nothing but parameters must not cost an allocation for each.
        Decoded(found).eq(name.bytes()).then(|| decoded(value.get(1..).unwrap_or_default()))
    })
}

fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        Cow::Owned(Decoded(text).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// The bytes that a text stands for.
struct Decoded<'a>(&'a [u8]);

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (byte, escaped, rest) = percent::first(self.0)?;
        self.0 = rest;
        Some(if byte == b'+' && !escaped { b' ' } else { byte })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_parameter_of_a_name_counts_decoded() {
        let cases: [(&str, Option<&str>); 20] = [
            ("/?k=a", Some("a")),
            ("/?x=1&k=a&k=b", Some("a")),
            ("/p?k=a#k=b", Some("a")),
            ("/p#?k=a", None),
            ("/?k=a?b=c", Some("a?b=c")),
            ("/?k=a=b", Some("a=b")),
            ("/?k=a+b", Some("a b")),
            ("/?k=a%20b", Some("a b")),
            ("/?k=a%2Bb", Some("a+b")),
            ("/?k=a%2bb", Some("a+b")),
            ("/?k=%61%26%3d", Some("a&=")),
            ("/?%6b=a", Some("a")),
            ("/?k=100%&x=1", Some("100%")),
            ("/?k=%4&x=1", Some("%4")),
            ("/?k=%2541", Some("%41")),
            ("/?k=", Some("")),
            ("/?k", Some("")),
            ("/?K=a", None),
            ("/?kk=a&&", None),
            ("/k=a", None),
        ];
        for (target, expected) in cases {
            assert_eq!(expected.map(str::as_bytes), value(target.as_bytes(), "k").as_deref(), "{target:?}");
        }
    }

    #[test]
    fn names_may_need_decoding_too() {
        assert_eq!(Some(&b"1"[..]), value(b"/?a%20b=1", "a b").as_deref());
        assert_eq!(Some(&b"1"[..]), value(b"/?a+b=1", "a b").as_deref());
        assert_eq!(Some(&b"\xff\0"[..]), value(b"/?k=%ff%00", "k").as_deref());
    }
}
