// SPDX-License-Identifier: Apache-2.0
//! The scripts and how a call of one is written on the wire.

use std::sync::LazyLock;

use limiter_core::StoreCall;
use redis::Cmd;

use super::pipe::Question;
use super::resp;
use super::slots::slot_of;

/// A script; its header is its contract.
pub(super) struct Script {
    name: &'static str,
    pub(super) text: &'static str,
    /// Name under which a server keeps it: the SHA-1 of its text.
    sha: LazyLock<String>,
}

/// Decides one request.
pub(super) static DECIDE: Script = Script {
    name: "decide",
    text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lua/decide.lua")),
    sha: LazyLock::new(|| sha_of(DECIDE.text)),
};

/// Gives back what one decision charged.
pub(super) static REFUND: Script = Script {
    name: "refund",
    text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lua/refund.lua")),
    sha: LazyLock::new(|| sha_of(REFUND.text)),
};

/// Those that requests run.
pub(super) static ALL: [&Script; 2] = [&DECIDE, &REFUND];

/// Finds out which commands the user may not run; sent as text, by the preflight.
pub(super) const RIGHTS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lua/rights.lua"));

/// Every script by name, with its SHA-1.
pub fn scripts() -> [(&'static str, &'static str); 2] {
    ALL.map(|script| (script.name, script.sha.as_str()))
}

/// What a script is called with.
pub(super) trait Call {
    /// Whether a request waits for it. What nobody waits for passes an open breaker, and closes none: it may take longer.
    const IS_AWAITED: bool;

    /// The hash slot of its keys, which must all be in one.
    fn slot(&self) -> u16;

    /// How many arguments it writes.
    fn arguments(&self) -> usize;

    /// Appends the number of keys, the keys and the arguments.
    fn write(&self, out: &mut Vec<u8>);
}

/// A decision: the store's own clock counts, so that the limiters' clocks need not agree.
impl Call for StoreCall {
    const IS_AWAITED: bool = true;

    fn slot(&self) -> u16 {
        self.keys.first().map_or(0, |key| slot_of(key.as_bytes()))
    }

    fn arguments(&self) -> usize {
        self.keys.len() + 2
    }

    fn write(&self, out: &mut Vec<u8>) {
        resp::number(out, self.keys.len());
        for key in &self.keys {
            resp::argument(out, key.as_bytes());
        }
        resp::argument(out, &self.plan);
    }
}

/// The same, to be given back: with the store's time at which it was charged.
pub(super) struct Refund<'a> {
    pub(super) call: &'a StoreCall,
    pub(super) charged_at_us: u64,
}

impl Call for Refund<'_> {
    const IS_AWAITED: bool = false;

    fn slot(&self) -> u16 {
        self.call.slot()
    }

    fn arguments(&self) -> usize {
        self.call.arguments() + 1
    }

    #[expect(clippy::cast_precision_loss, reason = "times are below 2^53 us until the year 2255")]
    fn write(&self, out: &mut Vec<u8>) {
        self.call.write(out);
        resp::argument(out, &(self.charged_at_us as f64).to_be_bytes());
    }
}

/// A call by the script's name: what every request sends.
pub(super) struct ByName<'a, C>(pub(super) &'a Script, pub(super) &'a C);

/// The call with the script's text: what is sent once to a server that has lost it. This also teaches it again.
pub(super) struct ByText<'a, C>(pub(super) &'a Script, pub(super) &'a C);

impl<C: Call> Question for ByName<'_, C> {
    fn write(&self, out: &mut Vec<u8>) {
        let Self(script, call) = self;
        resp::begin(out, 2 + call.arguments());
        resp::argument(out, b"EVALSHA");
        resp::argument(out, script.sha.as_bytes());
        call.write(out);
    }
}

impl<C: Call> Question for ByText<'_, C> {
    fn write(&self, out: &mut Vec<u8>) {
        let Self(script, call) = self;
        resp::begin(out, 2 + call.arguments());
        resp::argument(out, b"EVAL");
        resp::argument(out, script.text.as_bytes());
        call.write(out);
    }
}

impl Script {
    /// Teaches a server the script.
    pub(super) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.text);
        command
    }
}

/// Asks a server whether it takes writes, which is what decisions need: one that is full, or a replica, answers a PING as
/// ever. The key, none of a counter, is gone after a millisecond. The rights are those that the scripts need.
pub(super) fn try_write() -> Cmd {
    let mut command = redis::cmd("PSETEX");
    command.arg("weir:0:{probe}:x").arg(1).arg("x");
    command
}

fn sha_of(text: &str) -> String {
    redis::Script::new(text).get_hash().to_owned()
}
