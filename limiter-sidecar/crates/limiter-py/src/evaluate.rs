// SPDX-License-Identifier: Apache-2.0
//! `evaluate` and `calendar_edges`: the core's arithmetic, for conformance tests.

use limiter_core::calendar::Calendar;
use limiter_core::ruleset::CalendarUnit;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Plays a vector, `{"steps": [{"now_us", "rules": [{"key", "id", "kind", "enforcing", "numbers"}]}]}`, through the core's counters;
/// a step with `"refund": true` and `"charged_at_us"` gives back. Returns `{"replies": [[int, …]]}`.
///
/// Raises `ValueError` when the vector is of another shape.
#[pyfunction]
pub(crate) fn evaluate(vector: &str) -> PyResult<String> {
    limiter_core::evaluate::evaluate(vector.as_bytes()).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The edges of three consecutive windows, of which the middle one holds `now_us` (µs since the epoch). `calendar`: `Day`,
/// `Week` or `Month`; `zone`: an IANA name.
///
/// Raises `ValueError` when there is no such calendar or zone.
#[pyfunction]
pub(crate) fn calendar_edges(calendar: &str, zone: &str, now_us: u64) -> PyResult<[u64; 4]> {
    let unit = match calendar {
        "Day" => CalendarUnit::Day,
        "Week" => CalendarUnit::Week,
        "Month" => CalendarUnit::Month,
        other => return Err(PyValueError::new_err(format!("{other:?} is neither Day nor Week nor Month"))),
    };
    let calendar = Calendar::new(unit, zone).map_err(PyValueError::new_err)?;
    Ok(calendar.edges(now_us))
}
