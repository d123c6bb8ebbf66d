// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

/// A field of wire type 2.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 0x7f {
        out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend_from_slice(content);
    out
}

fn entry(key: &str, value: &[u8]) -> Vec<u8> {
    bytes(1, &[bytes(1, key.as_bytes()), bytes(2, value)].concat())
}

fn structure(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let fields: Vec<_> = fields.iter().map(|(key, value)| entry(key, value)).collect();
    bytes(5, &fields.concat())
}

fn text(text: &str) -> Vec<u8> {
    bytes(3, text.as_bytes())
}

fn number(number: f64) -> Vec<u8> {
    [&[2 << 3 | 1], &number.to_le_bytes()[..]].concat()
}

fn list(elements: &[Vec<u8>]) -> Vec<u8> {
    let elements: Vec<_> = elements.iter().map(|element| bytes(1, element)).collect();
    bytes(6, &elements.concat())
}

fn place() -> PayloadPlace {
    PayloadPlace { namespace: "jwt".into(), key: "payload".into() }
}

/// The metadata of a token with this payload (a `Value`), beside another filter's.
fn metadata(payload: &[u8]) -> Vec<u8> {
    [entry("lua", &entry("payload", &text("no"))), entry("jwt", &entry("payload", payload))].concat()
}

fn asked<R>(metadata: &[u8], path: &[&str], then: impl FnOnce(Option<Claim<'_>>) -> R) -> R {
    let path: Vec<Box<str>> = path.iter().map(|name| (*name).into()).collect();
    let place = place();
    then(ReceivedClaims { metadata, place: &place }.claim(&path))
}

#[test]
fn a_claim_is_found_at_the_end_of_its_path() {
    let org = structure(&[("id", number(7.5))]);
    let roles = list(&[text("a"), number(1.0), list(&[vec![4 << 3, 1]])]);
    let payload = structure(&[
        ("sub", text("u1")),
        ("org", org),
        ("roles", roles),
        ("off", vec![4 << 3, 0]),
        ("sub", text("u2")),
    ]);
    let nested = Claim::List(vec![Claim::Bool(true)]);
    let cases = [
        (&["sub"][..], Some(Claim::Text("u2"))),
        (&["org", "id"], Some(Claim::Number(7.5))),
        (&["roles"], Some(Claim::List(vec![Claim::Text("a"), Claim::Number(1.0), nested]))),
        (&["off"], Some(Claim::Bool(false))),
        (&["org"], None),
        (&["sub", "id"], None),
        (&["none"], None),
        (&[], None),
    ];
    for (path, expected) in cases {
        asked(&metadata(&payload), path, |found| assert_eq!(expected, found, "{path:?}"));
    }
}

#[test]
fn what_is_no_claim_counts_as_none() {
    let null = vec![1 << 3, 0];
    let deep = (0..=MAX_LIST_DEPTH).fold(text("x"), |inner, _| list(&[inner]));
    for value in [null.clone(), vec![], list(&[text("a"), null]), deep, bytes(3, b"\xff"), vec![2 << 3 | 1, 0, 0]] {
        asked(&metadata(&structure(&[("c", value.clone())])), &["c"], |found| assert_eq!(None, found, "{value:?}"));
    }
}

#[test]
fn a_payload_elsewhere_is_none() {
    for metadata in [vec![], entry("jwt", &entry("other", &structure(&[("c", text("x"))]))), entry("jwt", &text("x"))] {
        asked(&metadata, &["c"], |found| assert_eq!(None, found));
    }
}

#[test]
fn what_comes_before_a_break_is_read() {
    let broken = [metadata(&structure(&[("c", text("x"))])), vec![0xff]].concat();
    asked(&broken, &["c"], |found| assert_eq!(Some(Claim::Text("x")), found));
}

proptest! {
    #[test]
    fn no_bytes_make_reading_fail(noise in prop::collection::vec(any::<u8>(), 0..40), at in 0_usize..60) {
        let mut broken = metadata(&structure(&[("c", list(&[text("a"), number(2.0)]))]));
        let at = at.min(broken.len());
        broken.splice(at..(at + noise.len() / 2).min(broken.len()), noise);
        asked(&broken, &["c"], |_| ());
    }
}
