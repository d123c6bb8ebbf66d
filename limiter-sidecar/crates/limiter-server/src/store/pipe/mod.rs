// SPDX-License-Identifier: Apache-2.0
//! One connection that many ask over at once: what is asked in one turn of the event loop goes out in one write, and the
//! answers come in the order of the questions.
//!
//! Owns who gets which answer and until when he waits. A question whose asker has given up stays in its place until its
//! answer has come, so that no answer ever reaches another. Knows no script and no command.

mod driver;
mod lines;

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::task::AtomicWaker;
use redis::{RedisError, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use self::driver::Driver;
use self::lines::Lines;
use super::link::RedisOrTimeout;

/// What a connection runs over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Something to be asked, as it is written on the wire.
pub(super) trait Question {
    /// Appends the command, or several.
    fn write(&self, out: &mut Vec<u8>);

    /// How many replies it takes; the last one is the answer.
    const REPLIES: usize = 1;
}

impl Question for redis::Cmd {
    fn write(&self, out: &mut Vec<u8>) {
        self.write_packed_command(out);
    }
}

/// The asking side of a connection. Dropped, it ends the connection, and with it whoever still waits.
pub(super) struct Pipe {
    shared: Arc<Shared>,
}

struct Shared {
    lines: Mutex<Lines>,
    driver: AtomicWaker,
}

/// An answer that is due. Dropped, it is thrown away when it comes.
pub(super) struct Answer {
    shared: Arc<Shared>,
    number: u64,
}

impl Pipe {
    /// A pipe over `stream`, and the work of reading and writing, to be run beside those who ask.
    pub(super) fn new(stream: Box<dyn Stream>) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let shared = Arc::new(Shared { lines: Mutex::default(), driver: AtomicWaker::new() });
        (Self { shared: Arc::clone(&shared) }, Driver::new(shared, stream))
    }

    /// Asks. The answer comes at the latest at `deadline`, if only as a [`RedisOrTimeout::Timeout`].
    ///
    /// # Errors
    /// `Timeout` when too many questions are unanswered already, and why the connection has ended if it has.
    pub(super) fn ask<Q: Question>(&self, question: &Q, deadline: Instant) -> Result<Answer, RedisOrTimeout> {
        let mut lines = self.shared.lock();
        let number = lines.ask(question, deadline)?;
        let wakes = lines.must_wake();
        drop(lines);
        if wakes {
            self.shared.driver.wake();
        }
        Ok(Answer { shared: Arc::clone(&self.shared), number })
    }

    /// Questions that the server has not answered yet, whether or not somebody still waits.
    pub(super) fn outstanding(&self) -> u64 {
        self.shared.lock().outstanding()
    }

    /// How many questions were answered.
    pub(super) fn answered(&self) -> u64 {
        self.shared.lock().answered()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.shared.end(closed());
        self.shared.driver.wake();
    }
}

impl Future for Answer {
    type Output = Result<Value, RedisOrTimeout>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.shared.lock().poll(self.number, context.waker())
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // Outside the lock: a waker may be all that is left of a task.
        let _waker: Option<Waker> = self.shared.lock().leave(self.number);
    }
}

impl Shared {
    /// Tells everybody who waits that the connection has ended.
    fn end(&self, error: RedisError) {
        let mut waiting = Vec::new();
        self.lock().end(error, &mut waiting);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Nothing panics with it held.
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection has ended.
fn closed() -> RedisError {
    RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests;
