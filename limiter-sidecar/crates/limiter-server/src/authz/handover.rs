// SPDX-License-Identifier: Apache-2.0
//! Hands each new connection to the event loop that has the fewest.
//!
//! Envoy opens one connection for each of its worker threads and keeps it. A system that shares them out by chance
//! (`SO_REUSEPORT`) would often leave one loop with all of them, so one loop accepts and counts.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use super::Drain;
use super::listener::{Accepted, Bound, Listener};

/// Pause after an `accept` that failed, which means that file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Who hands them out.
pub(crate) struct Dealer(Vec<Side>);

/// One event loop as the dealer sees it.
struct Side {
    queue: UnboundedSender<Handed>,
    held: Arc<AtomicUsize>,
}

/// The connections that come to one event loop.
pub(crate) struct Incoming(UnboundedReceiver<Handed>);

/// A connection that belongs to no event loop yet. Dropped, it makes room for another one.
pub(super) struct Handed {
    pub(super) accepted: Accepted,
    pub(super) place: Place,
}

/// What a connection counts for.
pub(super) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Incoming {
    /// The next one; none when the dealer has ended.
    pub(super) async fn next(&mut self) -> Option<Handed> {
        self.0.recv().await
    }
}

impl Dealer {
    /// A dealer, and what comes to each of so many event loops.
    pub(crate) fn new(loops: usize) -> (Self, Vec<Incoming>) {
        let side = |_| {
            let (queue, incoming) = unbounded_channel();
            (Side { queue, held: Arc::default() }, Incoming(incoming))
        };
        let (sides, incoming) = (0..loops).map(side).unzip();
        (Self(sides), incoming)
    }

    /// Accepts connections until told to drain, on the current event loop.
    ///
    /// # Errors
    /// When the bound socket cannot be used.
    pub(crate) async fn deal(self, bound: Bound, mut drain: Drain) -> io::Result<()> {
        // The file of a Unix socket goes with the listener.
        let (listener, _file) = Listener::open(bound)?;
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => self.hand_over(accepted),
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
                _ = drain.changed() => return Ok(()),
            }
        }
    }

    fn hand_over(&self, accepted: Accepted) {
        let fewest = self.0.iter().min_by_key(|side| side.held.load(Ordering::Relaxed));
        if let Some(Side { queue, held }) = fewest {
            held.fetch_add(1, Ordering::Relaxed);
            // A loop that has ended is about to take the process with it.
            let _ended = queue.send(Handed { accepted, place: Place(Arc::clone(held)) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn connection() -> Accepted {
        Accepted::Unix(UnixStream::pair().unwrap().0)
    }

    #[tokio::test]
    async fn each_connection_goes_where_the_fewest_are() {
        let (dealer, mut incoming) = Dealer::new(3);
        for _ in 0..6 {
            dealer.hand_over(connection());
        }
        // The second loop loses its two; the next two are its.
        let lost = (incoming[1].next().await, incoming[1].next().await);
        drop(lost);
        dealer.hand_over(connection());
        dealer.hand_over(connection());
        drop(dealer);
        for incoming in &mut incoming {
            let mut waiting = Vec::new();
            while let Some(handed) = incoming.next().await {
                waiting.push(handed);
            }
            assert_eq!(2, waiting.len());
        }
    }
}
