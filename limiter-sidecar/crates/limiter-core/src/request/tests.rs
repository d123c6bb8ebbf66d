// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;

use super::*;
use crate::claims::NoClaims;

fn request(headers: &dyn Headers) -> Request<'_> {
    Request { method: "GET", host: "api.example.com", path: b"/", headers, principal: b"", claims: &NoClaims }
}

#[test]
fn grpc_is_told_by_the_content_type() {
    for (content_type, expected) in [
        ("application/grpc", true),
        ("application/grpc+proto", true),
        ("Application/gRPC", true),
        ("application/grpc;charset=utf-8", true),
        ("application/grpc-web", false),
        ("application/grpc-web+proto", false),
        ("application/grpcfoo", false),
        ("application/json", false),
        ("application/grp", false),
        ("", false),
    ] {
        let headers = HashMap::from([("content-type", content_type)]);
        assert_eq!(expected, request(&headers).is_grpc(), "{content_type:?}");
    }
}

#[test]
fn the_client_address_comes_from_envoys_header_only() {
    let headers = HashMap::from([("x-forwarded-for", "203.0.113.7"), ("x-real-ip", "203.0.113.7")]);
    assert_eq!(None, request(&headers).client_ip());
    let headers = HashMap::from([("x-forwarded-for", "203.0.113.7"), (CLIENT_IP_HEADER, "192.0.2.1")]);
    assert_eq!(Some("192.0.2.1"), request(&headers).client_ip());
}

#[test]
fn a_header_that_is_no_text_is_not_read_as_one() {
    let headers: HashMap<&str, &[u8]> = HashMap::from([(CLIENT_IP_HEADER, b"\xff".as_slice())]);
    assert_eq!(None, request(&headers).client_ip());
    assert_eq!(Some(b"\xff".as_slice()), headers.value(CLIENT_IP_HEADER));
}

#[test]
fn the_last_entry_of_a_list_counts() {
    let headers: &[(&str, &str)] = &[("a", "1"), ("b", "2"), ("a", "3")];
    assert_eq!(Some(b"3".as_slice()), headers.value("a"));
    assert_eq!(None, headers.value("c"));
}
