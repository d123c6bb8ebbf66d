// SPDX-License-Identifier: Apache-2.0
//! What a subject is called where people read: by its values, or, where one of them may be a secret, by its hash.

use crate::matching::NormalPath;
use crate::prepare::RuleUse;
use crate::request::Request;
use crate::subject::{Identity, Source, Subject};

/// Characters of a name; longer ones are cut. Arbitrary; nobody reads more.
const MOST: usize = 128;

/// The name of the subject that `rule` counts the request for.
///
/// A header, a cookie, a parameter of the query, a claim and a certificate may hold what nobody but its owner may know.
/// With one of them in the key the subject is called what it is called in the store's keys.
pub fn subject_label(rule: &RuleUse<'_>, subject: Subject, request: &Request<'_>) -> String {
    let sources = rule.rule.key().sources();
    if sources.is_empty() {
        return "everybody".to_owned();
    }
    if rule.missing_key || !sources.iter().all(is_open) {
        return subject.as_str().to_owned();
    }
    let path = NormalPath::new(request.path);
    let identity = Identity::of(*request).with_captures(rule.policy.captures(request.method, &path));
    let named = sources.iter().map(|source| {
        let value = identity.value(source);
        let text = value.as_ref().map_or_else(Default::default, |value| String::from_utf8_lossy(value.as_bytes()));
        format!("{}={text}", source.name())
    });
    let mut label = named.collect::<Vec<_>>().join(", ");
    if let Some((end, _)) = label.char_indices().nth(MOST) {
        label.truncate(end);
        label.push('…');
    }
    label
}

/// Whether its values may be shown.
fn is_open(source: &Source) -> bool {
    match source {
        Source::ClientIp(_) | Source::Host | Source::Method => true,
        // A segment of a path may be a secret: the token of a link, the name of a webhook.
        Source::Path(_)
        | Source::Header(_)
        | Source::Cookie(_)
        | Source::Query(_)
        | Source::Claim(_)
        | Source::Principal => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::samples::{get, one_policy, rule};

    fn label(key: &Value) -> String {
        let ruleset = one_policy(json!([rule(json!({"key": key}))]));
        let headers = [("x-api-key", "secret"), ("x-weir-client-ip", "192.0.2.77")];
        get("/v1/orders", &headers).request(|request| {
            let prepared = ruleset.prepare(request, crate::samples::START_US);
            let rule = &prepared.rules()[0];
            subject_label(rule, prepared.subject(rule).unwrap(), request)
        })
    }

    #[test]
    fn open_values_are_shown_and_secrets_are_not() {
        let network = json!({"clientIP": {"ipv4Prefix": 24, "ipv6Prefix": 64}});
        assert_eq!("clientIP=192.0.2.0/24, method=GET", label(&json!([network, {"method": {}}])));
        for key in [json!([{"header": "x-api-key"}]), json!([network, {"header": "x-api-key"}])] {
            let hashed = label(&key);
            assert!(hashed.len() == 22 && !hashed.contains("secret"), "{hashed}");
        }
        assert_eq!("everybody", label(&json!([])));
    }
}
