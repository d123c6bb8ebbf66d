// SPDX-License-Identifier: Apache-2.0
//! Who waits for which reply, as pure bookkeeping: no stream, no clock.

use std::collections::VecDeque;
use std::task::{Poll, Waker};

use redis::{RedisError, Value};
use tokio::time::Instant;

use super::Question;
use crate::store::link::RedisOrTimeout;

/// Questions that may be with the server at once. A server that is frozen must not make the sidecar's memory grow;
/// at 5 ms per question this is 800,000 decisions a second, far above what one server decides.
pub(super) const MAX_OUTSTANDING: u64 = 4096;

/// What was asked and not yet forgotten, the oldest first. Numbers run from 0 and are never given twice.
#[derive(Default)]
pub(super) struct Lines {
    /// Commands that wait to be written.
    unsent: Vec<u8>,
    entries: VecDeque<Entry>,
    /// The number of the first entry.
    first: u64,
    /// How many replies have come: the number of the one that is due next.
    replied: u64,
    /// Nobody who waits has a deadline before this one.
    earliest: Option<Instant>,
    /// Whether the driver has been woken since it last looked.
    woken: bool,
    /// Why there is no connection any more.
    ended: Option<RedisError>,
}

struct Entry {
    deadline: Instant,
    asker: Asker,
    reply: Option<Value>,
}

enum Asker {
    /// Has not looked yet, or not since the last change.
    Awake,
    Waits(Waker),
    /// His deadline is over, and he does not know yet.
    Late,
    Gone,
}

impl Lines {
    /// Writes a question; its number.
    pub(super) fn ask<Q: Question>(&mut self, question: &Q, deadline: Instant) -> Result<u64, RedisOrTimeout> {
        if let Some(error) = &self.ended {
            return Err(RedisOrTimeout::Redis(error.clone()));
        }
        if self.outstanding() >= MAX_OUTSTANDING {
            return Err(RedisOrTimeout::Timeout);
        }
        question.write(&mut self.unsent);
        for _ in 1..Q::REPLIES {
            self.entries.push_back(Entry { deadline, asker: Asker::Gone, reply: None });
        }
        let number = self.end_number();
        self.entries.push_back(Entry { deadline, asker: Asker::Awake, reply: None });
        if self.earliest.is_none_or(|earliest| deadline < earliest) {
            self.earliest = Some(deadline);
        }
        Ok(number)
    }

    /// Whether the driver must be woken for what was asked; true once, until it looks.
    pub(super) fn must_wake(&mut self) -> bool {
        !std::mem::replace(&mut self.woken, true)
    }

    /// What was asked since the last time, appended to `sending`, which is empty.
    pub(super) fn take_unsent(&mut self, sending: &mut Vec<u8>) {
        std::mem::swap(&mut self.unsent, sending);
    }

    /// The reply to a question, or what became of it. The asker is told once.
    pub(super) fn poll(&mut self, number: u64, waker: &Waker) -> Poll<Result<Value, RedisOrTimeout>> {
        let ended = self.ended.clone();
        let Some(entry) = self.entry(number) else { return Poll::Ready(Err(RedisOrTimeout::Timeout)) };
        let told = match (entry.reply.take(), ended, &entry.asker) {
            (Some(reply), ..) => Ok(reply),
            (None, Some(error), _) => Err(RedisOrTimeout::Redis(error)),
            (None, None, Asker::Late) => Err(RedisOrTimeout::Timeout),
            (None, None, Asker::Waits(known)) if known.will_wake(waker) => return Poll::Pending,
            (None, None, _) => {
                entry.asker = Asker::Waits(waker.clone());
                return Poll::Pending;
            }
        };
        entry.asker = Asker::Gone;
        self.forget();
        Poll::Ready(told)
    }

    /// The asker goes away; what would have woken him.
    pub(super) fn leave(&mut self, number: u64) -> Option<Waker> {
        let entry = self.entry(number)?;
        entry.reply = None;
        let asker = std::mem::replace(&mut entry.asker, Asker::Gone);
        self.forget();
        asker.into_waker()
    }

    /// Takes the next reply; who waits for it.
    ///
    /// # Errors
    /// When nothing was asked.
    pub(super) fn answer(&mut self, reply: Value) -> Result<Option<Waker>, ()> {
        let number = self.replied;
        let entry = self.entry(number).ok_or(())?;
        let waker = match std::mem::replace(&mut entry.asker, Asker::Gone) {
            Asker::Gone => None,
            asker => {
                entry.reply = Some(reply);
                entry.asker = Asker::Awake;
                asker.into_waker()
            }
        };
        self.replied += 1;
        self.forget();
        Ok(waker)
    }

    /// Ends the patience of everybody whose deadline is over; appends whom to wake.
    pub(super) fn expire(&mut self, now: Instant, waiting: &mut Vec<Waker>) {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return;
        }
        self.earliest = None;
        let replied = self.entries.len() - usize::try_from(self.outstanding()).unwrap_or_default();
        for entry in self.entries.iter_mut().skip(replied) {
            if !matches!(entry.asker, Asker::Awake | Asker::Waits(_)) {
                continue;
            }
            if entry.deadline <= now {
                waiting.extend(std::mem::replace(&mut entry.asker, Asker::Late).into_waker());
            } else if self.earliest.is_none_or(|earliest| entry.deadline < earliest) {
                self.earliest = Some(entry.deadline);
            }
        }
    }

    /// There is no connection any more, for this reason; appends whom to wake. The first reason stays.
    pub(super) fn end(&mut self, error: RedisError, waiting: &mut Vec<Waker>) {
        self.ended.get_or_insert(error);
        self.earliest = None;
        for entry in &mut self.entries {
            if let Asker::Waits(waker) = &entry.asker {
                waiting.push(waker.clone());
            }
        }
    }

    /// The driver looks: whoever asks from now on must wake it again, even while the server takes nothing, because it also
    /// keeps the time. Says whether there is no connection any more.
    pub(super) fn look(&mut self) -> bool {
        self.woken = false;
        self.ended.is_some()
    }

    /// Nobody who waits has a deadline before this one.
    pub(super) fn earliest(&self) -> Option<Instant> {
        self.earliest
    }

    /// Questions without a reply.
    pub(super) fn outstanding(&self) -> u64 {
        self.end_number() - self.replied
    }

    /// How many questions have a reply.
    pub(super) fn answered(&self) -> u64 {
        self.replied
    }

    fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok())?;
        self.entries.get_mut(place)
    }

    fn end_number(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Forgets the oldest questions that are over for both sides.
    fn forget(&mut self) {
        while self.first < self.replied && self.entries.front().is_some_and(|entry| matches!(entry.asker, Asker::Gone))
        {
            self.entries.pop_front();
            self.first += 1;
        }
    }
}

impl Asker {
    fn into_waker(self) -> Option<Waker> {
        if let Self::Waits(waker) = self { Some(waker) } else { None }
    }
}
