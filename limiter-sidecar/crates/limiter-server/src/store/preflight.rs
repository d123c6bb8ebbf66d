// SPDX-License-Identifier: Apache-2.0
//! Whether a server can keep limits at all: looked at after connecting and now and then, reported with what to do.
//!
//! Nothing is refused for it: a limiter beside a store that may evict still limits, and people must know.

use std::collections::BTreeMap;

use redis::{Cmd, Value};
use serde::Serialize;
use tokio::time::Instant;

use super::link::Link;
use super::script;

/// The oldest servers that the scripts are meant for: functions of `struct`, and `acl_check_cmd` inside scripts.
const OLDEST_REDIS: (u32, u32) = (7, 0);
const OLDEST_VALKEY: (u32, u32) = (7, 2);

/// What the decision and refund scripts call, as `name|arguments`; a test compares it with their texts.
const SCRIPTS_NEED: [&str; 10] = [
    "TIME",
    "GET|weir:0:{x}:x",
    "GETRANGE|weir:0:{x}:x 0 1",
    "STRLEN|weir:0:{x}:x",
    "PSETEX|weir:0:{x}:x 1 x",
    "SET|weir:0:{x}:x x KEEPTTL",
    "SETRANGE|weir:0:{x}:x 0 x",
    "APPEND|weir:0:{x}:x x",
    "PEXPIRE|weir:0:{x}:x 1",
    "DEL|weir:0:{x}:x",
];
/// What the limiter sends to every server.
const LIMITER_NEEDS: [&str; 3] = ["EVALSHA|x 1 weir:0:{x}:x", "EVAL|x 1 weir:0:{x}:x", "SCRIPT LOAD|x"];
/// What it sends to a node of a cluster besides.
const CLUSTER_NEEDS: [&str; 2] = ["CLUSTER SLOTS", "ASKING"];

/// The outcome of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) check: Check,
    pub(crate) ok: bool,
    /// What to do when it is not ok; why nobody knows when it could not be checked; empty when it is fine.
    pub(crate) message: String,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Check {
    Eviction,
    Role,
    Version,
    Rights,
}

impl Check {
    pub(crate) const ALL: [Self; 4] = [Self::Eviction, Self::Role, Self::Version, Self::Rights];

    /// Its name in documents and labels.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Eviction => "eviction",
            Self::Role => "role",
            Self::Version => "version",
            Self::Rights => "rights",
        }
    }

    fn fine(self) -> Finding {
        Finding { check: self, ok: true, message: String::new() }
    }

    /// A server that does not tell is believed; managed services often do not.
    fn unknown(self, why: &str) -> Finding {
        Finding { check: self, ok: true, message: format!("could not be checked: {why}") }
    }

    fn wrong(self, message: String) -> Finding {
        Finding { check: self, ok: false, message }
    }
}

/// Looks at a server. `clustered`: whether it is a node of a cluster.
pub(super) async fn examine(link: &Link, clustered: bool, deadline: Instant) -> Vec<Finding> {
    let mut findings = match link.ask(&redis::cmd("INFO"), deadline).await {
        Ok(answer) => match redis::from_redis_value::<String>(answer) {
            Ok(text) => judge(&Info::read(&text)),
            Err(_) => unknown("the server's INFO is no text"),
        },
        Err(error) => unknown(&format!("INFO: {}", error.describe())),
    };
    findings.push(rights(link, clustered, deadline).await);
    findings
}

/// The findings of a whole store from those of its nodes, each with its name (empty for a single server).
pub(super) fn of_all(nodes: &[(String, Vec<Finding>)]) -> Vec<Finding> {
    let of_check = |check: Check| {
        let here = nodes.iter().flat_map(|(name, findings)| findings.iter().map(move |finding| (name, finding)));
        let mut here = here.filter(|(_, finding)| finding.check == check).peekable();
        here.peek()?;
        let (good, bad): (Vec<_>, Vec<_>) = here.partition(|(_, finding)| finding.ok);
        let worst = if bad.is_empty() { &good } else { &bad };
        let mut messages: Vec<String> = Vec::new();
        for (name, finding) in worst.iter().filter(|(_, finding)| !finding.message.is_empty()) {
            messages.push(if name.is_empty() {
                finding.message.clone()
            } else {
                format!("{name}: {}", finding.message)
            });
        }
        Some(Finding { check, ok: bad.is_empty(), message: messages.join("; ") })
    };
    Check::ALL.into_iter().filter_map(of_check).collect()
}

