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
        Pace::Closed { in_flight } => closed(load.connections * in_flight, end, &callee, &recorder).await,
        Pace::Open { per_s } => open(Duration::from_secs_f64(1.0 / per_s), begin, end, &callee, &recorder).await,
    }
    let report = recorder.borrow().report(load.measured());
    Ok(report)
}

async fn closed<C: Callee + 'static>(workers: usize, end: Instant, callee: &Rc<C>, recorder: &Rc<RefCell<Recorder>>) {
    let tasks: Vec<_> = (0..workers)
        .map(|worker| {
            let (callee, recorder) = (Rc::clone(callee), Rc::clone(recorder));
            tokio::task::spawn_local(async move {
                let mut turn = worker;
                while Instant::now() < end {
                    let started = Instant::now();
                    let outcome = callee.call(turn).await;
                    let failed = outcome.is_err();
                    recorder.borrow_mut().record(started, &outcome);
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
            recorder.borrow_mut().record(scheduled, &outcome);
            under_way.set(under_way.get() - 1);
        });
        scheduled += interval;
        turn += 1;
    }
    while under_way.get() > 0 && Instant::now() < end + GRACE {
        tokio::task::yield_now().await;
    }
    recorder.borrow_mut().lose(under_way.get());
}
