// SPDX-License-Identifier: Apache-2.0
//! What the limiter reads from the API server: a `ConfigMap`, listed and watched by its name, which is all that its service
//! account may do.
//!
//! An API server that is away takes nothing away. What a content means, or a `ConfigMap` that is gone, is the reader's matter.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher as watch;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Config};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::book::{RuleBook, Source};
use super::mount::{DOCUMENT, DOCUMENT_GZ};
use crate::options::ConfigMapName;
use crate::pause::jittered;

/// The server ends each watch after this time and the next one starts where it ended; a connection that died without a
/// word is noticed 5 s later.
const WATCH_S: u32 = 30;
/// An API server that takes no connection within this time is away.
const CONNECT: Duration = Duration::from_secs(5);
/// First and longest pause after a failure. An edit must be live within seconds of the API server's return.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Time without a failure after which the pauses start over.
const GOOD_AFTER: Duration = Duration::from_secs(10);

/// The pauses between attempts: doubling, and starting over after a time without failures.
struct Pauses {
    next: Duration,
    failed_at: Option<Instant>,
}

impl Pauses {
    fn new() -> Self {
        Self { next: FIRST_PAUSE, failed_at: None }
    }

    fn after_failure(&mut self) -> Duration {
        let quiet = self.failed_at.replace(Instant::now()).is_none_or(|failed_at| failed_at.elapsed() > GOOD_AFTER);
        let pause = if quiet { FIRST_PAUSE } else { self.next };
        self.next = (pause * 2).min(LONGEST_PAUSE);
        jittered(pause)
    }
}

/// Whether the watch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum WatchState {
    Connected,
    Disconnected,
    /// There is nothing to watch.
    Off,
}

/// The watch's part of the status document.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct WatchHealth {
    pub(crate) state: WatchState,
    /// What is wrong; empty otherwise.
    pub(crate) error: String,
}

/// Shared between the watch, which writes it, and the status page.
pub(crate) struct WatchReport {
    /// What is watched, for the log.
    what: &'static str,
    health: Mutex<WatchHealth>,
}

/// Takes what a watch brings.
pub(super) trait Reader {
    /// The `ConfigMap` as it is now; the answer is what is wrong with it, and empty otherwise.
    fn take(&self, configmap: &ConfigMap) -> String;

    /// There is no such `ConfigMap`, or no longer; the answer is what is wrong with that.
    fn gone(&self, name: &ConfigMapName) -> String;
}

impl WatchReport {
    /// For a watch that has not begun, or never will.
    pub(crate) fn new(what: &'static str, wanted: bool) -> Self {
        let state = if wanted { WatchState::Disconnected } else { WatchState::Off };
        Self { what, health: Mutex::new(WatchHealth { state, error: String::new() }) }
    }

    pub(crate) fn get(&self) -> WatchHealth {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: WatchState, error: String) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if health.state != state || health.error != error {
            if state == WatchState::Disconnected {
                tracing::warn!(what = self.what, error, "a watch is interrupted");
            } else {
                tracing::info!(what = self.what, note = error, "a watch stands");
            }
            *health = WatchHealth { state, error };
        }
    }
}

/// A client that waits for no answer longer than for the longest silence of a watch: an API server that accepts and never
/// says a word is one that is away.
async fn client() -> Result<Client, kube::Error> {
    let mut config = Config::infer().await.map_err(kube::Error::InferConfig)?;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(Duration::from_secs(u64::from(WATCH_S) + 5));
    Client::try_from(config)
}

/// Follows the `ConfigMap` until the runtime ends.
pub(super) async fn run(name: ConfigMapName, reader: Arc<impl Reader>, report: Arc<WatchReport>) {
    let mut pauses = Pauses::new();
    loop {
        let error = match client().await {
            Ok(client) => follow(events(client, &name), &name, &*reader, &report).await,
            Err(error) => with_causes(&error),
        };
        report.set(WatchState::Disconnected, error);
        sleep(pauses.after_failure()).await;
    }
}

fn events(client: Client, name: &ConfigMapName) -> impl Stream<Item = watcher::Result<Event<ConfigMap>>> + use<> {
    let api: Api<ConfigMap> = Api::namespaced(client, &name.namespace);
    let only = watcher::Config::default().fields(&format!("metadata.name={}", name.name)).timeout(WATCH_S);
    watch(api, only)
}

/// Follows one watch until it fails; the answer is why. The next one begins with a list, so that it is known to stand as
/// soon as it does: a stream that goes on where it was says nothing until the next edit.
async fn follow(
    events: impl Stream<Item = watcher::Result<Event<ConfigMap>>>,
    name: &ConfigMapName,
    reader: &impl Reader,
    report: &WatchReport,
) -> String {
    pin_mut!(events);
    let mut listed = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed = false,
            Ok(Event::Apply(configmap) | Event::InitApply(configmap)) => {
                listed = true;
                report.set(WatchState::Connected, reader.take(&configmap));
            }
            Ok(Event::InitDone) if listed => {}
            Ok(Event::InitDone | Event::Delete(_)) => report.set(WatchState::Connected, reader.gone(name)),
            Err(error) => return with_causes(&error),
        }
    }
    "the watch ended".to_owned()
}

impl Reader for RuleBook {
    fn take(&self, configmap: &ConfigMap) -> String {
        let plain = configmap.data.as_ref().and_then(|data| data.get(DOCUMENT)).map(String::as_bytes);
        let packed = || configmap.binary_data.as_ref().and_then(|data| data.get(DOCUMENT_GZ)).map(|data| &data.0[..]);
        match plain.or_else(packed) {
            Some(document) => {
                // A refusal is remembered by the book.
                let _refused = self.offer(document, Source::Watch);
                String::new()
            }
            None => format!("the ConfigMap has neither {DOCUMENT} nor {DOCUMENT_GZ}; the last good rules stay"),
        }
    }

    fn gone(&self, name: &ConfigMapName) -> String {
        format!("ConfigMap {}/{} does not exist; the last good rules stay", name.namespace, name.name)
    }
}

/// An error with what caused it, because the outermost one often only says that something failed.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut pauses = Pauses::new();
        let pauses: Vec<u128> = (0..6).map(|_| pauses.after_failure().as_millis()).collect();
        for (pause, wanted) in pauses.into_iter().zip([200, 400, 800, 1600, 2000, 2000]) {
            assert!((wanted * 3 / 4..=wanted * 5 / 4).contains(&pause), "{pause} instead of about {wanted}");
        }
    }

    #[test]
    fn an_error_is_told_with_its_causes() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = std::io::Error::other(Outer(refused));
        assert_eq!(with_causes(&error), "request failed: connection refused");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("request failed")]
    struct Outer(#[source] std::io::Error);
}