fn unknown(why: &str) -> Vec<Finding> {
    [Check::Eviction, Check::Role, Check::Version].map(|check| check.unknown(why)).to_vec()
}

/// The fields of `INFO`, as far as a server tells them.
struct Info<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Info<'a> {
    fn read(text: &'a str) -> Self {
        Self(text.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name, value.trim())).collect())
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }
}

fn judge(info: &Info<'_>) -> Vec<Finding> {
    vec![eviction(info), role(info), version(info)]
}

fn eviction(info: &Info<'_>) -> Finding {
    match info.get("maxmemory_policy") {
        Some("noeviction") => Check::Eviction.fine(),
        Some(policy) => Check::Eviction.wrong(format!(
            "maxmemory-policy is {policy}, so the server may forget counters, and whoever it forgets starts afresh; \
             set maxmemory-policy noeviction"
        )),
        None => Check::Eviction.unknown("INFO does not tell maxmemory_policy"),
    }
}

fn role(info: &Info<'_>) -> Finding {
    match info.get("role") {
        Some("master") => Check::Role.fine(),
        Some(_) => {
            let primary = match (info.get("master_host"), info.get("master_port")) {
                (Some(host), Some(port)) => format!(" ({host}:{port})"),
                _ => String::new(),
            };
            Check::Role.wrong(format!("this is a replica, which takes no writes; name its primary{primary} instead"))
        }
        None => Check::Role.unknown("INFO does not tell the role"),
    }
}

fn version(info: &Info<'_>) -> Finding {
    // Valkey also tells the version of Redis that it is compatible with.
    let (name, found, oldest) = match (info.get("valkey_version"), info.get("redis_version")) {
        (Some(found), _) => ("Valkey", found, OLDEST_VALKEY),
        (None, Some(found)) => ("Redis", found, OLDEST_REDIS),
        (None, None) => return Check::Version.unknown("INFO does not tell a version"),
    };
    let mut numbers = found.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= oldest => Check::Version.fine(),
        (Some(Ok(_)), Some(Ok(_))) => {
            Check::Version.wrong(format!("{name} {found} is too old; use {name} {}.{} or newer", oldest.0, oldest.1))
        }
        _ => Check::Version.unknown("the version has an unknown form"),
    }
}

/// Asks the server itself which of the limiter's commands the user may not run.
async fn rights(link: &Link, clustered: bool, deadline: Instant) -> Finding {
    match link.ask(&question(clustered), deadline).await {
        Ok(answer) => judge_rights(answer),
        Err(error) if error.is_refused_right() => refused("EVAL"),
        Err(error) => Check::Rights.unknown(&error.describe()),
    }
}

fn question(clustered: bool) -> Cmd {
    let mut question = redis::cmd("EVAL");
    question.arg(script::RIGHTS).arg(0).arg(&SCRIPTS_NEED).arg(&LIMITER_NEEDS);
    if clustered {
        question.arg(&CLUSTER_NEEDS);
    }
    question
}

fn judge_rights(answer: Value) -> Finding {
    match redis::from_redis_value::<Vec<String>>(answer) {
        Ok(names) if names.is_empty() => Check::Rights.fine(),
        Ok(names) => refused(&names.join(", ")),
        Err(_) => Check::Rights.unknown("the server's answer is no list of commands"),
    }
}

fn refused(names: &str) -> Finding {
    Check::Rights.wrong(format!(
        "the store's user may not run {names} on keys of weir:*; give it the rights that docs/reference/store.md lists"
    ))
}

#[cfg(test)]
mod tests;
