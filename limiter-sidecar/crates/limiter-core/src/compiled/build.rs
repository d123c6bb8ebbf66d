// SPDX-License-Identifier: Apache-2.0
//! From the document to the ruleset: policies and the index. Every value is checked here, once.

use std::collections::HashMap;

use ipnet::IpNet;

use super::{Exemption, Policy, Rule, Ruleset, key_build, lasting, mode_build, override_build, rule_build};
use crate::hex;
use crate::matching::{HostPattern, Index, MethodSet, PathPattern, Route};
use crate::ruleset::{Document, ExemptDoc, PolicyDoc, RouteDoc, RulesetError};
use crate::subject::{HashKey, KeySpec, PolicyTag};

/// Revisions stay below this: they are ms since the epoch, and nothing may push them out of what every reader counts
/// exactly. The operator believes no higher one, so a limiter that took it would refuse all that follow.
const REVISION_END: u64 = 1 << 52;

/// What the pieces of one ruleset share while they are made.
pub(super) struct Builder<'k> {
    pub(super) hash_key: &'k HashKey,
    /// How many limiters share a limit that is split.
    pub(super) limiters: Option<u64>,
    pub(super) next_ordinal: usize,
    pub(super) key_groups: HashMap<KeySpec, usize>,
}

/// Compiles a document whose digest holds.
pub(super) fn ruleset(document: &Document, hash_key: &HashKey) -> Result<Ruleset, RulesetError> {
    if document.gateway.is_empty() {
        return Err(RulesetError::invalid("gateway", "must not be empty"));
    }
    if document.revision == 0 {
        return Err(RulesetError::invalid("revision", "must be at least 1"));
    }
    if document.revision >= REVISION_END {
        return Err(RulesetError::invalid("revision", format!("must be below 2^52 = {REVISION_END}")));
    }
    if document.limiters == Some(0) {
        return Err(RulesetError::invalid("limiters", "must be at least 1: there is the one that reads this"));
    }
    let mut builder = Builder { hash_key, limiters: document.limiters, next_ordinal: 0, key_groups: HashMap::new() };
    let mut policies: Vec<Policy> = Vec::with_capacity(document.policies.len());
    let mut all_hosts: Vec<Vec<HostPattern>> = Vec::with_capacity(document.policies.len());
    let mut index = Index::default();
    for (place, doc) in document.policies.iter().enumerate() {
        let path = format!("policies[{place}]");
        if policies.last().is_some_and(|before| *before.id >= *doc.id) {
            return Err(RulesetError::invalid(format!("{path}.id"), "policies must be sorted by id, each id once"));
        }
        let hosts = hosts(doc, &path)?;
        let routes = routes(doc, &path)?;
        let policy = builder.policy(doc, &routes, &path)?;
        let acts = policy.rules.iter().any(Rule::may_act);
        policies.push(policy);
        if acts {
            index.insert(place, &hosts, &routes);
        }
        all_hosts.push(hosts);
    }
    lasting::note(&mut policies, &all_hosts);
    for (place, doc) in document.overrides.iter().enumerate() {
        override_build::apply(doc, &format!("overrides[{place}]"), &mut policies)?;
    }
    Ok(Ruleset {
        gateway: document.gateway.as_str().into(),
        revision: document.revision,
        digest: document.digest.as_str().into(),
        payload_place: document.jwt.as_ref().map(key_build::payload_place).transpose()?,
        overrides: document.overrides.len(),
        rules: builder.next_ordinal,
        policies,
        index,
        hash_key: hash_key.clone(),
    })
}

