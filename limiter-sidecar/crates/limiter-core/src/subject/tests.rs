// SPDX-License-Identifier: Apache-2.0
mod injective;
mod values;

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::*;
use crate::claims::NoClaims;
use crate::request::CLIENT_IP_HEADER;
use crate::ruleset::{Algorithm, Slot};
use crate::samples::hash_key;

const HOSTS: Prefixes = Prefixes { ipv4: 32, ipv6: 64 };

fn network(prefixes: Prefixes, address: &str) -> String {
    let masked = prefixes.mask(parse_client_ip(address).unwrap());
    String::from_utf8(masked.as_bytes().to_vec()).unwrap()
}

fn spec(sources: &[Source]) -> KeySpec {
    KeySpec { sources: sources.into() }
}

fn header_source(name: &str) -> Source {
    Source::Header(name.into())
}

fn subject(spec: &KeySpec, headers: &[(&str, &[u8])]) -> Result<Subject, MissingSource> {
    let headers: BTreeMap<&str, &[u8]> = headers.iter().copied().collect();
    let request = Request { method: "GET", host: "", path: b"/", headers: &headers, principal: b"", claims: &NoClaims };
    hash_key().subject(spec, &Identity::of(request))
}

#[test]
fn addresses_are_read_as_proxies_write_them() {
    let cases = [
        ("203.0.113.7", Some("203.0.113.7")),
        (" 203.0.113.7\t", Some("203.0.113.7")),
        ("203.0.113.7:51234", Some("203.0.113.7")),
        ("[2001:db8::1]:443", Some("2001:db8::1")),
        ("[2001:db8::1]", Some("2001:db8::1")),
        ("2001:DB8:0:0::1", Some("2001:db8::1")),
        ("fe80::1%eth0", Some("fe80::1")),
        ("[fe80::1%eth0]:80", Some("fe80::1")),
        ("::ffff:203.0.113.7", Some("203.0.113.7")),
        ("[::ffff:cb00:7107]:1", Some("203.0.113.7")),
        ("", None),
        ("unknown", None),
        ("203.0.113", None),
        ("203.0.113.7:", None),
        ("203.0.113.7:port", None),
        ("203.0.113.256", None),
        ("0203.0.113.7", None),
        ("[2001:db8::1", None),
        ("[2001:db8::1]443", None),
        ("\"203.0.113.7\"", None),
        ("203.0.113.7, 10.0.0.1", None),
    ];
    for (text, expected) in cases {
        assert_eq!(expected.map(|address| address.parse().unwrap()), parse_client_ip(text), "{text:?}");
    }
}

/// D24.
#[test]
fn one_ipv6_network_is_one_client_however_it_is_spelled() {
    let expected = "2001:db8:1:2::/64";
    for address in ["2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:0DB8:0001:0002:0:0:0:9"] {
        assert_eq!(expected, network(HOSTS, address));
    }
    assert_eq!("2001:db8:1:3::/64", network(HOSTS, "2001:db8:1:3::1"));
}

/// D25.
#[test]
fn mapped_ipv4_clients_are_the_ipv4_clients() {
    for (mapped, plain) in [("::ffff:192.0.2.1", "192.0.2.1"), ("::ffff:10.0.0.1", "10.0.0.1")] {
        assert_eq!(network(HOSTS, plain), network(HOSTS, mapped));
        assert_eq!(plain, network(HOSTS, mapped));
    }
}

