// SPDX-License-Identifier: Apache-2.0
//! The decision script's answer: a string of big-endian doubles, decoded in this one place.
//!
//! Owns the order of the fields. Knows nothing about rules: the n-th entry belongs to the n-th check that was sent.

use thiserror::Error;

const BYTES: usize = size_of::<f64>();

/// Numbers before the checks: allowed, and the store's clock.
const HEAD: usize = 2;

/// Numbers per check: ok, remaining, wait, reset.
const FIELDS: usize = 4;

/// Where `allowed` stands when the call's calendar edges did not hold the store's time.
const STALE: f64 = -1.0;

/// The wait of a check that no waiting helps (the cost is above the capacity).
const NEVER: f64 = -1.0;

/// Doubles hold every integer below.
const END: f64 = 9_007_199_254_740_992.0;

/// What the script says about one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckReply {
    /// Whether this limit alone would let the request pass.
    pub ok: bool,
    /// How many requests of cost 1 are left after this call.
    pub remaining: u64,
    /// Not ok: how long the same request must wait before this limit passes it. Ok: how long it must be held back so that
    /// requests leave evenly, which is 0 but for a leaky bucket.
    pub wait: Wait,
    /// µs until nothing of what was used counts any more.
    pub reset_us: u64,
}

/// How long a request must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// µs.
    Us(u64),
    /// No waiting helps.
    Never,
}

/// The decision on one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Whether every enforcing check passed, and the charges are therefore written.
    pub allowed: bool,
    /// The store's clock at this call, µs since the epoch. What was charged is given back under this time.
    pub now_us: u64,
    /// One entry for each check, in the order of the plan.
    pub checks: Vec<CheckReply>,
}

/// What a call of the script comes back with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A decision.
    Decided(Reply),
    /// Nothing was decided or written: the store's time is outside the windows that the call named. It must be asked
    /// again with those around `now_us`.
    Stale {
        /// µs since the epoch.
        now_us: u64,
    },
}

/// The store answered with something that is no decision.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum ReplyError {
    /// Another number of bytes than the script returns for this many checks.
    #[error("the script returned {found} bytes where {expected} were due")]
    Length {
        /// How many there were.
        found: usize,
        /// How many there had to be.
        expected: usize,
    },
    /// Another number of checks than were asked about.
    #[error("the reply is about {found} checks where {expected} were asked about")]
    Checks {
        /// How many there were.
        found: usize,
        /// How many there had to be.
        expected: usize,
    },
    /// A field outside its range.
    #[error("the script returned {value} at position {position}, which is out of range")]
    Range {
        /// Index into the list of numbers.
        position: usize,
        /// What stood there.
        value: f64,
    },
    /// The script says that the request passes although a check refuses it, or the other way round.
    #[error("the script's decision contradicts its checks")]
    Contradiction,
}

impl Reply {
    /// Decodes the script's reply to `checks` checks.
    ///
    /// # Errors
    /// When the length or a field's range is not what the script's contract says.
    pub fn decode(bytes: &[u8], checks: usize) -> Result<Answer, ReplyError> {
        let mut numbers = bytes.as_chunks().0.iter().map(|number| f64::from_be_bytes(*number)).enumerate();
        let mut next = || numbers.next().unwrap_or_default();
        let (_, first) = next();
        let stale = first == STALE;
        let expected = BYTES * if stale { HEAD } else { HEAD + checks * FIELDS };
        if bytes.len() != expected {
            return Err(ReplyError::Length { found: bytes.len(), expected });
        }
        if stale {
            return Ok(Answer::Stale { now_us: unsigned(next())? });
        }
        let (allowed, now_us) = (flag((0, first))?, unsigned(next())?);
        let checks = (0..checks).map(|_| {
            let (ok, remaining, wait, reset) = (next(), next(), next(), next());
            Ok(CheckReply {
                ok: flag(ok)?,
                remaining: unsigned(remaining)?,
                wait: if wait.1 == NEVER { Wait::Never } else { Wait::Us(unsigned(wait)?) },
                reset_us: unsigned(reset)?,
            })
        });
        Ok(Answer::Decided(Self { allowed, now_us, checks: checks.collect::<Result<_, _>>()? }))
    }
}

impl Answer {
    /// The numbers that `decode` reads, which are integers: what the script would return.
    pub fn numbers(&self) -> Vec<i64> {
        match self {
            Self::Stale { now_us } => vec![-1, signed(*now_us)],
            Self::Decided(reply) => {
                let fields = reply.checks.iter().flat_map(|check| {
                    let wait = match check.wait {
                        Wait::Us(us) => signed(us),
                        Wait::Never => -1,
                    };
                    [i64::from(check.ok), signed(check.remaining), wait, signed(check.reset_us)]
                });
                [i64::from(reply.allowed), signed(reply.now_us)].into_iter().chain(fields).collect()
            }
        }
    }
}

fn flag((position, value): (usize, f64)) -> Result<bool, ReplyError> {
    match value {
        0.0 => Ok(false),
        1.0 => Ok(true),
        _ => Err(ReplyError::Range { position, value }),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
fn unsigned((position, value): (usize, f64)) -> Result<u64, ReplyError> {
    if (0.0..END).contains(&value) && value.fract() == 0.0 {
        Ok(value as u64)
    } else {
        Err(ReplyError::Range { position, value })
    }
}

/// Every number of a reply is below 2^53, so the clamp never bites.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
