// SPDX-License-Identifier: Apache-2.0
//! The few bytes of protobuf that `ext_authz` needs, written by hand: requests as Envoy sends them, and whether an answer
//! allows.

use bytes::{BufMut, Bytes, BytesMut};

use crate::BenchError;
use crate::config::CheckedRequest;

/// The path of the one method.
pub(crate) const METHOD: &str = "/envoy.service.auth.v3.Authorization/Check";

/// A framed `CheckResponse` that allows: an empty status, an empty `ok_response`.
pub(crate) const ALLOWED: &[u8] = &[0, 0, 0, 0, 4, 0x0a, 0, 0x1a, 0];

const LENGTH_DELIMITED: u8 = 2;
const FRAME_PREFIX_BYTES: usize = 5;

/// The framed `CheckRequest` for one HTTP request.
pub(crate) fn request(about: &CheckedRequest) -> Bytes {
    let mut http = Vec::new();
    put(&mut http, 1, b"4e1a6f2b-6a0b-4a52-9f0e-7f3d7a1c0b11");
    put(&mut http, 2, about.method.as_bytes());
    let pseudo = [(":authority", &about.host), (":method", &about.method), (":path", &about.path)];
    for (name, value) in pseudo.into_iter().chain(about.headers.iter().map(|(name, value)| (name.as_str(), value))) {
        let mut entry = Vec::new();
        put(&mut entry, 1, name.as_bytes());
        put(&mut entry, 2, value.as_bytes());
        put(&mut http, 3, &entry);
    }
    put(&mut http, 4, about.path.as_bytes());
    put(&mut http, 5, about.host.as_bytes());
    put(&mut http, 6, b"http");
    put(&mut http, 10, b"HTTP/1.1");
    let mut attributes_request = Vec::new();
    put(&mut attributes_request, 2, &http);
    let mut attributes = Vec::new();
    put(&mut attributes, 4, &attributes_request);
    let mut message = Vec::new();
    put(&mut message, 1, &attributes);
    let mut frame = BytesMut::with_capacity(FRAME_PREFIX_BYTES + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(&message);
    frame.freeze()
}

/// Whether a framed `CheckResponse` allows.
///
/// # Errors
/// [`BenchError::Answer`] when it is no such message.
pub(crate) fn allows(frame: &[u8]) -> Result<bool, BenchError> {
    let mut rest = frame.get(FRAME_PREFIX_BYTES..).ok_or(BenchError::Answer("no whole message"))?;
    while let [key, after @ ..] = rest {
        let (length, after) = varint(after).ok_or(BenchError::Answer("a length is cut off"))?;
        match key >> 3 {
            2 => return Ok(false), // denied_response
            3 => return Ok(true),  // ok_response
            _ => rest = after.get(length..).ok_or(BenchError::Answer("a field is cut off"))?,
        }
    }
    Err(BenchError::Answer("neither allowed nor denied"))
}

fn put(message: &mut Vec<u8>, field: u8, value: &[u8]) {
    message.push(field << 3 | LENGTH_DELIMITED);
    let mut length = value.len();
    while length > 0x7f {
        message.push(u8::try_from(length & 0x7f).unwrap_or(0) | 0x80);
        length >>= 7;
    }
    message.push(u8::try_from(length).unwrap_or(0));
    message.extend_from_slice(value);
}

fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0)?;
    let value = bytes.get(..=end)?.iter().rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f));
    Some((value, bytes.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_above_one_byte_are_read_back() {
        let mut message = Vec::new();
        put(&mut message, 1, &[7; 300]);
        assert_eq!(varint(&message[1..]).map(|(length, rest)| (length, rest.len())), Some((300, 300)));
    }

    #[test]
    fn answers_are_told_apart() {
        assert!(allows(ALLOWED).unwrap());
        assert!(!allows(&[0, 0, 0, 0, 6, 0x0a, 2, 8, 7, 0x12, 0]).unwrap());
        assert!(allows(&[0, 0, 0, 0, 2, 0x0a, 0]).is_err());
        assert!(allows(b"").is_err());
    }
}
