// SPDX-License-Identifier: Apache-2.0
//! The decision script's answer: a flat list of integers, decoded in this one place.
//!
//! Owns the order of the fields. Knows nothing about rules: the n-th entry belongs to the n-th check that was sent.

use thiserror::Error;

/// Integers per check in the reply: ok, remaining, retry after, reset.
const FIELDS: usize = 4;

/// The wait of a check that no waiting helps (the cost is above the capacity).
const NEVER: i64 = -1;

/// What the script says about one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckReply {
    /// Whether this limit alone would let the request pass.
    pub ok: bool,
    /// Whole tokens left after this call.
    pub remaining: u64,
    /// How long the same request must wait before this limit passes it.
    pub wait: Wait,
    /// µs until the bucket is full again.
    pub reset_us: u64,
}

/// How long a refused request must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// µs; 0 when the check passed.
    Us(u64),
    /// No waiting helps.
    Never,
}

/// The whole answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Whether every enforcing check passed, and the charges are therefore written.
    pub allowed: bool,
    /// One entry for each check, in the order of the arguments.
    pub checks: Vec<CheckReply>,
}

/// The store answered with something that is no decision.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ReplyError {
    /// Another number of integers than the script returns for this many checks.
    #[error("the script returned {found} integers where {expected} were due")]
    Length {
        /// How many there were.
        found: usize,
        /// How many there had to be.
        expected: usize,
    },
    /// A field outside its range.
    #[error("the script returned {value} at position {position}, which is out of range")]
    Range {
        /// Index into the flat list.
        position: usize,
        /// What stood there.
        value: i64,
    },
    /// The script says that the request passes although a check refuses it, or the other way round.
    #[error("the script's decision contradicts its checks")]
    Contradiction,
}

impl Reply {
    /// Decodes the script's flat reply to `checks` checks.
    ///
    /// # Errors
    /// When the list's length or a field's range is not what the script's contract says.
    pub fn decode(integers: &[i64], checks: usize) -> Result<Self, ReplyError> {
        let expected = 1 + checks * FIELDS;
        let (&allowed, fields) = match integers.split_first() {
            Some(split) if integers.len() == expected => split,
            _ => return Err(ReplyError::Length { found: integers.len(), expected }),
        };
        let allowed = flag(allowed, 0)?;
        let checks = fields
            .chunks_exact(FIELDS)
            .enumerate()
            .map(|(index, fields)| decode_check(fields, 1 + index * FIELDS))
            .collect::<Result<_, _>>()?;
        Ok(Self { allowed, checks })
    }

    /// The flat list that `decode` reads: what the script would return.
    pub fn encode(&self) -> Vec<i64> {
        let fields = self.checks.iter().flat_map(|check| {
            let wait = match check.wait {
                Wait::Us(us) => signed(us),
                Wait::Never => NEVER,
            };
            [i64::from(check.ok), signed(check.remaining), wait, signed(check.reset_us)]
        });
        std::iter::once(i64::from(self.allowed)).chain(fields).collect()
    }
}

fn decode_check(fields: &[i64], position: usize) -> Result<CheckReply, ReplyError> {
    let [ok, remaining, wait, reset_us] = *fields else {
        return Err(ReplyError::Length { found: fields.len(), expected: FIELDS });
    };
    Ok(CheckReply {
        ok: flag(ok, position)?,
        remaining: unsigned(remaining, position + 1)?,
        wait: if wait == NEVER { Wait::Never } else { Wait::Us(unsigned(wait, position + 2)?) },
        reset_us: unsigned(reset_us, position + 3)?,
    })
}

fn flag(value: i64, position: usize) -> Result<bool, ReplyError> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(ReplyError::Range { position, value }),
    }
}

fn unsigned(value: i64, position: usize) -> Result<u64, ReplyError> {
    u64::try_from(value).map_err(|_| ReplyError::Range { position, value })
}

/// Every number of a reply is below 2^53, so the clamp never bites.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
