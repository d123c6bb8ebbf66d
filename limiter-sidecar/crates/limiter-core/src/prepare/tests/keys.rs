// SPDX-License-Identifier: Apache-2.0
//! Keys of every source, and what happens without one.

use super::*;

const PATH: &str = "/v1/orgs/acme/users?key=q1";

/// Every source, as the document names it.
fn sources() -> [Value; 9] {
    [
        json!({"header": "x-api-key"}),
        json!({"cookie": "sid"}),
        json!({"query": "key"}),
        json!({"clientIP": {"ipv4Prefix": 32, "ipv6Prefix": 64}}),
        json!({"claim": ["realm", "sub"]}),
        json!({"principal": {}}),
        json!({"path": "org"}),
        json!({"host": {}}),
        json!({"method": {}}),
    ]
}

fn claims() -> Value {
    json!({"realm": {"sub": "u1"}, "plan": "enterprise", "plans": ["enterprise"]})
}

/// A request with a value for every source.
fn full(claims: &Value) -> Call<'_> {
    let headers = &[("x-api-key", "k1"), ("cookie", "sid=s1"), CLIENT];
    Call { principal: "spiffe://example.com/orders", claims: Some(claims), ..get(PATH, headers) }
}

/// The same without any of the values: every part empty.
fn bare() -> Call<'static> {
    Call {
        method: "",
        host: "",
        ..get("/v1/other?key=", &[("x-api-key", ""), ("cookie", "sid="), ("x-weir-client-ip", "")])
    }
}

/// One rule of this key, and one for everybody, on all paths but with a template first.
fn keyed(source: &Value, reaction: &str) -> Ruleset {
    let rules =
        json!([rule(json!({"key": [source], "onMissingKey": reaction})), rule(json!({"name": "all", "key": []}))]);
    let routes = json!([{"path": "/v1/orgs/{org}/*", "methods": []}, {"path": "/*", "methods": []}]);
    ruleset(json!([policy("team/api", rules, json!({"match": {"hosts": [], "routes": routes}}))]), json!([]))
}

/// D28, D29.
#[test]
fn each_source_is_a_key_and_lacking_it_skips_the_rule_alone() {
    let claims = claims();
    for source in sources() {
        let ruleset = keyed(&source, "Skip");
        let (with, without) = (full(&claims).prepare(&ruleset), bare().prepare(&ruleset));
        assert_eq!(vec![false, false], missing(&with), "{source}");
        assert_eq!(vec![true, false], missing(&without), "{source}");
        assert_eq!((2, 1), (with.check_count(), without.check_count()), "{source}");
        assert!(without.needs_store(), "{source}");
    }
}

/// D28.
#[test]
fn those_who_lack_any_source_share_one_counter_of_the_rule() {
    let claims = claims();
    let mut shared = std::collections::HashSet::new();
    for source in sources() {
        let ruleset = keyed(&source, "Share");
        let (with, without) = (full(&claims).prepare(&ruleset), bare().prepare(&ruleset));
        assert_eq!(vec![true, false], missing(&without), "{source}");
        assert_ne!(with.keys()[0], without.keys()[0], "{source}");
        assert!(shared.insert(without.keys()[0]), "{source} shares with another source");
    }
}

/// D28.
#[test]
fn a_rule_that_denies_names_the_source_that_is_missing() {
    for source in sources() {
        let ruleset = keyed(&source, "Deny");
        let prepared = bare().prepare(&ruleset);
        let Standing::DeniedMissingKey(missing) = prepared.rules()[0].standing else {
            panic!("{source} is not denied")
        };
        assert_eq!(ruleset.policies()[0].rules()[0].key().sources()[0], *missing);
        assert!(!prepared.needs_store(), "{source}");
    }
}

fn missing(prepared: &Prepared<'_>) -> Vec<bool> {
    prepared.rules().iter().map(|rule| rule.missing_key).collect()
}

/// The bucket strings of a policy with these routes and the key `path: org`, for each of the paths; none where it lacks.
fn by_org(routes: &Value, requests: &[(&str, &str)]) -> Vec<Option<BucketKey>> {
    let rules = json!([rule(json!({"key": [{"path": "org"}]}))]);
    let matches = json!({"match": {"hosts": [], "routes": routes}});
    let ruleset = ruleset(json!([policy("team/api", rules, matches)]), json!([]));
    let key = |(method, path): &(&str, &str)| {
        let prepared = Call { method, path, ..get("/", &[]) }.prepare(&ruleset);
        assert!(prepared.matched(), "{method} {path}");
        prepared.keys().first().copied()
    };
    requests.iter().map(key).collect()
}

