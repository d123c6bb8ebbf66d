// SPDX-License-Identifier: Apache-2.0
//! Errors of the Rust side as Python exceptions, in one place.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;

create_exception!(weir_limiter._core, ConfigError, PyValueError, "A setting that cannot work; the message names it.");
create_exception!(
    weir_limiter._core,
    RulesetError,
    PyValueError,
    "A ruleset document that is refused; the message names the member."
);

/// Everything that can go wrong on this side of the border.
#[derive(Debug)]
pub(crate) enum Error {
    Config(String),
    Ruleset(String),
}

impl From<limiter_server::ConfigError> for Error {
    fn from(error: limiter_server::ConfigError) -> Self {
        Self::Config(error.to_string())
    }
}

impl From<limiter_server::HashKeyError> for Error {
    fn from(error: limiter_server::HashKeyError) -> Self {
        Self::Config(format!("hash-key: {error}"))
    }
}

impl From<limiter_server::RulesetRefused> for Error {
    fn from(error: limiter_server::RulesetRefused) -> Self {
        Self::Ruleset(error.to_string())
    }
}

impl From<limiter_core::RulesetError> for Error {
    fn from(error: limiter_core::RulesetError) -> Self {
        Self::Ruleset(error.to_string())
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Config(message) => ConfigError::new_err(message),
            Error::Ruleset(message) => RulesetError::new_err(message),
        }
    }
}
