// SPDX-License-Identifier: Apache-2.0
//! `Server` and `Stats` for Python. Waiting happens with the interpreter released.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use limiter_server::{HashKey, Options, PayloadPlace, logging};
use pyo3::prelude::*;

use crate::error::Error;

/// What `weir_limiter.config.Settings` holds, attribute by attribute.
#[derive(FromPyObject)]
struct Settings {
    gateway: String,
    instance: String,
    listen: String,
    admin: String,
    store: String,
    store_deadline_s: f64,
    max_held: usize,
    threads: usize,
    deny_cache: usize,
    rules_configmap: Option<String>,
    rules_dir: Option<PathBuf>,
    breakglass_dir: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    jwt_namespace: String,
    jwt_payload_key: String,
    hash_key: Vec<u8>,
    mode_header: bool,
    log_level: String,
    log_format: String,
}

impl Settings {
    fn options(self) -> Result<Options, Error> {
        Ok(Options {
            gateway: self.gateway,
            instance: self.instance,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            listen: self.listen.parse()?,
            admin: self
                .admin
                .parse()
                .map_err(|_| Error::Config(format!("admin: {:?} is not ADDRESS:PORT", self.admin)))?,
            store: self.store,
            store_deadline: seconds("store-deadline", self.store_deadline_s)?,
            max_held: self.max_held,
            threads: self.threads,
            deny_cache: self.deny_cache,
            rules_configmap: self.rules_configmap.as_deref().map(str::parse).transpose()?,
            rules_dir: self.rules_dir,
            breakglass_dir: self.breakglass_dir,
            state_dir: self.state_dir,
            payload_place: PayloadPlace { namespace: self.jwt_namespace.into(), key: self.jwt_payload_key.into() },
            hash_key: HashKey::new(&self.hash_key)?,
            mode_header: self.mode_header,
        })
    }
}

fn seconds(setting: &str, value: f64) -> Result<Duration, Error> {
    Duration::try_from_secs_f64(value).map_err(|error| Error::Config(format!("{setting}: {error}")))
}

/// One limiter: bound when made, deciding from `start` until `stop`.
#[pyclass(frozen, module = "weir_limiter._core")]
pub(crate) struct Server(Mutex<limiter_server::Server>);

impl Server {
    fn lock(&self) -> MutexGuard<'_, limiter_server::Server> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Server {
    #[new]
    fn new(settings: Settings) -> Result<Self, Error> {
        logging::start(&settings.log_level, settings.log_format.parse()?)?;
        Ok(Self(Mutex::new(limiter_server::Server::new(settings.options()?)?)))
    }

    /// Start to serve, in threads of its own.
    fn start(&self) -> Result<(), Error> {
        Ok(self.lock().start()?)
    }

    /// Put a ruleset document into force.
    fn apply(&self, py: Python<'_>, ruleset: &[u8]) -> Result<(), Error> {
        Ok(py.detach(|| self.lock().apply(ruleset))?)
    }

    /// What the server says of itself at this moment.
    fn stats(&self) -> Stats {
        Stats(self.lock().stats())
    }

    /// Accept no more, let calls under way finish for at most `drain_s` seconds, end.
    fn stop(&self, py: Python<'_>, drain_s: f64) -> Result<(), Error> {
        let drain = seconds("drain", drain_s)?;
        py.detach(|| self.lock().stop(drain));
        Ok(())
    }
}

/// What a server says of itself.
#[pyclass(frozen, module = "weir_limiter._core")]
pub(crate) struct Stats(limiter_server::Stats);

#[pymethods]
impl Stats {
    /// It has rules, has tried the store, and is not draining.
    #[getter]
    fn ready(&self) -> bool {
        self.0.ready
    }

    /// All of its threads run.
    #[getter]
    fn alive(&self) -> bool {
        self.0.alive
    }

    /// The store decides, as far as is known.
    #[getter]
    fn store_up(&self) -> bool {
        self.0.store_up
    }

    /// Revision of the rules in force; 0 without rules.
    #[getter]
    fn revision(&self) -> u64 {
        self.0.revision
    }
}