#[test]
fn a_segment_of_the_path_tells_subjects_apart_however_it_is_spelled() {
    let routes = json!([{"path": "/v1/orgs/{org}/*", "methods": []}]);
    let paths = [
        "/v1/orgs/acme/a",
        "/v1/orgs/acme",
        "//v1/./orgs/ACME/b?x=1",
        "/v1/orgs/%61cme;v=1/a",
        "/v1/x/../orgs/acme/",
        "/v1/orgs/other/acme",
    ];
    let keys = by_org(&routes, &paths.map(|path| ("GET", path)));
    assert!(keys[0].is_some() && keys[..5].iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_ne!(keys[0], keys[5]);
}

#[test]
fn the_first_route_of_the_users_order_that_covers_a_request_gives_its_segments() {
    let routes = json!([
        {"path": "/v1/{org}/only-post", "methods": ["POST"]},
        {"path": "/v1/{kind}/{org}", "methods": []},
        {"path": "/v1/{org}/*", "methods": []},
        {"path": "/v2/*", "methods": []},
        {"path": "/v2/{org}", "methods": []},
    ]);
    let requests = [
        ("GET", "/v1/a/acme"),
        ("POST", "/v1/acme/only-post"),
        ("GET", "/v1/acme/only-post"),
        ("GET", "/v1/acme/x/y"),
        ("GET", "/v2/acme"),
    ];
    let keys = by_org(&routes, &requests);
    assert!(keys[0].is_some());
    assert_eq!(keys[0], keys[1], "the route for POST comes first");
    assert_ne!(keys[0], keys[2], "for GET the second route gives its second segment");
    assert_eq!(keys[0], keys[3], "what the second route does not cover goes to the third");
    assert_eq!(None, keys[4], "the first route that covers it has no such segment");
}

/// Two policies with one key read it from routes of their own.
#[test]
fn each_policy_takes_the_segments_of_its_own_routes() {
    let of = |id: &str, path: &str, rules: Value| {
        policy(id, rules, json!({"match": {"hosts": [], "routes": [{"path": path, "methods": []}]}}))
    };
    let rules = || json!([rule(json!({"key": [{"path": "org"}]}))]);
    let ruleset = ruleset(
        json!([
            of("team/a", "/{org}/*", rules()),
            of("team/b", "/x/{org}/*", rules()),
            policy("team/c", rules(), json!({})),
            of("team/d", "/{org}/*", rules()),
        ]),
        json!([]),
    );
    let subject = |prepared: &Prepared<'_>, check: usize| prepared.keys()[check].as_bytes()[7..31].to_vec();
    let prepared = get("/x/y/z", &[]).prepare(&ruleset);
    assert_eq!(vec![false, false, true, false], missing(&prepared));
    assert_ne!(subject(&prepared, 0), subject(&prepared, 1), "x is not y");
    assert_eq!(subject(&prepared, 0), subject(&prepared, 2), "x is x, in one slot of the store");
}

#[test]
fn a_plan_may_come_from_a_claim() {
    let claims = claims();
    for (path, burst, unknown) in [
        (json!(["plan"]), 2000, false),
        (json!(["none"]), 5, false),
        (json!(["realm", "sub"]), 5, true),
        (json!(["plans"]), 5, true),
    ] {
        let plans = json!({"from": {"claim": path}, "limits": {"enterprise": limit(1000, 1_000_000, 2000)}});
        let ruleset = one_policy(json!([rule(json!({"plans": plans}))]));
        let prepared = full(&claims).prepare(&ruleset);
        let (rule, check) = prepared.checks().next().unwrap();
        assert_eq!((burst, unknown), (check.limit.quota(), rule.unknown_plan), "{path}");
    }
}

/// D71: a header that is exempt, a network that is exempt, the method and the path: only a request that none of them
/// takes out is counted.
#[test]
fn all_conditions_of_a_policy_hold_together() {
    let matches = json!({"hosts": [], "routes": [{"path": "/v1/*", "methods": ["POST"]}]});
    let exempt = json!([
        {"header": {"name": "x-tier", "in": [format!("sha256:{}", sha256("internal"))]}}, {"clientIP": ["192.0.2.0/24"]}
    ]);
    let rules = json!([rule(json!({"key": []}))]);
    let ruleset = ruleset(json!([policy("team/api", rules, json!({"match": matches, "exempt": exempt}))]), json!([]));
    for case in 0..16 {
        let [tier, network, method, path] = [1, 2, 4, 8].map(|bit| case & bit != 0);
        let headers = [
            ("x-tier", if tier { "gold" } else { "internal" }),
            ("x-weir-client-ip", if network { "198.51.100.1" } else { "192.0.2.1" }),
        ];
        let call = Call {
            method: if method { "POST" } else { "GET" },
            path: if path { "/v1/orders" } else { "/v2/orders" },
            ..get("/", &headers)
        };
        assert_eq!(usize::from(case == 15), call.prepare(&ruleset).check_count(), "{headers:?} {method} {path}");
    }
}
