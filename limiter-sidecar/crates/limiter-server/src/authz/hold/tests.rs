// SPDX-License-Identifier: Apache-2.0
use std::sync::Mutex;

use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::advance;

use super::*;
use crate::metrics::Connections;

/// A room, what ends it, and why charges were given back.
struct Bench {
    room: Room,
    drain: watch::Sender<Option<Instant>>,
    metrics: Arc<Metrics>,
    given_back: Arc<Mutex<Vec<RefundReason>>>,
    spent: Arc<Mutex<u32>>,
}

fn bench(most: usize) -> Bench {
    let (drain, metrics) = (watch::Sender::new(None), Arc::new(Metrics::new()));
    let room = Room::new(most, drain.subscribe(), Arc::clone(&metrics));
    Bench { room, drain, metrics, given_back: Arc::default(), spent: Arc::default() }
}

impl Bench {
    fn enter(&self, after: Duration) -> Result<Place, NoPlace> {
        self.room.enter(Instant::now() + after, None)
    }

    /// Holds a request for `after` in a task of its own, which has begun to wait when this returns.
    async fn hold(&self, after: Duration) -> tokio::task::JoinHandle<Result<Instant, NoPlace>> {
        let (place, settle) = (self.enter(after).unwrap(), self.settle());
        let task = tokio::spawn(async move { place.wait(settle).await.map(|()| Instant::now()) });
        yield_now().await;
        task
    }

    /// Writes down what becomes of a charge.
    fn settle(&self) -> impl FnOnce(Option<RefundReason>) + Send + 'static {
        let (given_back, spent) = (Arc::clone(&self.given_back), Arc::clone(&self.spent));
        move |reason| match reason {
            Some(reason) => given_back.lock().unwrap().push(reason),
            None => *spent.lock().unwrap() += 1,
        }
    }

    fn spent(&self) -> u32 {
        *self.spent.lock().unwrap()
    }

    fn given_back(&self) -> Vec<RefundReason> {
        self.given_back.lock().unwrap().clone()
    }

    fn shows(&self, line: &str) -> bool {
        let now = Connections { store_up: true, open_breakers: 0, watch_connected: true };
        self.metrics.encode(now).lines().any(|shown| shown == line)
    }
}

const SECOND: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn a_held_request_leaves_at_its_time_and_keeps_its_charge() {
    let bench = bench(1);
    let leave = Instant::now() + SECOND;
    let left = bench.hold(SECOND).await.await.unwrap().unwrap();
    assert!((leave..=leave + TICK).contains(&left));
    assert_eq!((bench.given_back(), bench.spent()), (vec![], 1));
    assert!(bench.shows("weir_hold_seconds_count 1"));
}

#[tokio::test(start_paused = true)]
async fn requests_leave_in_the_order_of_their_times_evenly_and_without_drift() {
    let bench = bench(100);
    let start = Instant::now();
    let interval = Duration::from_micros(3_003);
    let mut tasks = Vec::new();
    for place in 1..=100 {
        tasks.push(bench.hold(interval * place).await);
    }
    for (place, task) in (1..).zip(tasks) {
        let left = task.await.unwrap().unwrap() - start;
        assert!((interval * place..=interval * place + TICK).contains(&left), "request {place} left at {left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn those_of_one_tick_leave_in_the_order_in_which_they_came() {
    let bench = bench(64);
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..64 {
        let place = bench.enter(SECOND + Duration::from_micros(10 * number)).unwrap();
        let order = Arc::clone(&order);
        tasks.push(tokio::spawn(async move {
            place.wait(|_| ()).await.unwrap();
            order.lock().unwrap().push(number);
        }));
        yield_now().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..64).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn nobody_enters_a_full_room_until_somebody_leaves() {
    let bench = bench(2);
    let held = [bench.hold(SECOND).await, bench.hold(SECOND * 2).await];
    assert_eq!(bench.enter(SECOND).err(), Some(NoPlace::Full));
    assert!(bench.shows("weir_held_requests 2"));
    for task in held {
        task.await.unwrap().unwrap();
        assert!(bench.enter(SECOND).is_ok());
    }
    assert!(bench.shows("weir_held_requests 0"));
}

#[tokio::test(start_paused = true)]
async fn a_room_without_places_holds_nobody() {
    assert_eq!(bench(0).enter(SECOND).err(), Some(NoPlace::Full));
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_away_gets_its_charge_back_and_makes_room() {
    let bench = bench(1);
    let held = bench.hold(SECOND).await;
    held.abort();
    assert!(held.await.unwrap_err().is_cancelled());
    assert_eq!((bench.given_back(), bench.spent()), (vec![RefundReason::ClientGone], 0));
    assert!(bench.enter(SECOND).is_ok());
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_away_at_its_time_has_spent_its_charge() {
    let bench = bench(1);
    let (place, settle) = (bench.enter(SECOND).unwrap(), bench.settle());
    // A future that is dropped before its timer was looked at, as on a busy event loop.
    let waiting = place.wait(settle);
    let mut waiting = Box::pin(waiting);
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    advance(SECOND).await;
    drop(waiting);
    assert_eq!((bench.given_back(), bench.spent()), (vec![], 1));
}

#[tokio::test(start_paused = true)]
async fn the_drain_turns_away_at_once_who_could_not_leave_in_time_and_nobody_else() {
    let bench = bench(2);
    let start = Instant::now();
    let (soon, late) = (bench.hold(SECOND).await, bench.hold(SECOND * 10).await);
    bench.drain.send_replace(Some(start + SECOND * 5));
    assert_eq!(late.await.unwrap(), Err(NoPlace::Draining));
    assert!(start.elapsed() < SECOND);
    assert_eq!(bench.given_back(), [RefundReason::Draining]);
    soon.await.unwrap().unwrap();
    assert_eq!(bench.enter(SECOND * 5).err(), Some(NoPlace::Draining));
    assert!(bench.enter(SECOND).is_ok());
}

#[tokio::test(start_paused = true)]
async fn nobody_is_held_for_longer_than_envoy_waits() {
    let bench = bench(1);
    let now = Instant::now();
    assert_eq!(bench.room.enter(now + SECOND + TICK, Some(now + SECOND)).err(), Some(NoPlace::Impatient));
    assert!(bench.room.enter(now + SECOND, Some(now + SECOND)).is_ok());
}
