// SPDX-License-Identifier: Apache-2.0
//! The scripts and how a call of one is written on the wire.

use std::sync::LazyLock;

use redis::Cmd;

/// The text of the decision script; its header is its contract.
pub(crate) const DECIDE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lua/decide.lua"));

/// Finds out which commands the user may not run; sent as text, once per connection.
pub(super) const RIGHTS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lua/rights.lua"));

/// Name under which the server keeps the script: the SHA-1 of its text.
static DECIDE_SHA: LazyLock<String> = LazyLock::new(|| redis::Script::new(DECIDE).get_hash().to_owned());

/// Every script by name, with its SHA-1.
pub fn scripts() -> [(&'static str, &'static str); 1] {
    [("decide", DECIDE_SHA.as_str())]
}

/// The texts of the scripts that requests run.
#[cfg(test)]
pub(super) fn texts() -> [&'static str; 1] {
    [DECIDE]
}

/// One call of the decision script.
pub(crate) trait Call {
    /// The hash slot of its keys, which must all be in one.
    fn slot(&self) -> u16;

    /// Appends the number of keys, the keys and the arguments.
    fn write(&self, command: &mut Cmd);
}

/// The call by the script's name: what every request sends.
pub(super) fn by_name(call: &impl Call) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(DECIDE_SHA.as_str());
    call.write(&mut command);
    command
}

/// The call with the script's text: what is sent once to a server that has lost the script.
pub(super) fn by_text(call: &impl Call) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(DECIDE);
    call.write(&mut command);
    command
}

/// Teaches a server the script.
pub(super) fn load() -> Cmd {
    let mut command = redis::cmd("SCRIPT");
    command.arg("LOAD").arg(DECIDE);
    command
}
