// SPDX-License-Identifier: Apache-2.0
//! Log lines to standard error: text for people, JSON for collectors. Only changes of state are logged, never requests.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::options::ConfigError;

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl std::str::FromStr for Format {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(ConfigError::new("log-format", format!("{text:?} is neither json nor text"))),
        }
    }
}

/// Starts logging for the whole process. A second call changes nothing, because the process has one standard error.
///
/// # Errors
/// [`ConfigError`] for an unknown level.
pub fn start(level: &str, format: Format) -> Result<(), ConfigError> {
    let level: LevelFilter = level
        .parse()
        .map_err(|_| ConfigError::new("log-level", format!("{level:?} is none of error, warn, info, debug, trace")))?;
    // Libraries at their most talkative may log requests and headers, so their level is fixed. kube logs every failed
    // attempt; the watch reports the first one of a row.
    let levels = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("kube_client", LevelFilter::OFF)
        .with_target("kube_runtime", LevelFilter::OFF)
        .with_target("limiter_server", level);
    let lines = tracing_subscriber::registry().with(levels);
    let output = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let _already_started = match format {
        Format::Text => lines.with(output).try_init(),
        Format::Json => lines.with(output.json().flatten_event(true)).try_init(),
    };
    Ok(())
}
