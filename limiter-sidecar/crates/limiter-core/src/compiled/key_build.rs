// SPDX-License-Identifier: Apache-2.0
//! From the sources of a key or a plan in the document to sources that are read from requests.

use std::collections::HashSet;

use super::build::is_header_name;
use crate::ruleset::{KeyDoc, PlanSourceDoc, RulesetError};
use crate::subject::KeySpec;

/// Checks and reads a rule's key. A source may stand in it once only: overrides name sources, and the name must be clear.
pub(super) fn key(doc: &[KeyDoc], path: &str) -> Result<KeySpec, RulesetError> {
    let mut seen = HashSet::new();
    for (place, entry) in doc.iter().enumerate() {
        let path = format!("{path}[{place}]");
        let name = match entry {
            KeyDoc::Header(name) if !is_header_name(name) => {
                return Err(RulesetError::invalid(format!("{path}.header"), "must be a header name in lower case"));
            }
            KeyDoc::Header(name) => Some(name),
            KeyDoc::ClientIp(prefixes) if prefixes.ipv4_prefix > 32 => {
                return Err(RulesetError::invalid(format!("{path}.clientIP.ipv4Prefix"), "must be from 0 to 32"));
            }
            KeyDoc::ClientIp(prefixes) if prefixes.ipv6_prefix > 128 => {
                return Err(RulesetError::invalid(format!("{path}.clientIP.ipv6Prefix"), "must be from 0 to 128"));
            }
            KeyDoc::ClientIp(_) => None,
        };
        if !seen.insert(name) {
            return Err(RulesetError::invalid(path, "this source is in the key twice"));
        }
    }
    Ok(KeySpec::from_doc(doc))
}

/// Checks and reads the source of a plan's name.
pub(super) fn plan_source(doc: &PlanSourceDoc, path: &str) -> Result<Box<str>, RulesetError> {
    let PlanSourceDoc::Header(name) = doc;
    if !is_header_name(name) {
        return Err(RulesetError::invalid(format!("{path}.header"), "must be a header name in lower case"));
    }
    Ok(name.as_str().into())
}
