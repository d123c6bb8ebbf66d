// SPDX-License-Identifier: Apache-2.0
//! The one task that reads and writes a connection, and keeps the time for all who wait on it.
//!
//! Runs once in a turn of the event loop at most, after whoever asked in that turn. One timer serves all deadlines: it is
//! set again only when it has rung, or for a question that is due earlier.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use redis::RedisError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Shared, Stream, closed};
use crate::store::resp;

/// Room for what is read at once: the answers of some two hundred decisions. Grows for a longer answer.
const ROOM: usize = 16 << 10;

/// A larger buffer is given back after it was used: a server that stood still has made it large.
const KEPT: usize = 64 << 10;

pub(super) struct Driver {
    shared: Arc<Shared>,
    stream: Box<dyn Stream>,
    /// What is being written, and how much of it was.
    sending: Vec<u8>,
    sent: usize,
    /// Whether the stream may keep what it was given, as TLS does.
    unflushed: bool,
    /// What was read, up to `filled`, and not understood yet, from `start` on.
    received: Vec<u8>,
    start: usize,
    filled: usize,
    timer: Pin<Box<Sleep>>,
    /// What the timer is set to, unless it has rung.
    set_to: Option<Instant>,
    waiting: Vec<Waker>,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, stream: Box<dyn Stream>) -> Self {
        Self {
            shared,
            stream,
            sending: Vec::new(),
            sent: 0,
            unflushed: false,
            received: vec![0; ROOM],
            start: 0,
            filled: 0,
            timer: Box::pin(sleep_until(Instant::now())),
            set_to: None,
            waiting: Vec::new(),
        }
    }

    /// Goes on as far as it can: ready only with the end.
    fn work(&mut self, context: &mut Context<'_>) -> Poll<RedisError> {
        // Reading goes on also while the server takes nothing: it may first want to be rid of its answers.
        if let Poll::Ready(Err(error)) = self.write(context) {
            return Poll::Ready(error);
        }
        let read = self.read(context);
        self.keep_time(context);
        read
    }

    /// Writes until nothing is left, or the server takes no more.
    fn write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), RedisError>> {
        loop {
            if self.sent == self.sending.len() {
                self.sending.clear();
                self.sending.shrink_to(KEPT);
                self.sent = 0;
                self.shared.lock().take_unsent(&mut self.sending);
                if self.sending.is_empty() {
                    break;
                }
            }
            let rest = self.sending.get(self.sent..).unwrap_or_default();
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(closed())),
                written => self.sent += written,
            }
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads what there is, and gives it to those who wait.
    fn read(&mut self, context: &mut Context<'_>) -> Poll<RedisError> {
        loop {
            let mut free = ReadBuf::new(self.received.get_mut(self.filled..).unwrap_or_default());
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut free)) {
                Err(error) => return Poll::Ready(error.into()),
                Ok(()) if free.filled().is_empty() => return Poll::Ready(closed()),
                Ok(()) => self.filled += free.filled().len(),
            }
            let understood = self.understand();
            self.waiting.drain(..).for_each(Waker::wake);
            if let Err(error) = understood {
                return Poll::Ready(error);
            }
        }
    }

    /// Takes the whole replies out of what was read.
    fn understand(&mut self) -> Result<(), RedisError> {
        let mut lines = self.shared.lock();
        while let Some((reply, length)) = resp::take(self.received.get(self.start..self.filled).unwrap_or_default())? {
            self.start += length;
            // What nobody has asked for is no answer.
            self.waiting.extend(lines.answer(reply).map_err(|()| resp::garbled())?);
        }
        drop(lines);
        self.received.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        if self.filled == self.received.len() {
            self.received.resize(2 * self.filled, 0);
        } else if self.filled == 0 && self.received.len() > KEPT {
            self.received = vec![0; ROOM];
        }
        Ok(())
    }

    fn keep_time(&mut self, context: &mut Context<'_>) {
        loop {
            if self.set_to.is_some() && self.timer.as_mut().poll(context).is_ready() {
                self.set_to = None;
                self.shared.lock().expire(Instant::now(), &mut self.waiting);
                self.waiting.drain(..).for_each(Waker::wake);
            }
            let earliest = self.shared.lock().earliest();
            match (earliest, self.set_to) {
                (Some(earliest), None) => self.set(earliest),
                (Some(earliest), Some(set_to)) if earliest < set_to => self.set(earliest),
                _ => return,
            }
        }
    }

    fn set(&mut self, deadline: Instant) {
        self.set_to = Some(deadline);
        self.timer.as_mut().reset(deadline);
    }
}

impl Drop for Driver {
    /// Without a driver nobody would tell those who wait; the reason that is known already stays.
    fn drop(&mut self) {
        self.shared.end(closed());
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.shared.driver.register(context.waker());
        if self.shared.lock().look() {
            return Poll::Ready(());
        }
        let error = ready!(self.work(context));
        self.shared.end(error);
        Poll::Ready(())
    }
}
