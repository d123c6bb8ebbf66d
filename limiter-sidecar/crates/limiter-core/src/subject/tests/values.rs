// SPDX-License-Identifier: Apache-2.0
//! What each source reads out of a request.

use serde_json::{Value as Json, json};

use super::*;
use crate::matching::{MethodSet, NormalPath, PathPattern, Route};

/// A request of which every source has a value.
struct Full {
    headers: BTreeMap<&'static str, &'static [u8]>,
    claims: Json,
    path: NormalPath,
    route: Route,
}

const PATH: &[u8] = b"/v1/orgs/Acme%20Inc/users?key=a%2Fb&key=c&none=";

impl Full {
    fn new() -> Self {
        Self {
            headers: BTreeMap::from([
                ("x-api-key", &b"k,\xff"[..]),
                ("cookie", b"theme=dark; sid=s1; sid=s2; none="),
                ("x-weir-client-ip", b"[2001:db8:1:2::9%eth0]:443"),
                ("x-none", b""),
            ]),
            claims: json!({
                "sub": "u1", "none": "", "realm": {"id": 42, "ratio": 0.5, "admin": true, "off": false, "roles": ["a", 1], "no": []}
            }),
            path: NormalPath::new(PATH),
            route: Route { path: PathPattern::parse("/v1/orgs/{org}/*").unwrap(), methods: MethodSet::Any },
        }
    }

    fn identity(&self) -> Identity<'_> {
        let request = Request {
            method: "post",
            host: "API.example.com.:8443",
            path: PATH,
            headers: &self.headers,
            principal: b"spiffe://example.com/orders",
            claims: &self.claims,
        };
        Identity::of(request).with_captures(self.route.captures("POST", &self.path).unwrap())
    }
}

fn claim(path: &[&str]) -> Source {
    Source::Claim(path.iter().map(|name| (*name).into()).collect())
}

#[test]
fn every_source_has_its_value_in_one_form() {
    let cases: [(Source, &[u8]); 14] = [
        (header_source("x-api-key"), b"k,\xff"),
        (Source::Cookie("sid".into()), b"s1"),
        (Source::Query("key".into()), b"a/b"),
        (Source::ClientIp(HOSTS), b"2001:db8:1:2::/64"),
        (claim(&["sub"]), b"u1"),
        (claim(&["realm", "id"]), b"42"),
        (claim(&["realm", "ratio"]), b"0.5"),
        (claim(&["realm", "admin"]), b"true"),
        (claim(&["realm", "off"]), b"false"),
        (claim(&["realm", "roles"]), b"[\"a\",1]"),
        (Source::Principal, b"spiffe://example.com/orders"),
        (Source::Path("org".into()), b"acme inc"),
        (Source::Host, b"api.example.com"),
        (Source::Method, b"POST"),
    ];
    let full = Full::new();
    for (source, expected) in cases {
        assert_eq!(Some(expected), full.identity().value(&source).as_ref().map(Value::as_bytes), "{}", source.name());
    }
}

/// D28.
#[test]
fn what_is_empty_or_not_there_is_missing_for_every_source() {
    let missing = [
        header_source("x-none"),
        header_source("x-other"),
        Source::Cookie("none".into()),
        Source::Cookie("other".into()),
        Source::Query("none".into()),
        Source::Query("other".into()),
        claim(&["none"]),
        claim(&["realm"]),
        claim(&["realm", "no"]),
        claim(&["realm", "other"]),
        Source::Path("other".into()),
    ];
    let full = Full::new();
    for source in missing {
        assert!(full.identity().value(&source).is_none(), "{}", source.name());
    }
    let headers: BTreeMap<&str, &[u8]> = BTreeMap::new();
    let empty = Request { method: "", host: "", path: b"", headers: &headers, principal: b"", claims: &NoClaims };
    let all = [
        header_source("x-api-key"),
        Source::Cookie("sid".into()),
        Source::Query("key".into()),
        Source::ClientIp(HOSTS),
        claim(&["sub"]),
        Source::Principal,
        Source::Path("org".into()),
        Source::Host,
        Source::Method,
    ];
    for source in all {
        assert!(Identity::of(empty).value(&source).is_none(), "{}", source.name());
    }
}

#[test]
fn a_list_is_not_the_text_that_reads_alike() {
    let spec = spec(&[claim(&["c"])]);
    let subject = |claims: Json| {
        let headers: BTreeMap<&str, &[u8]> = BTreeMap::new();
        let request =
            Request { method: "GET", host: "", path: b"/", headers: &headers, principal: b"", claims: &claims };
        hash_key().subject(&spec, &Identity::of(request)).unwrap()
    };
    assert_ne!(subject(json!({"c": ["a", "b"]})), subject(json!({"c": "[\"a\",\"b\"]"})));
    assert_ne!(subject(json!({"c": ["a", "b"]})), subject(json!({"c": ["a,b"]})));
    assert_eq!(subject(json!({"c": 42})), subject(json!({"c": 42.0})));
}

#[test]
fn each_source_has_one_name_and_says_what_it_is() {
    let cases = [
        (header_source("x-api-key"), "header:x-api-key", "header x-api-key"),
        (Source::Cookie("sid".into()), "cookie:sid", "cookie sid"),
        (Source::Query("key".into()), "query:key", "query parameter key"),
        (Source::ClientIp(HOSTS), "clientIP", "client address"),
        (claim(&["realm", "sub"]), "claim:realm.sub", "token claim realm.sub"),
        (claim(&["https://a.b/c\\", "d"]), r"claim:https://a\.b/c\\.d", r"token claim https://a.b/c\.d"),
        (Source::Principal, "principal", "principal of a client certificate"),
        (Source::Path("org".into()), "path:org", "path segment {org}"),
        (Source::Host, "host", "host"),
        (Source::Method, "method", "method"),
    ];
    for (source, name, description) in cases {
        assert_eq!((name, description), (&*source.name(), &*source.describe()));
    }
}
