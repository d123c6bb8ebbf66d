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
    all: Tally,
    apart: Tally,
    first_failure: Option<String>,
}

/// The result of a run, printed as JSON. A call counts when it began (or was scheduled) after the warm-up.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    all: Summary,
    /// The same over the calls that are reported apart too.
    pub(crate) apart: Summary,
    /// Why the first of them failed.
    first_failure: Option<String>,
    per_s: f64,
}

/// Figures over some of the calls.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) calls: u64,
    allowed: u64,
    refused: u64,
    failed: u64,
    /// Never answered: their latencies are those of calls that were answered when waiting for them ended.
    lost: u64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    p99_us: f64,
    p999_us: f64,
    pub(crate) max_us: f64,
}

impl std::ops::Deref for Report {
    type Target = Summary;

    fn deref(&self) -> &Summary {
        &self.all
    }
}

struct Tally {
    latencies_ns: Histogram<u64>,
    allowed: u64,
    refused: u64,
    failed: u64,
    lost: u64,
}

impl Recorder {
    /// Ignores what begins before `measured_from`.
    pub(crate) fn new(measured_from: Instant) -> Result<Self, BenchError> {
        Ok(Self { measured_from, all: Tally::new()?, apart: Tally::new()?, first_failure: None })
    }

    /// A call that began, or was due, at `started` has ended just now.
    pub(crate) fn record(&mut self, started: Instant, outcome: &Result<Verdict, BenchError>, apart: bool) {
        if started < self.measured_from {
            return;
        }
        if let Err(error) = outcome {
            self.first_failure.get_or_insert_with(|| error.to_string());
        }
        let verdict = outcome.as_ref().ok().copied();
        self.all.add(verdict, started.elapsed());
        if apart {
            self.apart.add(verdict, started.elapsed());
        }
    }

    /// So many calls were not answered within `waited` after the end.
    pub(crate) fn lose(&mut self, calls: u64, waited: Duration) {
        self.all.lost += calls;
        self.all.latencies_ns.saturating_record_n(in_ns(waited), calls);
    }

    /// The figures over `measured`.
    pub(crate) fn report(&self, measured: Duration) -> Report {
        let all = self.all.summary();
        let per_s = in_float(all.calls) / measured.as_secs_f64();
        Report { all, apart: self.apart.summary(), first_failure: self.first_failure.clone(), per_s }
    }
}

impl Tally {
    fn new() -> Result<Self, BenchError> {
        let latencies_ns = Histogram::new_with_max(LONGEST_NS, DIGITS)?;
        Ok(Self { latencies_ns, allowed: 0, refused: 0, failed: 0, lost: 0 })
    }

    /// A failure has no latency: such a run's figures mean nothing.
    fn add(&mut self, verdict: Option<Verdict>, latency: Duration) {
        match verdict {
            Some(Verdict::Allowed) => self.allowed += 1,
            Some(Verdict::Refused) => self.refused += 1,
            None => {
                self.failed += 1;
                return;
            }
        }
        self.latencies_ns.saturating_record(in_ns(latency));
    }

    fn summary(&self) -> Summary {
        Summary {
            calls: self.allowed + self.refused + self.failed + self.lost,
            allowed: self.allowed,
            refused: self.refused,
            failed: self.failed,
            lost: self.lost,
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

fn in_ns(latency: Duration) -> u64 {
    u64::try_from(latency.as_nanos()).unwrap_or(LONGEST_NS)
}

#[expect(clippy::cast_precision_loss, reason = "figures for people; 53 bits are plenty")]
fn in_float(number: u64) -> f64 {
    number as f64
}
