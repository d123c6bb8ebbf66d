// SPDX-License-Identifier: Apache-2.0
//! What was measured.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::BenchError;
use crate::pace::Verdict;

/// Latencies are kept in nanoseconds up to a minute, to three significant digits.
const LONGEST_NS: u64 = 60_000_000_000;
const DIGITS: u8 = 3;

/// Collects the calls that began after the warm-up.
pub(crate) struct Recorder {
    measured_from: Instant,
    latencies_ns: Histogram<u64>,
    allowed: u64,
    refused: u64,
    failed: u64,
    first_failure: Option<String>,
}

/// The result of a run, printed as JSON. A call counts when it began (or was scheduled) after the warm-up.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) calls: u64,
    pub(crate) allowed: u64,
    pub(crate) refused: u64,
    pub(crate) failed: u64,
    /// Why the first of them failed.
    pub(crate) first_failure: Option<String>,
    pub(crate) per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
}

impl Recorder {
    /// Ignores what begins before `measured_from`.
    pub(crate) fn new(measured_from: Instant) -> Result<Self, BenchError> {
        let latencies_ns = Histogram::new_with_max(LONGEST_NS, DIGITS)?;
        Ok(Self { measured_from, latencies_ns, allowed: 0, refused: 0, failed: 0, first_failure: None })
    }

    /// A call that began, or was due, at `started` has ended just now.
    pub(crate) fn record(&mut self, started: Instant, outcome: &Result<Verdict, BenchError>) {
        if started < self.measured_from {
            return;
        }
        match outcome {
            Ok(Verdict::Allowed) => self.allowed += 1,
            Ok(Verdict::Refused) => self.refused += 1,
            Err(error) => {
                self.failed += 1;
                self.first_failure.get_or_insert_with(|| error.to_string());
                return;
            }
        }
        let latency = u64::try_from(started.elapsed().as_nanos()).unwrap_or(LONGEST_NS);
        self.latencies_ns.saturating_record(latency);
    }

    /// So many calls were never answered.
    pub(crate) fn lose(&mut self, calls: u64) {
        self.failed += calls;
    }

    /// The figures over `measured`.
    pub(crate) fn report(&self, measured: Duration) -> Report {
        let calls = self.allowed + self.refused + self.failed;
        Report {
            calls,
            allowed: self.allowed,
            refused: self.refused,
            failed: self.failed,
            first_failure: self.first_failure.clone(),
            per_s: in_float(calls) / measured.as_secs_f64(),
            p50_us: self.quantile_us(0.5),
            p90_us: self.quantile_us(0.9),
            p99_us: self.quantile_us(0.99),
            p999_us: self.quantile_us(0.999),
            max_us: in_float(self.latencies_ns.max()) / 1000.0,
        }
    }

    fn quantile_us(&self, quantile: f64) -> f64 {
        in_float(self.latencies_ns.value_at_quantile(quantile)) / 1000.0
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people; 53 bits are plenty")]
fn in_float(number: u64) -> f64 {
    number as f64
}
