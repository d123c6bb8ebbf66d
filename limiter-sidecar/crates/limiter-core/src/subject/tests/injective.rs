// SPDX-License-Identifier: Apache-2.0
//! No two different tuples share a counter, whatever the values are.

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::{Value as Json, json};

use super::*;
use crate::matching::{MethodSet, NormalPath, PathPattern, Route};

/// Values that a weak encoding would confuse: separators, lengths, NUL, what looks like another source or a list, long.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a",
        "b",
        ":",
        "|",
        ",",
        "\0",
        "=",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "&",
        "%",
        "+",
        "\u{1f}",
        "header:",
        "192.0.2.1",
        "[\"a\"]",
        "\u{1}\0\0",
        "é",
    ]);
    prop_oneof![
        12 => prop::collection::vec(pieces, 1..5).prop_map(|pieces| pieces.concat()),
        1 => (1000_usize..3000).prop_map(|length| "x".repeat(length)),
    ]
}

/// A value for a source: a text, or for claims a list as well.
fn value() -> impl Strategy<Value = Json> {
    prop_oneof![3 => hostile().prop_map(Json::from), 1 => prop::collection::vec(hostile(), 1..4).prop_map(Json::from)]
}

/// Sources of every kind, two where they have names.
fn sources() -> Vec<Source> {
    let named = |make: fn(Box<str>) -> Source| ["n0", "n1"].map(|name| make(name.into()));
    let claims =
        [vec!["n0"], vec!["n1"], vec!["o", "n0"]].map(|path| Source::Claim(path.into_iter().map(Into::into).collect()));
    [named(Source::Header), named(Source::Cookie), named(Source::Query), named(Source::Path)]
        .into_iter()
        .flatten()
        .chain(claims)
        .chain([Source::Principal, Source::Host])
        .collect()
}

/// A key of some sources in some order, each with its value.
fn tuple() -> impl Strategy<Value = Vec<(Source, Json)>> {
    let spec = prop::sample::subsequence(sources(), 1..6).prop_shuffle();
    (spec, prop::collection::vec(value(), 6)).prop_map(|(sources, values)| sources.into_iter().zip(values).collect())
}

/// A request that carries these values, each in the form of its source, and what a reader of that source makes of them.
#[derive(Default)]
struct Carrier {
    headers: BTreeMap<String, Vec<u8>>,
    query: String,
    segments: [String; 2],
    claims: Json,
    principal: String,
    host: String,
    meant: Vec<Json>,
}

impl Carrier {
    fn of(tuple: &[(Source, Json)]) -> Self {
        let mut carrier = Self { segments: ["s".to_owned(), "s".to_owned()], ..Self::default() };
        for (source, value) in tuple {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let meant = carrier.carry(source, text, value);
            carrier.meant.push(meant);
        }
        carrier
    }

    fn carry(&mut self, source: &Source, text: String, value: &Json) -> Json {
        match source {
            Source::Header(name) => {
                self.headers.insert(name.to_string(), text.clone().into_bytes());
            }
            Source::Cookie(name) => {
                // Cookies hold no semicolon and no space at their ends; these values hold none.
                let cookies = self.headers.entry("cookie".to_owned()).or_default();
                cookies.extend_from_slice(format!("{name}={text}; ").as_bytes());
            }
            Source::Query(name) => write!(self.query, "{name}={}&", escaped(&text)).unwrap(),
            Source::Path(name) => {
                // A backslash would begin another segment.
                let text = text.replace('\\', "-").to_ascii_lowercase();
                self.segments[usize::from(&**name == "n1")] = escaped(&text);
                return text.into();
            }
            Source::Claim(path) => {
                let place = path.iter().fold(&mut self.claims, |object, member| &mut object[&**member]);
                *place = value.clone();
                return value.clone();
            }
            Source::Principal => self.principal.clone_from(&text),
            // A colon would begin a port.
            Source::Host => {
                let host = text.replace([':', '.'], "-").to_ascii_lowercase();
                self.host.clone_from(&host);
                return host.into();
            }
            Source::ClientIp(_) | Source::Method => {}
        }
        text.into()
    }

