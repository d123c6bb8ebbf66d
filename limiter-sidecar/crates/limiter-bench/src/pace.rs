// SPDX-License-Identifier: Apache-2.0
//! Closed and open loop over anything that can be called.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::BenchError;
use crate::config::{Load, Pace};
use crate::report::{Recorder, Report};

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    Refused,
}

/// Something that can be called many times at once.
pub(crate) trait Callee {
    /// One call; `turn` chooses the connection and the body.
    async fn call(&self, turn: usize) -> Result<Verdict, BenchError>;

    /// Whether the call of this turn is reported apart too.
    fn is_apart(&self, turn: usize) -> bool;
}

/// How long answers that are still due at the end are waited for.
const GRACE: Duration = Duration::from_secs(2);

/// Drives the callee as the configuration says and reports what was measured after the warm-up.
pub(crate) async fn drive<C: Callee + 'static>(load: &Load, callee: Rc<C>) -> Result<Report, BenchError> {
    let begin = Instant::now();
    let measured_from = begin + load.warmup();
    let end = measured_from + load.measured();
    let recorder = Rc::new(RefCell::new(Recorder::new(measured_from)?));
    match load.pace {
        Pace::Closed { in_flight } => {
            closed(load.connections * in_flight, &move |_| Instant::now() < end, &callee, &recorder).await;
        }
        Pace::Counted { in_flight, calls } => {
            closed(load.connections * in_flight, &move |turn| turn < calls, &callee, &recorder).await;
        }
        Pace::Open { per_s } => open(Duration::from_secs_f64(1.0 / per_s), begin, end, &callee, &recorder).await,
    }
    let report = recorder.borrow().report(load.measured());
    Ok(report)
}

async fn closed<C: Callee + 'static>(
    workers: usize,
    goes_on: &(impl Fn(usize) -> bool + Copy + 'static),
    callee: &Rc<C>,
    recorder: &Rc<RefCell<Recorder>>,
) {
    let tasks: Vec<_> = (0..workers)
        .map(|worker| {
            let (callee, recorder, goes_on) = (Rc::clone(callee), Rc::clone(recorder), *goes_on);
            tokio::task::spawn_local(async move {
                let mut turn = worker;
                while goes_on(turn) {
                    let started = Instant::now();
                    let outcome = callee.call(turn).await;
                    let failed = outcome.is_err();
                    recorder.borrow_mut().record(started, &outcome, callee.is_apart(turn));
                    if failed {
                        // A server that refuses connections must not make this a loop that never yields.
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    turn += workers;
                }
            })
        })
        .collect();
    for task in tasks {
        let _panicked = task.await;
    }
}

async fn open<C: Callee + 'static>(
    interval: Duration,
    begin: Instant,
    end: Instant,
    callee: &Rc<C>,
    recorder: &Rc<RefCell<Recorder>>,
) {
    let under_way = Rc::new(Cell::new(0_u64));
    let mut scheduled = begin;
    let mut turn = 0;
    while scheduled < end {
        // Timers tick once a millisecond, far too coarse for this; a yield polls the sockets and comes back at once.
        while Instant::now() < scheduled {
            tokio::task::yield_now().await;
        }
        let (callee, recorder, under_way) = (Rc::clone(callee), Rc::clone(recorder), Rc::clone(&under_way));
        under_way.set(under_way.get() + 1);
        tokio::task::spawn_local(async move {
            let outcome = callee.call(turn).await;
            recorder.borrow_mut().record(scheduled, &outcome, callee.is_apart(turn));
            under_way.set(under_way.get() - 1);
        });
        scheduled += interval;
        turn += 1;
    }
    while under_way.get() > 0 && Instant::now() < end + GRACE {
        tokio::task::yield_now().await;
    }
    recorder.borrow_mut().lose(under_way.get(), GRACE);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Address, Target};

    /// Serves one call at a time, as a server does, and stands still in its first.
    struct Stalling(tokio::sync::Mutex<bool>);

    const STALL: Duration = Duration::from_millis(300);

    impl Callee for Stalling {
        async fn call(&self, _turn: usize) -> Result<Verdict, BenchError> {
            let mut stalled = self.0.lock().await;
            if !*stalled {
                *stalled = true;
                tokio::time::sleep(STALL).await;
            }
            Ok(Verdict::Allowed)
        }

        fn is_apart(&self, turn: usize) -> bool {
            turn == 0
        }
    }

    fn drive_stalling(pace: Pace, seconds: f64) -> Report {
        let load = Load {
            address: Address::Tcp(String::new()),
            connections: 1,
            pace,
            warmup_s: 0.0,
            seconds,
            target: Target::Script { commands: Vec::new() },
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let callee = Rc::new(Stalling(tokio::sync::Mutex::new(false)));
        tokio::task::LocalSet::new().block_on(&runtime, drive(&load, callee)).unwrap()
    }

    #[test]
    fn a_stall_is_paid_for_by_every_call_that_was_due_during_it() {
        let report = drive_stalling(Pace::Open { per_s: 1000.0 }, 0.6);
        assert_eq!(report.calls, 600, "as many as are due, however late");
        // 300 of 600 were due during the stall, and waited for what was left of it: every second one for half of it.
        assert!(report.max_us >= 299_000.0, "{report:?}");
        assert!(report.p90_us >= 150_000.0, "{report:?}");
    }

    #[test]
    fn what_is_reported_apart_counts_in_the_whole_too() {
        let report = drive_stalling(Pace::Open { per_s: 1000.0 }, 0.4);
        assert_eq!((report.apart.calls, report.calls), (1, 400));
        assert!(report.apart.p50_us >= 299_000.0, "{report:?}");
    }

    #[test]
    fn counted_calls_are_as_many_as_were_asked_for() {
        assert_eq!(drive_stalling(Pace::Counted { in_flight: 3, calls: 100 }, 0.1).calls, 100);
    }
}
