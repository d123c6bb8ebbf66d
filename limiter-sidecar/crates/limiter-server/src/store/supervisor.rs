// SPDX-License-Identifier: Apache-2.0
//! Keeps the link to one server alive, beside the requests: opens it, notices that it died, opens the next one.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::time::{Instant, sleep};

use super::link::{Link, RedisOrTimeout};
use super::node::{LATE, Node};
use super::script;
use crate::clock::StoreClock;
use crate::pause::jittered;

/// How often an open link is looked at.
const TICK: Duration = Duration::from_millis(250);
/// Ticks without any question after which an idle link is probed, so that a dead one is known before it is needed.
const IDLE_TICKS: u32 = 4;
/// Time a silent server has to answer a probe before its link is given up.
const PROBE_WITHIN: Duration = Duration::from_millis(500);
/// How often a server is looked at for what would make it a bad store, and how long it has to answer.
const EXAMINE_EVERY: Duration = Duration::from_secs(30);
const EXAMINE_WITHIN: Duration = Duration::from_secs(2);
/// First and longest pause between two attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A link that lived this long was a good one: the next attempt starts with the shortest pause again.
const GOOD_AFTER: Duration = Duration::from_secs(5);

/// A store that misses the deadline of every decision is as good as down for the requests, however well it answers probes.
/// So many in a row, over so long a time, are no accident.
const LATE_DECISIONS: u64 = 3;
const LATE_FOR: Duration = Duration::from_secs(1);

/// Notices that no decision comes in time any more.
#[derive(Default)]
struct Lateness {
    decided: u64,
    late: u64,
    since: Option<Instant>,
}

impl Lateness {
    /// Whether requests have asked for a while and none was answered in time.
    fn lasts(&mut self, node: &Node, now: Instant) -> bool {
        let (decided, late) = node.guard.lateness();
        if decided != self.decided || self.since.is_none() {
            // `late` counts from here; the clock starts with the first one after it.
            *self = Self { decided, late, since: Some(now) };
        } else if late == self.late {
            self.since = Some(now);
        }
        late - self.late >= LATE_DECISIONS && self.since.is_some_and(|since| now - since >= LATE_FOR)
    }
}

/// How long nobody has to ask a server that is taken for down, until it is probed.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(2);

/// Notices that a server is taken for down because of what it said to a request, and no other request asks it.
#[derive(Default)]
struct Doubt {
    doubted: u64,
    since: Option<Instant>,
}

impl Doubt {
    fn lasts(&mut self, node: &Node, now: Instant) -> bool {
        let doubted = node.doubted();
        if node.is_up() || node.guard.is_tripped() || doubted != self.doubted || self.since.is_none() {
            *self = Self { doubted, since: Some(now) };
        }
        self.since.is_some_and(|since| now - since >= FORGOTTEN_AFTER)
    }
}

/// Runs until the data plane's runtime ends, or the task is ended because the node left its cluster. `clock` learns the
/// time from each new link, so that what this limiter counts by itself goes by the store's time before anybody has asked.
pub(super) async fn run(node: Arc<Node>, clock: Arc<StoreClock>) {
    let mut pause = FIRST_PAUSE;
    loop {
        match Link::open(&node.client).await {
            Ok(link) => {
                if let Some(store_us) = link.opened_at_us() {
                    clock.learn(store_us);
                }
                let opened = Instant::now();
                let link = Arc::new(link);
                node.connected(Arc::clone(&link));
                tokio::select! {
                    () = watch(&node, &link) => {}
                    () = examine(&node, &link) => {}
                }
                if opened.elapsed() >= GOOD_AFTER {
                    pause = FIRST_PAUSE;
                }
            }
            Err(error) => node.disconnected(&error),
        }
        sleep(jittered(pause)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Looks again and again, so that what somebody has put right is soon seen to be right. Does not return.
async fn examine(node: &Node, link: &Link) {
    loop {
        node.examine(link, Instant::now() + EXAMINE_WITHIN).await;
        sleep(jittered(EXAMINE_EVERY)).await;
    }
}

/// Returns when the link is of no more use and has been put away.
async fn watch(node: &Node, link: &Arc<Link>) {
    let (mut seen, mut quiet) = (0, 0);
    let (mut lateness, mut doubt) = (Lateness::default(), Doubt::default());
    loop {
        tokio::select! {
            () = node.trouble.notified() => if !node.uses(link) { return },
            () = sleep(TICK) => {}
        }
        node.guard.sample();
        if lateness.lasts(node, Instant::now()) {
            node.disconnected(LATE);
        }
        // Where no request comes that could probe, nobody else finds out that the server is well again.
        let forgotten = doubt.lasts(node, Instant::now()) || node.guard.wants_probe(TICK);
        if forgotten && is_well(&link.ask(&script::try_write(), Instant::now() + node.patience).await) {
            node.answered();
        }
        let answered = link.answered();
        if answered != seen {
            (seen, quiet) = (answered, 0);
            continue;
        }
        quiet += 1;
        if link.outstanding() == 0 && quiet < IDLE_TICKS {
            continue;
        }
        let answer = link.ask(&redis::cmd("PING"), Instant::now() + PROBE_WITHIN).await;
        if let Err(error) = &answer
            && is_silent(&answer)
        {
            node.give_up(link, &error.describe());
            return;
        }
    }
}

/// Whether a server has answered a probe as it should. One of a cluster that has other slots names the node of this one.
fn is_well(answer: &Result<Value, RedisOrTimeout>) -> bool {
    let is_sound = |error: &RedisOrTimeout| error.is_refused_right() || error.redirection().is_some();
    answer.as_ref().map_or_else(is_sound, |_| true)
}

/// Whether a server did not answer a probe. A user who may not PING is refused by a server that lives.
fn is_silent(answer: &Result<Value, RedisOrTimeout>) -> bool {
    answer.as_ref().is_err_and(|error| error.is_timeout() || error.failure().breaks_link())
}
