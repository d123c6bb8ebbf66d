// SPDX-License-Identifier: Apache-2.0
//! `explain`: what a ruleset would do with one request.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use limiter_core::explain::ExplainError;

use crate::error::Error;

/// Explains what a ruleset does with a request (JSON: `{method, host, path, headers, clientIP, principal, claims}`), as JSON.
///
/// Overrides count as of now. Raises `RulesetError` when the ruleset is refused, `ValueError` when the request is.
#[pyfunction]
pub(crate) fn explain(ruleset: &[u8], request: &[u8]) -> PyResult<String> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    limiter_core::explain::explain(ruleset, request, now_s).map_err(|error| match error {
        ExplainError::Ruleset(error) => Error::from(error).into(),
        error @ ExplainError::Request { .. } => PyValueError::new_err(error.to_string()),
    })
}
