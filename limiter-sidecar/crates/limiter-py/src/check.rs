// SPDX-License-Identifier: Apache-2.0
//! `check`: whether a ruleset document would be accepted.

use pyo3::prelude::*;

use crate::error::Error;

/// Checks a ruleset document. Returns what it holds, as JSON: `{gateway, revision, digest, policies, rules, overrides}`.
///
/// Raises `RulesetError` with the path of what is wrong.
#[pyfunction]
pub(crate) fn check(ruleset: &[u8]) -> PyResult<String> {
    Ok(limiter_core::explain::check(ruleset).map_err(Error::from)?.to_json())
}
