// SPDX-License-Identifier: Apache-2.0
use super::*;

fn of(info: &str) -> Vec<Finding> {
    judge(&Info::read(info))
}

fn wrong(info: &str) -> Vec<(&'static str, String)> {
    let findings = of(info).into_iter().filter(|finding| !finding.ok);
    findings.map(|finding| (finding.check.as_str(), finding.message)).collect()
}

#[test]
fn a_server_as_it_should_be_has_nothing_to_say() {
    for info in [
        "# Server\r\nredis_version:7.0.15\r\n# Memory\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n",
        "redis_version:7.2.4\r\nvalkey_version:9.1.2\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n",
        "redis_version:8.2.3\nmaxmemory_policy:noeviction\nrole:master\n",
    ] {
        assert!(of(info).iter().all(|finding| finding.ok && finding.message.is_empty()), "{info}");
    }
}

#[test]
fn a_server_that_is_too_old_is_named_with_what_is_needed() {
    for (info, needed) in
        [("redis_version:6.2.14\r\n", "Redis 7.0"), ("redis_version:7.2.4\r\nvalkey_version:7.1.0\r\n", "Valkey 7.2")]
    {
        let found = wrong(info);
        assert_eq!(found[0].0, "version", "{info}");
        assert!(found[0].1.contains(needed), "{found:?}");
    }
}

#[test]
fn a_replica_says_who_its_primary_is() {
    let found = wrong("role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\n");
    assert_eq!(found[0].0, "role");
    assert!(found[0].1.contains("10.0.0.1:6379"), "{found:?}");
}

#[test]
fn an_eviction_policy_that_forgets_counters_says_which_does_not() {
    let found = wrong("maxmemory_policy:allkeys-lru\r\n");
    assert_eq!(found[0].0, "eviction");
    assert!(found[0].1.contains("noeviction"), "{found:?}");
}

#[test]
fn a_server_that_does_not_tell_is_believed_and_says_so() {
    for info in ["", "redis_version:unstable\r\n", "no text of INFO at all"] {
        let findings = of(info);
        assert!(findings.iter().all(|finding| finding.ok), "{findings:?}");
        assert!(findings.iter().all(|finding| finding.message.starts_with("could not be checked")), "{findings:?}");
    }
}

#[test]
fn refused_rights_are_listed() {
    let names = ["SET", "SCRIPT LOAD"].map(|name| Value::BulkString(name.as_bytes().to_vec()));
    let finding = judge_rights(Value::Array(names.to_vec()));
    assert!(!finding.ok && finding.message.contains("SET, SCRIPT LOAD"), "{finding:?}");
    assert_eq!(judge_rights(Value::Array(vec![])), Check::Rights.fine());
    assert!(judge_rights(Value::Int(1)).ok, "an answer that nobody understands proves nothing");
}

#[test]
fn one_bad_node_makes_the_finding_of_the_store_and_is_named() {
    let good = of("redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n");
    let bad = of("redis_version:7.0.15\r\nmaxmemory_policy:allkeys-lru\r\nrole:master\r\n");
    let all = of_all(&[("a:1".to_owned(), good), ("b:2".to_owned(), bad)]);
    assert_eq!(all.len(), 3, "rights were not looked at");
    assert!(!all[0].ok && all[0].message.starts_with("b:2: maxmemory-policy is allkeys-lru"), "{all:?}");
    assert!(all[1].ok && all[1].message.is_empty());
    assert!(of_all(&[]).is_empty());
}

/// Every command that the scripts call, at once or from a table of calls to be made, must be in the list that is asked for,
/// or a user without it passes.
#[test]
fn what_is_asked_for_is_what_the_scripts_call() {
    let mut called: Vec<&str> = Vec::new();
    for script in script::ALL {
        for before in ["call('", "{ '"] {
            for (place, _) in script.text.match_indices(before) {
                called.extend(script.text[place + before.len()..].split('\'').next());
            }
        }
    }
    called.sort_unstable();
    called.dedup();
    let mut asked: Vec<_> = SCRIPTS_NEED.iter().filter_map(|need| need.split('|').next()).collect();
    asked.sort_unstable();
    assert_eq!(asked, called);
}
