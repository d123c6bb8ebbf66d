// SPDX-License-Identifier: Apache-2.0
use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn path(members: &[&str]) -> Vec<Box<str>> {
    members.iter().map(|member| (*member).into()).collect()
}

#[test]
fn a_claim_is_found_by_its_whole_path() {
    let token = json!({"sub": "u1", "realm": {"sub": "u2", "org": {"id": 7}}, "realm.sub": "u3"});
    let cases = [
        (&["sub"][..], Some(Claim::Text("u1"))),
        (&["realm", "sub"], Some(Claim::Text("u2"))),
        (&["realm", "org", "id"], Some(Claim::Number(7.0))),
        (&["realm.sub"], Some(Claim::Text("u3"))),
        (&["realm"], None),
        (&["sub", "id"], None),
        (&["none"], None),
    ];
    for (members, expected) in cases {
        assert_eq!(expected, token.claim(&path(members)), "{members:?}");
    }
    assert_eq!(None, NoClaims.claim(&path(&["sub"])));
}

#[test]
fn what_tells_no_subjects_apart_is_no_claim() {
    let deep = (0..=MAX_LIST_DEPTH).fold(json!("x"), |inner, _| json!([inner]));
    for value in [json!(null), json!({}), json!({"a": 1}), json!(["a", null]), json!([["a"], [{}]]), deep] {
        assert_eq!(None, json!({"c": value}).claim(&path(&["c"])), "{value}");
    }
}

/// The examples of RFC 8785, appendix B, and the edges of its notation.
#[test]
fn numbers_are_written_as_json_canonicalises_them() {
    let cases = [
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (-5e-324, "-5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (9_007_199_254_740_992.0, "9007199254740992"),
        (295_147_905_179_352_830_000.0, "295147905179352830000"),
        (9.999_999_999_999_997e22, "9.999999999999997e+22"),
        (1e23, "1e+23"),
        (1e21, "1e+21"),
        (999_999_999_999_999_900_000.0, "999999999999999900000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (333_333_333.333_333_3, "333333333.3333333"),
        (-0.000_003_333_333_333_333_333_3, "-0.0000033333333333333333"),
        (4.5, "4.5"),
    ];
    for (number, text) in cases {
        assert_eq!(Some(text), Claim::Number(number).to_json().as_deref());
    }
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(None, Claim::List(vec![Claim::Number(number)]).to_json());
    }
}

#[test]
fn lists_are_written_as_canonical_json() {
    let token = json!({"c": ["a\"b", 1, true, ["\u{1}\n/é"], []]});
    assert_eq!(
        Some("[\"a\\\"b\",1,true,[\"\\u0001\\n/é\"],[]]"),
        token.claim(&path(&["c"])).unwrap().to_json().as_deref()
    );
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        (-3_i64..4).prop_map(Json::from),
        "[ab,\"\\\\\\[\\]\\PC]{0,6}".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Json::from))
}

proptest! {
    #[test]
    fn different_claims_have_different_texts(values in prop::collection::vec(value(), 2..20)) {
        let mut seen: HashMap<String, Claim<'_>> = HashMap::new();
        for value in &values {
            // NaN and infinities became null, which is no claim.
            let Some(claim) = from_json(value, MAX_LIST_DEPTH) else { continue };
            let text = claim.to_json().unwrap();
            if let Some(before) = seen.insert(text, claim.clone()) {
                prop_assert_eq!(before, claim);
            }
        }
    }
}
