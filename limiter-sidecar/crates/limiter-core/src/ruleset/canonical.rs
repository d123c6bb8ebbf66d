// SPDX-License-Identifier: Apache-2.0
//! Canonical JSON and the digest over it: sorted keys, no spaces, no escapes beyond the necessary, integers only.
//!
//! Sorts explicitly: whether `serde_json` keeps objects sorted depends on features that any other crate may switch on.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::RulesetError;
use crate::hex;

/// Members that the digest does not cover.
const UNCOVERED: [&str; 2] = ["digest", "revision"];

/// The digest that a document with this content must state: `sha256:` and 64 hex digits.
///
/// # Errors
/// When the document is no object or holds a number that is no integer.
pub fn digest_of(document: &Value) -> Result<String, RulesetError> {
    let Value::Object(members) = document else {
        return Err(RulesetError::invalid("", "the document must be an object"));
    };
    let mut text = String::new();
    write_object(members.iter().filter(|(name, _)| !UNCOVERED.contains(&name.as_str())), &mut text)?;
    Ok(format!("sha256:{}", hex::encode(&Sha256::digest(text.as_bytes()))))
}

fn write_object<'a>(
    members: impl Iterator<Item = (&'a String, &'a Value)>,
    out: &mut String,
) -> Result<(), RulesetError> {
    let mut members: Vec<_> = members.collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    out.push('{');
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(name, out)?;
        out.push(':');
        write_value(value, out)?;
    }
    out.push('}');
    Ok(())
}

fn write_value(value: &Value, out: &mut String) -> Result<(), RulesetError> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) if number.is_f64() => {
            return Err(RulesetError::invalid("", format!("{number} is no integer; the document holds integers only")));
        }
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => write_string(text, out)?,
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out)?;
            }
            out.push(']');
        }
        Value::Object(members) => write_object(members.iter(), out)?,
    }
    Ok(())
}

fn write_string(text: &str, out: &mut String) -> Result<(), RulesetError> {
    let quoted = serde_json::to_string(text).map_err(|error| RulesetError::Syntax(error.to_string()))?;
    out.push_str(&quoted);
    Ok(())
}
