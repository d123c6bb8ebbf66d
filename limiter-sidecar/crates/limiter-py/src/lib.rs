// SPDX-License-Identifier: Apache-2.0
//! The Python module `weir_limiter._core`: settings in, a running server out. Python never runs on a request's path.

mod check;
mod error;
mod evaluate;
mod explain;
mod server;

use pyo3::prelude::*;

/// The limiter's core.
#[pymodule]
mod _core {
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    #[pymodule_export]
    use super::check::check;
    #[pymodule_export]
    use super::error::{ConfigError, RulesetError};
    #[pymodule_export]
    use super::evaluate::{calendar_edges, evaluate};
    #[pymodule_export]
    use super::explain::explain;
    #[pymodule_export]
    use super::server::{Server, Stats};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let scripts = PyDict::new(module.py());
        for (name, sha1) in limiter_server::scripts() {
            scripts.set_item(name, sha1)?;
        }
        module.add("SCRIPTS", scripts)
    }
}
