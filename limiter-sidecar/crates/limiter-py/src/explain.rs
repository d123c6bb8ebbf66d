// SPDX-License-Identifier: Apache-2.0
//! `explain`: what a ruleset would do with one request.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Explains what a ruleset does with a request (JSON: `{method, host, path, headers, clientIP}`), as JSON.
///
/// Overrides count as of now. Raises `ValueError` when the ruleset or the request is refused.
#[pyfunction]
pub(crate) fn explain(ruleset: &[u8], request: &[u8]) -> PyResult<String> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    limiter_core::explain::explain(ruleset, request, now_s).map_err(|error| PyValueError::new_err(error.to_string()))
}
