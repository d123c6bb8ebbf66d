// SPDX-License-Identifier: Apache-2.0
//! RESP as far as every request needs it: commands written into the connection's own buffer, and where a reply ends.
//!
//! The reply of a script is read here. Whatever else a server says is handed, whole, to the client library's parser.

use redis::{ErrorKind, RedisError, Value};

/// The longest reply that is waited for: what is longer is none, and must not fill the memory.
const LONGEST: usize = 64 << 20;

/// Begins a command of so many arguments, the command's own name included.
pub(super) fn begin(out: &mut Vec<u8>, arguments: usize) {
    head(out, b'*', arguments);
}

/// One argument.
pub(super) fn argument(out: &mut Vec<u8>, bytes: &[u8]) {
    head(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// A number as an argument.
pub(super) fn number(out: &mut Vec<u8>, number: usize) {
    argument(out, itoa::Buffer::new().format(number).as_bytes());
}

fn head(out: &mut Vec<u8>, kind: u8, number: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The first reply in `bytes` and how many of them it takes; nothing while more must come.
///
/// # Errors
/// Of the kind `Parse`, for what is no reply of RESP2.
pub(super) fn take(bytes: &[u8]) -> Result<Option<(Value, usize)>, RedisError> {
    let Some(length) = length(bytes)? else { return Ok(None) };
    let whole = bytes.get(..length).unwrap_or_default();
    let value = match script_reply(whole) {
        Some(reply) => Value::BulkString(reply.to_vec()),
        None => redis::parse_redis_value(whole)?,
    };
    Ok(Some((value, length)))
}

/// What stands in a whole reply that is a string.
fn script_reply(whole: &[u8]) -> Option<&[u8]> {
    let content = whole.strip_prefix(b"$")?.strip_suffix(b"\r\n")?;
    let start = content.iter().position(|byte| *byte == b'\n')? + 1;
    content.get(start..)
}

/// How many bytes the first reply takes, or nothing while more must come. Asks for no depth: an array only makes more
/// replies due.
fn length(bytes: &[u8]) -> Result<Option<usize>, RedisError> {
    let (mut end, mut due) = (0, 1_usize);
    while due > 0 {
        due -= 1;
        let rest = bytes.get(end..).unwrap_or_default();
        let Some(kind) = rest.first() else { return Ok(None) };
        if !matches!(kind, b'+' | b'-' | b':' | b'$' | b'*') {
            return Err(garbled());
        }
        let Some(line) = rest.iter().position(|byte| *byte == b'\n') else {
            return if rest.len() > LONGEST { Err(garbled()) } else { Ok(None) };
        };
        end += line + 1;
        let Some(Some(text)) = rest.get(1..line).map(|line| line.strip_suffix(b"\r")) else { return Err(garbled()) };
        match kind {
            b'$' => end += count(text)?.map_or(0, |length| length + 2),
            b'*' => due += count(text)?.unwrap_or(0),
            _ => {}
        }
        if end > LONGEST || due > LONGEST {
            return Err(garbled());
        }
    }
    Ok((end <= bytes.len()).then_some(end))
}

/// A length; nothing for -1, which stands for a nil.
fn count(text: &[u8]) -> Result<Option<usize>, RedisError> {
    if text == b"-1" {
        return Ok(None);
    }
    // More digits than any length that is waited for would overflow.
    if text.is_empty() || text.len() > 9 {
        return Err(garbled());
    }
    text.iter()
        .try_fold(0, |count, digit| match digit {
            b'0'..=b'9' => Ok(count * 10 + usize::from(digit - b'0')),
            _ => Err(garbled()),
        })
        .map(Some)
}

/// What came is no RESP.
pub(super) fn garbled() -> RedisError {
    RedisError::from((ErrorKind::Parse, "what came is no reply of a Redis"))
}

#[cfg(test)]
mod tests;
