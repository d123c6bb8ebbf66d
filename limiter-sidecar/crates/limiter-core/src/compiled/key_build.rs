// SPDX-License-Identifier: Apache-2.0
//! From the sources of a key or a plan in the document to sources that are read from requests.

use std::collections::HashSet;

use super::build::is_header_name;
use crate::claims::PayloadPlace;
use crate::ruleset::{JwtDoc, KeyDoc, PlanSourceDoc, PrefixesDoc, RulesetError};
use crate::subject::{KeySpec, Prefixes, Source};

/// Checks and reads a rule's key. A source may stand in it once only: overrides name sources, and the name must be clear.
pub(super) fn key(doc: &[KeyDoc], path: &str) -> Result<KeySpec, RulesetError> {
    let mut seen = HashSet::new();
    let mut sources = Vec::with_capacity(doc.len());
    for (place, entry) in doc.iter().enumerate() {
        let path = format!("{path}[{place}]");
        let source = source(entry, &path)?;
        if !seen.insert(source.name()) {
            return Err(RulesetError::invalid(path, "this source is in the key twice"));
        }
        sources.push(source);
    }
    Ok(KeySpec::new(sources))
}

/// Checks and reads the source of a plan's name.
pub(super) fn plan_source(doc: &PlanSourceDoc, path: &str) -> Result<Source, RulesetError> {
    match doc {
        PlanSourceDoc::Header(name) => header(name, path),
        PlanSourceDoc::Claim(members) => claim(members, path),
    }
}

/// Checks and reads where a token's claims lie.
pub(super) fn payload_place(doc: &JwtDoc) -> Result<PayloadPlace, RulesetError> {
    for (member, name) in [("metadataNamespace", &doc.metadata_namespace), ("payloadKey", &doc.payload_key)] {
        if name.is_empty() {
            return Err(RulesetError::invalid(format!("jwt.{member}"), "must not be empty"));
        }
    }
    Ok(PayloadPlace { namespace: doc.metadata_namespace.as_str().into(), key: doc.payload_key.as_str().into() })
}

fn source(doc: &KeyDoc, path: &str) -> Result<Source, RulesetError> {
    match doc {
        KeyDoc::Header(name) => header(name, path),
        KeyDoc::Cookie(name) if !is_cookie_name(name) => {
            Err(RulesetError::invalid(format!("{path}.cookie"), "must be a cookie's name"))
        }
        KeyDoc::Cookie(name) => Ok(Source::Cookie(name.as_str().into())),
        KeyDoc::Query(name) if name.is_empty() => {
            Err(RulesetError::invalid(format!("{path}.query"), "must not be empty"))
        }
        KeyDoc::Query(name) => Ok(Source::Query(name.as_str().into())),
        KeyDoc::ClientIp(prefixes) => client_ip(*prefixes, path),
        KeyDoc::Claim(members) => claim(members, path),
        KeyDoc::Principal(_) => Ok(Source::Principal),
        KeyDoc::Path(name) if name.is_empty() => Err(RulesetError::invalid(
            format!("{path}.path"),
            "must be the name of a segment of the policy's routes, as \"org\" of \"/orgs/{org}\"",
        )),
        KeyDoc::Path(name) => Ok(Source::Path(name.as_str().into())),
        KeyDoc::Host(_) => Ok(Source::Host),
        KeyDoc::Method(_) => Ok(Source::Method),
    }
}

fn header(name: &str, path: &str) -> Result<Source, RulesetError> {
    if !is_header_name(name) {
        return Err(RulesetError::invalid(format!("{path}.header"), "must be a header name in lower case"));
    }
    Ok(Source::Header(name.into()))
}

fn claim(members: &[String], path: &str) -> Result<Source, RulesetError> {
    if members.is_empty() || members.iter().any(String::is_empty) {
        let message = "must be the names of the members that lead to the claim, as [\"realm\", \"sub\"]";
        return Err(RulesetError::invalid(format!("{path}.claim"), message));
    }
    Ok(Source::Claim(members.iter().map(|member| member.as_str().into()).collect()))
}

fn client_ip(doc: PrefixesDoc, path: &str) -> Result<Source, RulesetError> {
    if doc.ipv4_prefix > 32 {
        return Err(RulesetError::invalid(format!("{path}.clientIP.ipv4Prefix"), "must be from 0 to 32"));
    }
    if doc.ipv6_prefix > 128 {
        return Err(RulesetError::invalid(format!("{path}.clientIP.ipv6Prefix"), "must be from 0 to 128"));
    }
    Ok(Source::ClientIp(Prefixes { ipv4: doc.ipv4_prefix, ipv6: doc.ipv6_prefix }))
}

/// A token of RFC 9110, which is what RFC 6265 lets a cookie be called.
fn is_cookie_name(name: &str) -> bool {
    is_header_name(&name.to_ascii_lowercase())
}
