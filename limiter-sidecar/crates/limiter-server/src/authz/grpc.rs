// SPDX-License-Identifier: Apache-2.0
//! Unary gRPC by hand: one length-prefixed message in, one out, the status in trailers.
//!
//! Two methods do not pay for a gRPC framework. Knows nothing of what the messages mean.

use bytes::{Buf, Bytes, BytesMut};
use h2::RecvStream;
use h2::server::SendResponse;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Response};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Length of the prefix of a message: a compression flag and a 32-bit length.
const PREFIX_BYTES: usize = 5;

/// Largest message that is read. Envoy's own default for all request headers together is 60 KiB; this leaves room for
/// gateways that were told to accept headers of a mebibyte.
const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// How a call failed: a gRPC status code and a fixed text, never anything that a client wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    /// gRPC status code.
    code: u8,
    message: &'static str,
}

impl Status {
    pub(crate) const NOT_FOUND: Self = Self::new(5, "unknown service");
    pub(crate) const TOO_LARGE: Self = Self::new(8, "message too large");
    pub(crate) const UNKNOWN_METHOD: Self = Self::new(12, "unknown method");
    pub(crate) const COMPRESSED: Self = Self::new(12, "compressed messages are not supported");
    pub(crate) const MALFORMED: Self = Self::new(13, "malformed message");
    pub(crate) const NO_RULES: Self = Self::new(14, "no rules yet");

    const fn new(code: u8, message: &'static str) -> Self {
        Self { code, message }
    }
}

/// Reads the one message of a unary call.
///
/// # Errors
/// A [`Status`] when the body is too large, compressed, cut off, or holds more or less than one message.
pub(super) async fn read_message(mut body: RecvStream) -> Result<Bytes, Status> {
    let (mut first, mut whole) = (Bytes::new(), BytesMut::new());
    while let Some(piece) = body.data().await {
        let piece = piece.map_err(|_| Status::MALFORMED)?;
        // Fails only when the stream is gone, which the next piece tells.
        let _gone = body.flow_control().release_capacity(piece.len());
        if first.len().max(whole.len()) + piece.len() > PREFIX_BYTES + MAX_MESSAGE_BYTES {
            return Err(Status::TOO_LARGE);
        }
        // A request of usual size comes in one piece, and stays where it is.
        if first.is_empty() {
            first = piece;
        } else {
            if whole.is_empty() {
                whole.extend_from_slice(&first);
            }
            whole.extend_from_slice(&piece);
        }
    }
    unframe(if whole.is_empty() { first } else { whole.freeze() })
}

/// The message inside one length-prefixed frame.
pub(super) fn unframe(mut frame: Bytes) -> Result<Bytes, Status> {
    if frame.len() < PREFIX_BYTES {
        return Err(Status::MALFORMED);
    }
    if frame.get_u8() != 0 {
        return Err(Status::COMPRESSED);
    }
    if frame.get_u32() as usize == frame.len() { Ok(frame) } else { Err(Status::MALFORMED) }
}

/// The beginning of a frame around a message of so many bytes, which follow.
pub(super) fn begin_frame(length: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(PREFIX_BYTES + length);
    // Not compressed. Answers are bounded by the rules of one request, far below four gibibytes.
    frame.push(0);
    frame.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    frame
}

/// Sends the answer: a frame and the status in trailers, or only a status, as headers that end the stream
/// ("Trailers-Only").
///
/// # Errors
/// When the call is over already.
pub(super) fn send(respond: &mut SendResponse<Bytes>, answer: Result<Bytes, Status>) -> Result<(), h2::Error> {
    match answer {
        Ok(frame) => {
            let mut stream = respond.send_response(head(), false)?;
            stream.send_data(frame, false)?;
            let mut trailers = HeaderMap::with_capacity(1);
            trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
            stream.send_trailers(trailers)
        }
        Err(status) => {
            let mut head = head();
            head.headers_mut().insert(GRPC_STATUS, HeaderValue::from(u16::from(status.code)));
            head.headers_mut().insert(GRPC_MESSAGE, HeaderValue::from_static(status.message));
            respond.send_response(head, true).map(drop)
        }
    }
}

fn head() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_frame_yields_its_message() {
        let frame = Bytes::from_static(&[0, 0, 0, 0, 3, b'a', b'b', b'c']);
        assert_eq!(unframe(frame), Ok(Bytes::from_static(b"abc")));
    }

    #[test]
    fn a_compressed_frame_is_refused() {
        let frame = Bytes::from_static(&[1, 0, 0, 0, 1, b'a']);
        assert_eq!(unframe(frame), Err(Status::COMPRESSED));
    }

    #[test]
    fn a_frame_whose_length_is_wrong_is_refused() {
        for frame in [&[0, 0, 0][..], &[0, 0, 0, 0, 2, b'a'], &[0, 0, 0, 0, 0, b'a']] {
            assert_eq!(unframe(Bytes::copy_from_slice(frame)), Err(Status::MALFORMED));
        }
    }
}
