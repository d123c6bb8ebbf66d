// SPDX-License-Identifier: Apache-2.0
//! Break glass: a map that people own, by which a limiter switches rules off whatever the operator does.
//!
//! Owns how the map is written (YAML, of which JSON is a part), who is believed, and what is said of it. The watch is: what
//! it brings holds until it brings something else, also while the API server is away. A mounted copy lags behind, so it
//! only counts while the watch does not stand, and only with what the watch has not brought before.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;
use limiter_core::BreakGlass;
use serde::Serialize;

use super::book::RuleBook;
use super::watch::{Reader, WatchHealth, WatchReport, WatchState};
use crate::metrics::Metrics;
use crate::options::ConfigMapName;

/// The key of the `ConfigMap`, and the name of the file, that holds the map.
pub(super) const MODES: &str = "modes";

/// How many texts of the watch are remembered: more than a lagging volume can be behind.
const REMEMBERED: usize = 16;

/// What is known of the map.
pub(crate) struct Glass {
    book: Arc<RuleBook>,
    watch: Arc<WatchReport>,
    metrics: Arc<Metrics>,
    known: Mutex<Known>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    modes: BTreeMap<String, &'static str>,
    error: Option<String>,
    resource_version: Option<String>,
    /// What the watch has brought lately, the latest last.
    brought: VecDeque<u64>,
    /// What the mounted copy says and nobody has believed yet.
    unheard: Option<Mounted>,
}

/// What a mounted copy says.
#[derive(Clone, Debug)]
enum Mounted {
    Text(Vec<u8>),
    Gone,
}

/// The map in force, and what is wrong with the one that is not.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GlassReport {
    modes: BTreeMap<String, &'static str>,
    error: Option<String>,
    /// Of the `ConfigMap` that was read last.
    resource_version: Option<String>,
    watch: WatchHealth,
}

impl Glass {
    /// Whole glass. `watched`: whether a watch will be kept on it.
    pub(crate) fn new(book: Arc<RuleBook>, metrics: Arc<Metrics>, watched: bool) -> Self {
        let watch = Arc::new(WatchReport::new("break glass", watched));
        Self { book, watch, metrics, known: Mutex::default() }
    }

    /// What `/status` says.
    pub(crate) fn report(&self) -> GlassReport {
        let Known { modes, error, resource_version, .. } = self.lock().clone();
        GlassReport { modes, error, resource_version, watch: self.watch.get() }
    }

    /// The watch's known.
    pub(super) fn watch(&self) -> Arc<WatchReport> {
        Arc::clone(&self.watch)
    }

    /// The mounted file has changed, or is gone. What it says is kept until `fall_back` has use for it: that a watch no
    /// longer stands is noticed later than the kubelet notices a change.
    pub(super) fn mounted(&self, text: Option<&[u8]>) {
        let mut known = self.lock();
        let lags = known.brought.contains(&digest(text));
        known.unheard = (!lags).then(|| text.map_or(Mounted::Gone, |text| Mounted::Text(text.to_vec())));
    }

    /// Believes the mounted copy, if the watch does not stand.
    pub(super) fn fall_back(&self) {
        if self.watch.get().state == WatchState::Connected {
            return;
        }
        let unheard = self.lock().unheard.take();
        match unheard {
            Some(Mounted::Text(text)) => self.offer(Some(parse(&text)), None),
            Some(Mounted::Gone) => self.offer(None, None),
            None => {}
        }
    }

    /// The watch has brought this; what the mounted copy said before is old.
    fn brought(&self, text: Option<&[u8]>) {
        let mut known = self.lock();
        known.unheard = None;
        if known.brought.len() == REMEMBERED {
            known.brought.pop_front();
        }
        known.brought.push_back(digest(text));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a map into force, or none, or keeps the last good one and says why.
    fn offer(&self, map: Option<Result<BreakGlass, String>>, resource_version: Option<String>) {
        let mut known = self.lock();
        known.resource_version = resource_version;
        match map.unwrap_or_else(|| Ok(BreakGlass::default())) {
            Ok(glass) => {
                let modes: BTreeMap<_, _> =
                    glass.modes().map(|(name, mode)| (name.to_owned(), mode.as_str())).collect();
                known.error = None;
                if modes != known.modes {
                    say(&modes);
                    known.modes = modes;
                    self.book.break_glass(glass);
                }
            }
            Err(error) => {
                if known.error.as_ref() != Some(&error) {
                    tracing::error!(error, "the break-glass map cannot be read; the last good one stays");
                }
                known.error = Some(error);
            }
        }
        self.metrics.break_glass_entries.set(i64::try_from(known.modes.len()).unwrap_or(i64::MAX));
        self.metrics.break_glass_unreadable.set(i64::from(known.error.is_some()));
    }
}

impl Reader for Glass {
    fn take(&self, configmap: &ConfigMap) -> String {
        let text = configmap.data.as_ref().and_then(|data| data.get(MODES));
        self.brought(text.map(String::as_bytes));
        let map = text.map_or_else(|| Err(format!("the ConfigMap has no key {MODES}")), |text| parse(text.as_bytes()));
        self.offer(Some(map), configmap.metadata.resource_version.clone());
        String::new()
    }

    fn gone(&self, _name: &ConfigMapName) -> String {
        self.brought(None);
        self.offer(None, None);
        String::new()
    }
}

fn digest(text: Option<&[u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn say(modes: &BTreeMap<String, &'static str>) {
    if modes.is_empty() {
        tracing::warn!("break glass ended; the rules hold again");
    } else {
        tracing::warn!(?modes, "the glass is broken: limits are switched off by hand");
    }
}

/// A text without content is a map without entries. A name that is there twice is an error of the reader's own.
fn parse(text: &[u8]) -> Result<BreakGlass, String> {
    let map: Option<BTreeMap<String, String>> = serde_saphyr::from_slice(text).map_err(|error| error.to_string())?;
    let map = map.unwrap_or_default();
    BreakGlass::new(map.iter().map(|(name, mode)| (name.as_str(), mode.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(text: &str) -> Result<Vec<String>, String> {
        let glass = parse(text.as_bytes())?;
        Ok(glass.modes().map(|(name, mode)| format!("{name}={}", mode.as_str())).collect())
    }

    #[test]
    fn yaml_and_json_are_read() {
        let wanted = Ok(vec!["*=Shadow".to_owned(), "team/api=Disabled".to_owned()]);
        assert_eq!(wanted, modes("# INC-42\n\"*\": Shadow\nteam/api: Disabled\n"));
        assert_eq!(wanted, modes("{\"team/api\": \"Disabled\", \"*\": \"Shadow\"}"));
        for nothing in ["", "\n", "# nothing\n", "{}", "null"] {
            assert_eq!(Ok(Vec::new()), modes(nothing), "{nothing:?}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_as_a_whole() {
        let cases = [
            "team/api: Disabled\nteam/web: Off\n",
            "team/api: Disabled\nteam/api: Shadow\n",
            "team/api: [Disabled]",
            "- team/api",
            "Disabled",
            "*: Disabled",
            "team/api: Disabled\nteam: Shadow",
            "{",
            "team/api: Disabled\n---\nteam/web: Disabled\n",
        ];
        for text in cases {
            assert!(modes(text).is_err(), "{text:?} was taken for {:?}", modes(text));
        }
    }
}
