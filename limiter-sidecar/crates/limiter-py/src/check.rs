// SPDX-License-Identifier: Apache-2.0
//! `check`: whether a ruleset document would be accepted.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Checks a ruleset document. Returns what it holds, as JSON: `{gateway, revision, digest, policies, rules, overrides}`.
///
/// Raises `ValueError` with the path of what is wrong.
#[pyfunction]
pub(crate) fn check(ruleset: &[u8]) -> PyResult<String> {
    let summary = limiter_core::explain::check(ruleset).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(summary.to_json())
}