#[test]
fn networks_are_written_in_canonical_form() {
    let cases = [
        (32, 128, "192.0.2.77", "192.0.2.77"),
        (24, 128, "192.0.2.77", "192.0.2.0/24"),
        (0, 128, "192.0.2.77", "0.0.0.0/0"),
        (31, 128, "192.0.2.77", "192.0.2.76/31"),
        (32, 128, "2001:db8:0:0:0:0:0:1", "2001:db8::1"),
        (32, 48, "2001:db8:1:2::1", "2001:db8:1::/48"),
        (32, 0, "2001:db8::1", "::/0"),
        (32, 127, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127"),
    ];
    for (ipv4, ipv6, address, expected) in cases {
        assert_eq!(expected, network(Prefixes { ipv4, ipv6 }, address));
    }
}

#[test]
fn an_empty_value_is_a_missing_one() {
    let spec = spec(&[header_source("x-api-key"), header_source("x-org")]);
    assert_eq!(Err(MissingSource(0)), subject(&spec, &[("x-api-key", b""), ("x-org", b"acme")]));
    assert_eq!(Err(MissingSource(1)), subject(&spec, &[("x-api-key", b"k")]));
    assert!(subject(&spec, &[("x-api-key", b"k"), ("x-org", b"acme")]).is_ok());
}

#[test]
fn an_unreadable_client_address_is_a_missing_one() {
    let spec = spec(&[Source::ClientIp(HOSTS)]);
    assert_eq!(Err(MissingSource(0)), subject(&spec, &[(CLIENT_IP_HEADER, b"unknown")]));
    assert_eq!(Err(MissingSource(0)), subject(&spec, &[]));
}

#[test]
fn keys_of_different_sources_differ_for_equal_values() {
    let specs = [
        spec(&[header_source("a")]),
        spec(&[header_source("b")]),
        spec(&[header_source("a"), header_source("b")]),
        spec(&[header_source("b"), header_source("a")]),
        spec(&[Source::ClientIp(HOSTS)]),
        spec(&[Source::ClientIp(Prefixes { ipv4: 32, ipv6: 128 })]),
    ];
    let headers: &[(&str, &[u8])] = &[("a", b"192.0.2.1"), ("b", b"192.0.2.1"), (CLIENT_IP_HEADER, b"192.0.2.1")];
    let mut subjects: Vec<_> = specs.iter().map(|spec| subject(spec, headers).unwrap()).collect();
    subjects.push(hash_key().everyone("team/api"));
    subjects.push(hash_key().everyone("team/web"));
    subjects.extend(specs.iter().map(|spec| hash_key().shared("team/api", spec)));
    subjects.push(hash_key().shared("team/web", &specs[0]));
    let count = subjects.len();
    subjects.sort_unstable();
    subjects.dedup();
    assert_eq!(count, subjects.len());
}

/// D61.
#[test]
fn a_key_of_the_store_has_a_fixed_length_and_no_part_of_the_secret() {
    let spec = spec(&[header_source("x-api-key")]);
    let tag = PolicyTag::of("team/api");
    let huge = "k_7f2".repeat(200_000);
    for value in ["k_7f2", &huge] {
        let key = BucketKey::new(subject(&spec, &[("x-api-key", value.as_bytes())]).unwrap(), tag);
        let text = std::str::from_utf8(key.as_bytes()).unwrap();
        assert_eq!(43, text.len());
        assert!(text.starts_with("weir:2:{") && text.as_bytes()[30..32] == *b"}:", "{text}");
        assert!(!text.contains("k_7f2"));
    }
}

#[test]
fn another_hash_key_makes_other_subjects() {
    let other = HashKey::new(&[7; 32]).unwrap();
    assert_ne!(hash_key().everyone("team/api"), other.everyone("team/api"));
}

#[test]
fn a_short_hash_key_is_refused() {
    assert!(HashKey::new(&[7; 31]).unwrap_err().to_string().contains("at least 32 bytes, not 31"));
}

#[test]
fn a_rule_keeps_its_id_until_its_name_algorithm_or_key_changes() {
    let key = spec(&[header_source("x-api-key")]);
    let id = rule_id("team/api", ("burst", None), Algorithm::TokenBucket, &key);
    let others = [
        rule_id("team/api", ("daily", None), Algorithm::TokenBucket, &key),
        rule_id("team/ap", ("iburst", None), Algorithm::TokenBucket, &key),
        rule_id("team/api", ("burst", Some(Slot::B)), Algorithm::TokenBucket, &key),
        rule_id("team/api", ("burst", None), Algorithm::TokenBucket, &spec(&[])),
        rule_id("team/api", ("burst", None), Algorithm::TokenBucket, &spec(&[Source::ClientIp(HOSTS)])),
    ];
    assert_eq!(id, rule_id("team/api", ("burst", None), Algorithm::TokenBucket, &key.clone()));
    assert!(others.iter().all(|other| *other != id));
}

proptest! {
    #[test]
    fn no_text_makes_reading_an_address_fail(text in "\\PC*") {
        let _ = parse_client_ip(&text);
    }

    #[test]
    fn every_address_of_a_network_has_one_text(bits in any::<u128>(), other in any::<u128>(), prefix in 0_u8..=128) {
        let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
        let prefixes = Prefixes { ipv4: 32, ipv6: prefix };
        let first = std::net::Ipv6Addr::from_bits(bits);
        let second = std::net::Ipv6Addr::from_bits((bits & mask) | (other & !mask));
        // Within the mapped range an address is an IPv4 one, with its own prefix.
        prop_assume!(first.to_ipv4_mapped().is_none() && second.to_ipv4_mapped().is_none());
        prop_assert_eq!(prefixes.mask(first.into()), prefixes.mask(second.into()));
    }
}
