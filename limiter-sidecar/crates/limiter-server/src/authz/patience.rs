// SPDX-License-Identifier: Apache-2.0
//! How long Envoy waits for an answer, as it says itself in `grpc-timeout`.
//!
//! When that time is over Envoy passes the request on, so a request that would be held for longer must be refused
//! instead. With the rendered configuration this never happens; with somebody's own it may.

use std::time::Duration;

use http::HeaderMap;

/// Digits that a value may have, by the gRPC protocol; more are no value.
const MAX_DIGITS: usize = 8;

/// The caller's time limit for this call; none when it does not say one that can be read.
pub(super) fn of(headers: &HeaderMap) -> Option<Duration> {
    parse(headers.get("grpc-timeout")?.as_bytes())
}

fn parse(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    match unit {
        b'H' => Some(Duration::from_secs(number * 3_600)),
        b'M' => Some(Duration::from_secs(number * 60)),
        b'S' => Some(Duration::from_secs(number)),
        b'm' => Some(Duration::from_millis(number)),
        b'u' => Some(Duration::from_micros(number)),
        b'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_of_the_protocol_is_read() {
        let read = ["2H", "2M", "2S", "50m", "50000u", "99999999n"].map(|text| parse(text.as_bytes()));
        let milliseconds = [7_200_000, 120_000, 2_000, 50, 50, 99];
        assert_eq!(milliseconds.map(Some), read.map(|time| time.map(|time| time.as_millis())));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["", "m", "50", "50x", "-1m", "1.5S", "123456789m", " 5m", "5 m"] {
            assert_eq!(None, parse(text.as_bytes()), "{text:?}");
        }
    }
}
