// SPDX-License-Identifier: Apache-2.0
//! The rules' own side of a server: its sources are followed, and what replaced rules leave behind is freed.
//!
//! All of it runs on one thread that gives way to traffic: what a big document costs from the wire to the swap (TLS, JSON,
//! gzip, checks, compiling) and its end is paid there, so no request waits for it. The swap itself is one pointer.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::sleep;

use super::book::RuleBook;
use super::glass::Glass;
use super::{WatchReport, mount, watch};
use crate::options::{ConfigMapName, Options};

/// How often replaced rulesets are freed.
const FREE_EVERY: Duration = Duration::from_secs(2);

/// Where documents come from while the server runs.
pub(crate) struct Sources {
    configmap: Option<ConfigMapName>,
    directory: Option<PathBuf>,
}

/// Where the break-glass map comes from. Not on the rules' thread, which gives way: this is for emergencies.
pub(crate) struct GlassSources {
    configmap: Option<ConfigMapName>,
    directory: Option<PathBuf>,
}

impl GlassSources {
    /// Beside the rules in their namespace, and where the options say that it is mounted.
    pub(crate) fn new(options: &Options) -> Self {
        Self { configmap: options.breakglass_configmap(), directory: options.breakglass_dir.clone() }
    }

    /// Follows them until the runtime ends.
    pub(crate) fn follow(self, glass: &Arc<Glass>) {
        if let Some(directory) = self.directory {
            tokio::spawn(mount::run_glass(directory, Arc::clone(glass)));
        }
        if let Some(configmap) = self.configmap {
            tokio::spawn(watch::run(configmap, Arc::clone(glass), glass.watch()));
        }
    }
}

impl Sources {
    /// Those that the options name.
    pub(crate) fn new(options: &Options) -> Self {
        Self { configmap: options.rules_configmap.clone(), directory: options.rules_dir.clone() }
    }

    /// Follows them until `end`.
    ///
    /// # Errors
    /// None; it is a thread's work.
    pub(crate) async fn follow(
        self,
        book: Arc<RuleBook>,
        report: Arc<WatchReport>,
        mut end: Receiver<bool>,
    ) -> io::Result<()> {
        if let Some(directory) = self.directory {
            tokio::spawn(mount::run(directory, Arc::clone(&book)));
        }
        if let Some(configmap) = self.configmap {
            tokio::spawn(watch::run(configmap, Arc::clone(&book), report));
        }
        loop {
            tokio::select! {
                () = sleep(FREE_EVERY) => book.free(),
                _ = end.changed() => return Ok(()),
            }
        }
    }
}
