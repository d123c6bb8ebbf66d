// SPDX-License-Identifier: Apache-2.0
//! Structured field values (RFC 9651) and the rate limit header fields.

/// The largest integer that a structured field can hold.
pub const MAX_INTEGER: u64 = 999_999_999_999_999;

/// A String in quotes, or nothing when the text holds something else than printable ASCII.
pub fn sf_string(text: &str) -> Option<String> {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='~' => quoted.push(character),
            _ => return None,
        }
    }
    quoted.push('"');
    Some(quoted)
}
