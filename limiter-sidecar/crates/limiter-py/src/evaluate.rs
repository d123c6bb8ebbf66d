// SPDX-License-Identifier: Apache-2.0
//! `evaluate`: the core's token bucket, for conformance tests.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Plays a vector, `{"steps": [{"now_us", "rules": [{"key", "id", "p", "l", "capacity", "increment", "enforcing"}]}]}`, through the
/// core's token bucket. Returns `{"replies": [[int, …]]}`.
///
/// Raises `ValueError` when the vector is of another shape.
#[pyfunction]
pub(crate) fn evaluate(vector: &str) -> PyResult<String> {
    limiter_core::evaluate::evaluate(vector.as_bytes()).map_err(|error| PyValueError::new_err(error.to_string()))
}
