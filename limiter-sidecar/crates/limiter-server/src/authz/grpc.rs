// SPDX-License-Identifier: Apache-2.0
//! Unary gRPC by hand: one length-prefixed message in, one out, the status in trailers.
//!
//! Two methods do not pay for a gRPC framework. Knows nothing of what the messages mean.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};

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

/// The body of every answer: at most one message, then trailers.
#[derive(Debug)]
pub(crate) struct Unary {
    message: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Body for Unary {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = match self.message.take() {
            Some(message) => Some(Frame::data(message)),
            None => self.trailers.take().map(Frame::trailers),
        };
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.message.as_ref().map_or(0, |message| message.len() as u64))
    }
}

/// Reads the one message of a unary call.
///
/// # Errors
/// A [`Status`] when the body is too large, compressed, cut off, or holds more or less than one message.
pub(crate) async fn read_message(body: Incoming) -> Result<Bytes, Status> {
    let collected = match Limited::new(body, MAX_MESSAGE_BYTES + PREFIX_BYTES).collect().await {
        Ok(collected) => collected,
        Err(error) if error.is::<LengthLimitError>() => return Err(Status::TOO_LARGE),
        Err(_) => return Err(Status::MALFORMED),
    };
    unframe(collected.to_bytes())
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

/// A successful answer that carries this frame.
pub(crate) fn answer(frame: Bytes) -> Response<Unary> {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    response(Unary { message: Some(frame), trailers: Some(trailers) })
}

/// An answer that only carries a status, as headers that end the stream ("Trailers-Only").
pub(crate) fn failure(status: Status) -> Response<Unary> {
    let mut failure = response(Unary { message: None, trailers: None });
    failure.headers_mut().insert("grpc-status", HeaderValue::from(u16::from(status.code)));
    failure.headers_mut().insert("grpc-message", HeaderValue::from_static(status.message));
    failure
}

fn response(body: Unary) -> Response<Unary> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
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
