// SPDX-License-Identifier: Apache-2.0
mod generated;

use proptest::prelude::*;

use super::super::protobuf::{begin, put_number, put_text};
use super::*;

/// A field of bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    begin(&mut out, number, content.len());
    out.extend_from_slice(content);
    out
}

fn header(name: &str, value: &[u8]) -> Vec<u8> {
    field(3, &[field(1, name.as_bytes()), field(2, value)].concat())
}

/// `header_map` with these lines as raw values.
fn raw(lines: &[(&str, &[u8])]) -> Vec<u8> {
    let line = |(name, value): &(&str, &[u8])| field(1, &[field(1, name.as_bytes()), field(3, value)].concat());
    field(13, &lines.iter().flat_map(line).collect::<Vec<_>>())
}

/// A `CheckRequest` with this inside of its HTTP request.
fn check(http: &[u8]) -> Vec<u8> {
    field(1, &field(4, &field(2, http)))
}

fn decoded<R>(message: &[u8], then: impl FnOnce(Result<Received<'_>, Status>) -> R) -> R {
    let place = PayloadPlace { namespace: "jwt".into(), key: "payload".into() };
    then(Received::decode(message, &place))
}

fn value(message: &[u8], name: &str) -> Option<Vec<u8>> {
    decoded(message, |received| received.unwrap().request().headers.value(name).map(<[u8]>::to_vec))
}

#[test]
fn headers_are_found_in_either_form() {
    let message = check(&[header("x-a", b"1"), raw(&[("x-b", b"2"), ("x-b", b"\xff")])].concat());
    assert_eq!(value(&message, "x-a").as_deref(), Some(&b"1"[..]));
    assert_eq!(value(&message, "x-b").as_deref(), Some(&b"2,\xff"[..]));
    assert_eq!(value(&message, "x-c"), None);
}

#[test]
fn cookies_in_lines_of_their_own_are_one_header() {
    let message = check(&raw(&[("cookie", b"a=1"), ("cookie", b"sid=x,y")]));
    assert_eq!(value(&message, "cookie").as_deref(), Some(&b"a=1; sid=x,y"[..]));
}

#[test]
fn the_last_of_two_equal_entries_counts() {
    assert_eq!(value(&check(&[header("x-a", b"1"), header("X-A", b"2")].concat()), "x-a").as_deref(), Some(&b"2"[..]));
}

#[test]
fn a_path_that_is_no_utf_8_is_still_a_path() {
    decoded(&check(&field(4, b"/a\xff")), |received| assert_eq!(received.unwrap().request().path, b"/a\xff"));
}

#[test]
fn a_request_in_two_pieces_is_one() {
    let pieces = [check(&field(4, b"/a")), check(&field(5, b"h")), field(1, &field(1, &field(4, b"spiffe://a")))];
    decoded(&pieces.concat(), |received| {
        let received = received.unwrap();
        let request = received.request();
        assert_eq!((request.path, request.host, request.principal), (&b"/a"[..], "h", &b"spiffe://a"[..]));
    });
}

#[test]
fn a_message_without_an_http_request_is_refused() {
    let mut number = Vec::new();
    put_number(&mut number, 2, 7);
    let mut empty = Vec::new();
    put_text(&mut empty, 1, "");
    for message in [&b""[..], b"\xff\xff", &field(1, &field(4, &number)), &empty, &check(b"\x1a\x05\x0a")] {
        decoded(message, |received| assert_eq!(received.err(), Some(Status::MALFORMED), "{message:?}"));
    }
    assert!(decoded(&check(b""), |received| received.is_ok()));
}

proptest! {
    #[test]
    fn no_bytes_make_reading_fail(noise: Vec<u8>, at in 0_usize..60) {
        let mut broken = check(&[header("x-a", b"1"), raw(&[("x-b", b"2")]), field(4, b"/a")].concat());
        let at = at.min(broken.len());
        broken.splice(at..(at + noise.len() / 2).min(broken.len()), noise);
        decoded(&broken, |received| {
            if let Ok(received) = received {
                let _any = received.request().headers.value("x-a");
            }
        });
    }
}