impl Builder<'_> {
    fn policy(&mut self, doc: &PolicyDoc, routes: &[Route], path: &str) -> Result<Policy, RulesetError> {
        if !is_object_id(&doc.id) {
            return Err(RulesetError::invalid(format!("{path}.id"), "must be \"namespace/name\""));
        }
        let mut rules: Vec<Rule> = Vec::with_capacity(doc.rules.len());
        for (place, rule) in doc.rules.iter().enumerate() {
            let path = format!("{path}.rules[{place}]");
            if doc.rules.iter().take(place).any(|before| (&before.name, before.slot) == (&rule.name, rule.slot)) {
                let message = format!("{:?} is there twice; a second entry needs a slot of its own", rule.name);
                return Err(RulesetError::invalid(format!("{path}.name"), message));
            }
            mode_build::check(rule, doc, &path)?;
            rules.push(rule_build::rule(self, &doc.id, rule, &path)?);
        }
        mode_build::note_judges(&mut rules);
        if doc.response.documentation.as_ref().is_some_and(|url| !is_https(url)) {
            return Err(RulesetError::invalid(format!("{path}.response.documentation"), "must be an https URL"));
        }
        Ok(Policy {
            id: doc.id.as_str().into(),
            generation: doc.generation,
            tag: PolicyTag::of(&doc.id),
            exemptions: exemptions(doc, path)?,
            captures: if rules.iter().any(|rule| rule.key.needs_captures()) { routes.into() } else { Box::default() },
            rules: rules.into(),
            dialect: doc.response.headers,
            documentation: doc.response.documentation.as_deref().map(Into::into),
        })
    }
}

/// Checks and reads a route.
pub(super) fn route(doc: &RouteDoc, path: &str) -> Result<Route, RulesetError> {
    Ok(Route {
        path: PathPattern::parse(&doc.path)
            .map_err(|message| RulesetError::invalid(format!("{path}.path"), message))?,
        methods: MethodSet::parse(&doc.methods)
            .map_err(|message| RulesetError::invalid(format!("{path}.methods"), message))?,
    })
}

/// Whether `name` is a header's name in lower case.
pub(super) fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9') || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn hosts(doc: &PolicyDoc, path: &str) -> Result<Vec<HostPattern>, RulesetError> {
    let parse = |(place, host): (usize, &String)| {
        HostPattern::parse(host)
            .map_err(|message| RulesetError::invalid(format!("{path}.match.hosts[{place}]"), message))
    };
    doc.matches.hosts.iter().enumerate().map(parse).collect()
}

fn routes(doc: &PolicyDoc, path: &str) -> Result<Vec<Route>, RulesetError> {
    let parse = |(place, doc): (usize, &RouteDoc)| route(doc, &format!("{path}.match.routes[{place}]"));
    doc.matches.routes.iter().enumerate().map(parse).collect()
}

fn exemptions(doc: &PolicyDoc, path: &str) -> Result<Box<[Exemption]>, RulesetError> {
    let parse = |(place, doc): (usize, &ExemptDoc)| exemption(doc, &format!("{path}.exempt[{place}]"));
    doc.exempt.iter().enumerate().map(parse).collect()
}

fn exemption(doc: &ExemptDoc, path: &str) -> Result<Exemption, RulesetError> {
    match doc {
        ExemptDoc::ClientIp(blocks) => {
            let parse = |(place, block): (usize, &String)| {
                let wrong = |_| {
                    RulesetError::invalid(format!("{path}.clientIP[{place}]"), format!("{block:?} is no CIDR block"))
                };
                block.parse::<IpNet>().map_err(wrong)
            };
            Ok(Exemption::Networks(blocks.iter().enumerate().map(parse).collect::<Result<_, _>>()?))
        }
        ExemptDoc::Header(header) => {
            if !is_header_name(&header.name) {
                return Err(RulesetError::invalid(
                    format!("{path}.header.name"),
                    "must be a header name in lower case",
                ));
            }
            let parse = |(place, value): (usize, &String)| {
                value.strip_prefix("sha256:").and_then(hex::decode_sha256).ok_or_else(|| {
                    RulesetError::invalid(
                        format!("{path}.header.in[{place}]"),
                        "must be \"sha256:\" and 64 lower-case hex digits",
                    )
                })
            };
            let digests = header.values.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
            Ok(Exemption::Header { name: header.name.as_str().into(), digests })
        }
    }
}

/// `namespace/name`, as Kubernetes names objects.
pub(super) fn is_object_id(id: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= 253
            && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
    };
    id.split_once('/').is_some_and(|(namespace, name)| is_name(namespace) && is_name(name))
}

fn is_https(url: &str) -> bool {
    url.strip_prefix("https://").is_some_and(|rest| !rest.is_empty()) && url.bytes().all(|byte| byte.is_ascii_graphic())
}
