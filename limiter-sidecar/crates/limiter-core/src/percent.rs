// SPDX-License-Identifier: Apache-2.0
//! Percent-encoding (RFC 3986, section 2.1), one byte at a time.

/// The first byte of `text`, decoded if an escape stands there, whether one did, and what follows. An invalid escape is
/// kept.
pub(crate) fn first(text: &[u8]) -> Option<(u8, bool, &[u8])> {
    let hex = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    if let [b'%', high, low, rest @ ..] = text
        && let (Some(high), Some(low)) = (hex(*high), hex(*low))
    {
        return Some((high << 4 | low, true, rest));
    }
    text.split_first().map(|(byte, rest)| (*byte, false, rest))
}
