// SPDX-License-Identifier: Apache-2.0
//! `grpc.health.v1.Health/Check`: whether the limiter should get requests. Decides nothing about them.

use bytes::Bytes;

use super::grpc::{self, Status};
use super::protobuf::{Fields, put_number};

/// The service that is asked about, by name or by none.
const SERVICE: &[u8] = b"envoy.service.auth.v3.Authorization";

/// `HealthCheckResponse.ServingStatus`.
const SERVING: u16 = 1;
const NOT_SERVING: u16 = 2;
/// A `HealthCheckResponse`.
const RESPONSE_BYTES: usize = 2;

/// The framed answer to a `HealthCheckRequest`.
///
/// # Errors
/// [`Status`] for a message that is none, or about another service.
pub(super) fn answer(request: &[u8], is_ready: bool) -> Result<Bytes, Status> {
    let mut fields = Fields::of(request);
    let mut service: &[u8] = b"";
    for (number, content) in fields.by_ref() {
        if number == 1 {
            service = content.bytes().ok_or(Status::MALFORMED)?;
        }
    }
    if !fields.is_whole() {
        return Err(Status::MALFORMED);
    }
    if !service.is_empty() && service != SERVICE {
        return Err(Status::NOT_FOUND);
    }
    let mut frame = grpc::begin_frame(RESPONSE_BYTES);
    put_number(&mut frame, 1, if is_ready { SERVING } else { NOT_SERVING });
    Ok(frame.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_service_is_known_by_its_name_and_by_none() {
        let named = [&[0x0a, 35][..], SERVICE].concat();
        for request in [&b""[..], &named] {
            assert_eq!(answer(request, true), Ok(Bytes::from_static(&[0, 0, 0, 0, 2, 8, 1])));
            assert_eq!(answer(request, false), Ok(Bytes::from_static(&[0, 0, 0, 0, 2, 8, 2])));
        }
        assert_eq!(answer(b"\x0a\x01x", true), Err(Status::NOT_FOUND));
        assert_eq!(answer(b"\x0a\x05x", true), Err(Status::MALFORMED));
    }
}
