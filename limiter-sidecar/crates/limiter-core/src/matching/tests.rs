// SPDX-License-Identifier: Apache-2.0
use super::*;

fn pattern_covers(pattern: &str, path: &str) -> bool {
    let pattern = PathPattern::parse(pattern).unwrap();
    NormalPath::new(path.as_bytes()).readings().any(|reading| pattern.matches(reading))
}

/// Hosts, and routes as (path, methods).
type Entry<'a> = (&'a [&'a str], &'a [(&'a str, &'a [&'a str])]);

fn index(entries: &[Entry<'_>]) -> Index {
    let mut index = Index::default();
    for (policy, (hosts, routes)) in entries.iter().enumerate() {
        let hosts: Vec<_> = hosts.iter().map(|host| HostPattern::parse(host).unwrap()).collect();
        let routes: Vec<_> = routes.iter().map(|(path, methods)| route(path, methods)).collect();
        index.insert(policy, &hosts, &routes);
    }
    index
}

fn route(path: &str, methods: &[&str]) -> Route {
    let methods: Vec<String> = methods.iter().map(|method| (*method).to_owned()).collect();
    Route { path: PathPattern::parse(path).unwrap(), methods: MethodSet::parse(&methods).unwrap() }
}

fn found(index: &Index, method: &str, host: &str, path: &str) -> Vec<usize> {
    index.matches(method, &NormalHost::new(host), &NormalPath::new(path.as_bytes()))
}

#[test]
fn patterns_cover_what_they_say() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("/", &["/", "", "//", "/?a=b"], &["/a"]),
        ("/*", &["/", "/a", "/a/b"], &[]),
        ("/a/b", &["/a/b", "/a/b/", "/A/B"], &["/a", "/a/b/c", "/a/bc"]),
        ("/a/*", &["/a", "/a/", "/a/b", "/a/b/c"], &["/ab", "/", "/b/a"]),
        ("/v1/orgs/{org}", &["/v1/orgs/acme", "/v1/orgs/acme/"], &["/v1/orgs", "/v1/orgs/acme/x", "/v1/orgs//"]),
        ("/v1/orgs/{org}/*", &["/v1/orgs/acme", "/v1/orgs/acme/users/7"], &["/v1/orgs", "/v1/orgs/"]),
        ("/{any}/end", &["/x/end"], &["/end", "/x/y/end"]),
        ("/café", &["/caf%C3%A9", "/caf%c3%a9"], &["/cafe"]),
        ("/a%20b", &["/a%20b", "/A b"], &["/ab"]),
    ];
    for (pattern, covered, others) in cases {
        for path in *covered {
            assert!(pattern_covers(pattern, path), "{pattern} must cover {path:?}");
        }
        for path in *others {
            assert!(!pattern_covers(pattern, path), "{pattern} must not cover {path:?}");
        }
    }
}

/// D60.
#[test]
fn a_respelled_path_does_not_escape_its_rule() {
    let spellings = [
        "/login",
        "//login",
        "/./login",
        "/x/../login",
        "/%6cogin",
        "/%6Cogin",
        "/LOGIN",
        "/login?x=1",
        "/login;a=b",
        "/login%2f",
        "/login%2F",
        "/login/",
        "/login/.",
        "/login/x/..",
        "/%2e/login",
        "/x/%2e%2e/login",
        "/x/..;/login",
        "\\login",
        "/x%5c..%5clogin",
        "/login#top",
        "/../../login",
        "/login;a=b?x",
        "/;a=b/login",
        "login",
    ];
    for path in spellings {
        assert!(pattern_covers("/login", path), "{path:?} escapes");
    }
}

/// D60: whether `;` begins parameters is the upstream's choice, so a rule covers both.
#[test]
fn a_semicolon_takes_no_path_out_of_its_rule() {
    let cases = [
        ("/api/*", "/api/..;/search"),
        ("/api/*", "/api/%2e%2e%3b/search"),
        ("/api/*", "/api/.;/../search;x"),
        ("/search", "/api/..;/search"),
        ("/search", "/api/%2e%2e%3b/search"),
        ("/v1/users/{name}", "/v1/users/;bob"),
        ("/v1/users/{name}", "/v1/users/%3Bbob"),
        ("/v1/users/{name}", "/v1/users/bob;x=1"),
        ("/v1/users", "/v1/users/;bob"),
        ("/v1/{kind}/{id}/items", "/v1/users/;/items"),
        ("/a%3bb", "/a;b"),
        // A server that cuts parameters before it decodes.
        ("/api/*", "/api;x/..%3b/search"),
        ("/v1/users/{name}", "/v1;x/users/%3bbob"),
    ];
    for (pattern, path) in cases {
        assert!(pattern_covers(pattern, path), "{path:?} escapes {pattern}");
        let index = index(&[(&[], &[(pattern, &[])])]);
        assert_eq!(vec![0], found(&index, "GET", "api.example.com", path), "{path:?} escapes {pattern}");
    }
}

#[test]
fn a_path_without_a_semicolon_is_read_once() {
    for (path, readings) in [("/a/../b%2fc?x;y", 1), ("/a;b", 2), ("/a%3bb", 2), ("/a;b/c%3Bd;e", 3)] {
        assert_eq!(readings, NormalPath::new(path.as_bytes()).readings().count(), "{path}");
    }
}

#[test]
fn other_paths_are_not_taken_for_the_respelled_one() {
    for path in ["/logi", "/loginx", "/login/x", "/x/login", "/login%252f", "/lo%gin", "/login%", "/login%2", "/l/ogin"]
    {
        assert!(!pattern_covers("/login", path), "{path:?} is covered");
    }
}

#[test]
fn an_invalid_escape_stays_as_it_is() {
    for (pattern, path) in [("/100%25", "/100%25"), ("/100%25", "/100%"), ("/%25zz", "/%zz")] {
        assert!(pattern_covers(pattern, path), "{pattern} must cover {path:?}");
    }
}

#[test]
fn patterns_that_cannot_mean_what_they_say_are_refused() {
    for pattern in [
        "", "a", "*", "/a*", "/*/a", "/a/*b", "/a/**", "/a/{b", "/a/{}", "/a/x{b}", "/a?b", "/a#b", "/a;b", "/a/../b",
        "/./a", "/a\\b",
    ] {
        assert!(PathPattern::parse(pattern).is_err(), "{pattern:?} was accepted");
    }
}

#[test]
fn hosts_are_compared_without_case_port_and_trailing_dot() {
    let cases = [
        ("API.example.com", "api.example.com"),
        ("api.example.com:8443", "api.example.com"),
        ("api.example.com.", "api.example.com"),
        ("Api.Example.Com.:80", "api.example.com"),
        ("[2001:DB8::1]:443", "[2001:db8::1]"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("", ""),
    ];
    for (authority, host) in cases {
        assert_eq!(host, NormalHost::new(authority).as_str());
    }
}

#[test]
fn a_wildcard_stands_for_one_label_or_more() {
    let index = index(&[(&["*.example.com"], &[])]);
    for host in ["a.example.com", "a.b.example.com", "A.Example.com:443"] {
        assert_eq!(vec![0], found(&index, "GET", host, "/"), "{host}");
    }
    for host in ["example.com", "aexample.com", "example.com.evil", "com"] {
        assert!(found(&index, "GET", host, "/").is_empty(), "{host}");
    }
}

#[test]
fn an_overlong_host_does_not_escape_a_wildcard() {
    let index = index(&[(&["*.example.com"], &[])]);
    let host = format!("{}example.com", "a.".repeat(20_000));
    assert_eq!(vec![0], found(&index, "GET", &host, "/"));
}

#[test]
fn hosts_that_cannot_be_are_refused() {
    for host in
        ["", "*", "*.", "a..b", "API.example.com", "a.*.com", "*.*.com", "api.example.com:80", "a b", ".a", "a."]
    {
        assert!(HostPattern::parse(host).is_err(), "{host:?} was accepted");
    }
}

#[test]
fn all_policies_that_cover_a_request_are_found_once_and_in_order() {
    let index = index(&[
        (&[], &[("/v1/*", &["GET"]), ("/v1/orders", &["GET", "POST"])]),
        (&["api.example.com"], &[]),
        (&["*.example.com", "api.example.com"], &[("/v1/orders", &[])]),
        (&["*.com"], &[("/v1/{kind}", &[]), ("/v1/{kind}/*", &["DELETE"])]),
        (&["other.example.com"], &[]),
        (&[], &[("/v2/*", &[])]),
    ]);
    assert_eq!(vec![0, 1, 2, 3], found(&index, "GET", "api.example.com", "/v1/orders"));
    assert_eq!(vec![0, 1, 2, 3], found(&index, "POST", "api.example.com", "/v1/orders"));
    assert_eq!(vec![1, 3], found(&index, "DELETE", "api.example.com", "/v1/users/7"));
    assert_eq!(vec![5], found(&index, "GET", "localhost", "/v2"));
    assert!(found(&index, "GET", "localhost", "/v3").is_empty());
}

/// D60.
#[test]
fn methods_are_compared_without_case() {
    let set = MethodSet::parse(&["POST".to_owned(), "PURGE".to_owned()]).unwrap();
    for (method, expected) in [
        ("POST", true),
        ("PURGE", true),
        ("post", true),
        ("Purge", true),
        ("GET", false),
        ("HEAD", false),
        ("FOO", false),
        ("", false),
    ] {
        assert_eq!(expected, set.contains(method), "{method:?}");
    }
    assert!(MethodSet::parse(&[]).unwrap().contains("ANYTHING"));
    assert!(MethodSet::parse(&["get".to_owned()]).is_err());
}

#[test]
fn get_covers_head_and_head_covers_itself_alone() {
    let (get, head) = (["GET".to_owned()], ["HEAD".to_owned()]);
    let (get, head) = (MethodSet::parse(&get).unwrap(), MethodSet::parse(&head).unwrap());
    assert!(get.contains("GET") && get.contains("HEAD") && get.contains("head") && !get.contains("POST"));
    assert!(head.contains("HEAD") && !head.contains("GET"));
}
