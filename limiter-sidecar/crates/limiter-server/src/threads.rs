// SPDX-License-Identifier: Apache-2.0
//! Event loops on threads of their own, and how much of a processor each may claim.
//!
//! Owns the start of a thread and its weight beside others. Knows nothing of what runs there.

use std::future::Future;
use std::io;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;

/// How a thread stands to the others that want the same processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// As the process itself.
    Equal,
    /// The least: whoever else wakes up runs at once. On a processor that others keep busy it still gets one part in
    /// seventy, so that its work ends some time; the scheduler's idle class would leave it one in three hundred.
    Least,
}

/// Runs `work` on an event loop of its own, on one thread: nothing there ever waits for another processor to wake up.
pub(crate) fn run(
    name: String,
    claim: Claim,
    work: impl Future<Output = io::Result<()>> + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name(name.clone()).spawn(move || {
        if claim == Claim::Least
            && let Err(error) = give_way()
        {
            tracing::warn!(thread = name, %error, "new rules are compiled at the priority of traffic");
        }
        if let Err(error) = runtime.block_on(work) {
            tracing::error!(thread = name, %error, "the event loop ended");
        }
        // What still runs (a name lookup, a watch) is not worth waiting for.
        runtime.shutdown_background();
    })
}

/// Gives the calling thread the lowest weight. On Linux alone the call means the thread; elsewhere it is the process.
fn give_way() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::setpriority_process(None, LOWEST)?;
    Ok(())
}

/// The highest number of `nice`.
#[cfg(target_os = "linux")]
const LOWEST: i32 = 19;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[cfg(target_os = "linux")]
    fn niceness_on(claim: Claim) -> i32 {
        let (tell, told) = mpsc::channel();
        let work = async move {
            let nice = rustix::process::getpriority_process(None)?;
            tell.send(nice).map_err(io::Error::other)
        };
        run("test".to_owned(), claim, work).unwrap().join().unwrap();
        told.recv().unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_thread_that_gives_way_has_the_least_weight() {
        let own = rustix::process::getpriority_process(None).unwrap();
        assert_eq!(niceness_on(Claim::Least), LOWEST);
        assert_eq!(niceness_on(Claim::Equal), own);
        assert_eq!(rustix::process::getpriority_process(None).unwrap(), own);
    }
}