    fn subject(&self, spec: &KeySpec) -> Subject {
        let path = format!("/{}/{}?{}", self.segments[0], self.segments[1], self.query);
        let normal = NormalPath::new(path.as_bytes());
        let route = Route { path: PathPattern::parse("/{n0}/{n1}").unwrap(), methods: MethodSet::Any };
        let request = Request {
            method: "GET",
            host: &self.host,
            path: path.as_bytes(),
            headers: &self.headers,
            principal: self.principal.as_bytes(),
            claims: &self.claims,
        };
        let identity = Identity::of(request).with_captures(route.captures("GET", &normal).unwrap());
        hash_key().subject(spec, &identity).unwrap()
    }
}

/// Every byte as an escape, so that none of them means anything to the path or the query.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        write!(out, "%{byte:02x}").unwrap();
        out
    })
}

proptest! {
    #[test]
    fn different_tuples_never_share_a_subject(tuples in prop::collection::vec(tuple(), 2..16)) {
        let mut seen = HashMap::new();
        for tuple in &tuples {
            let carrier = Carrier::of(tuple);
            let spec = spec(&tuple.iter().map(|(source, _)| source.clone()).collect::<Vec<_>>());
            let subject = carrier.subject(&spec);
            let what = (spec, carrier.meant);
            if let Some(before) = seen.insert(subject, what.clone()) {
                prop_assert_eq!(before, what);
            }
        }
    }
}

#[test]
fn the_same_bytes_cut_at_another_place_are_another_subject() {
    let key = spec(&[header_source("h0"), header_source("h1")]);
    let bytes = "\0:".repeat(32);
    let subjects: HashSet<_> = (1..64)
        .map(|cut| bytes.as_bytes().split_at(cut))
        .map(|(first, second)| subject(&key, &[("h0", first), ("h1", second)]).unwrap())
        .collect();
    assert_eq!(63, subjects.len());
}

#[test]
fn the_same_value_in_another_of_many_sources_is_another_subject() {
    let names: Vec<_> = (0..64).map(|n| format!("h{n}")).collect();
    let key = spec(&names.iter().map(|name| header_source(name)).collect::<Vec<_>>());
    let with_other_at = |place: usize| {
        let value = |n| if n == place { &b"other"[..] } else { b"same" };
        let headers: Vec<(&str, &[u8])> = names.iter().enumerate().map(|(n, name)| (&**name, value(n))).collect();
        subject(&key, &headers).unwrap()
    };
    assert_eq!(64, (0..64).map(with_other_at).collect::<HashSet<_>>().len());
}

#[test]
fn values_of_a_mebibyte_are_told_apart_by_their_last_byte() {
    let (mut first, mut second) = (vec![b'x'; 1 << 20], vec![b'x'; 1 << 20]);
    first.push(b'1');
    second.push(b'2');
    let key = spec(&[header_source("x-api-key"), Source::Cookie("sid".into())]);
    let of = |value: &[u8], cookie: &[u8]| {
        subject(&key, &[("x-api-key", value), ("cookie", &[b"sid=", cookie].concat())]).unwrap()
    };
    let subjects = [of(&first, b"a"), of(&second, b"a"), of(b"a", &first), of(b"a", &second), of(&first, b"a")];
    assert_eq!(subjects[0], subjects[4]);
    assert_eq!(4, HashSet::from(subjects).len());
}

#[test]
fn a_query_value_that_is_no_text_is_told_apart() {
    let key = spec(&[Source::Query("k".into())]);
    let of = |path: &[u8]| {
        let headers: BTreeMap<&str, &[u8]> = BTreeMap::new();
        let request = Request { method: "GET", host: "", path, headers: &headers, principal: b"", claims: &json!({}) };
        hash_key().subject(&key, &Identity::of(request)).unwrap()
    };
    assert_ne!(of(b"/?k=\xfe"), of(b"/?k=\xff"));
    assert_eq!(of(b"/?k=\xff"), of(b"/?k=%ff"));
}
