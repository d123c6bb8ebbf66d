// SPDX-License-Identifier: Apache-2.0
//! Which policies see a request: by host, then by path and method.
//!
//! Owns normalisation and the index. A lookup costs what the request's own host and path cost, however many policies
//! there are. Respelling a path must never escape a rule; matching one spelling too many is the lesser evil.

mod host;
mod method;
mod path;
mod trie;

use std::collections::HashMap;

pub use host::{HostPattern, NormalHost};
pub use method::MethodSet;
pub use path::{NormalPath, PathPattern, Reading};

use trie::Trie;

/// A path pattern with its methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Which paths.
    pub path: PathPattern,
    /// Which methods.
    pub methods: MethodSet,
}

impl Route {
    /// Whether it covers a request whose path is read in this way.
    pub fn covers(&self, method: &str, path: &Reading) -> bool {
        self.methods.contains(method) && self.path.matches(path)
    }

    /// What its template takes from a request that it covers. A path with several readings gives that of the first one
    /// that is covered.
    pub fn captures<'a>(&'a self, method: &str, path: &'a NormalPath) -> Option<Captures<'a>> {
        let reading = path.readings().find(|reading| self.covers(method, reading))?;
        Some(Captures(Some((&self.path, reading))))
    }
}

/// The segments of a path that a route's template names.
#[derive(Clone, Copy, Debug)]
pub struct Captures<'a>(Option<(&'a PathPattern, &'a Reading)>);

impl<'a> Captures<'a> {
    /// Of a request that matches no template.
    pub const NONE: Self = Self(None);

    /// The segment that `{name}` stands for: decoded, without parameters, in lower case, since paths are compared so.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.0.and_then(|(pattern, reading)| pattern.capture(name, reading))
    }
}

/// All policies by host and route. Policies are numbers here.
#[derive(Clone, Debug, Default)]
pub struct Index {
    exact: HashMap<Box<str>, Trie>,
    /// By what follows `*.`.
    wildcard: HashMap<Box<str>, Trie>,
    any: Trie,
    /// Length of the longest wildcard suffix, so that a hostile host's labels are not all looked up.
    longest_suffix: usize,
}

impl Index {
    /// Adds a policy for these hosts (none: all hosts) and routes (none: all requests).
    pub fn insert(&mut self, policy: usize, hosts: &[HostPattern], routes: &[Route]) {
        if hosts.is_empty() {
            self.any.insert(policy, routes);
        }
        for host in hosts {
            match host {
                HostPattern::Exact(name) => self.exact.entry(name.clone()).or_default().insert(policy, routes),
                HostPattern::Wildcard(suffix) => {
                    self.longest_suffix = self.longest_suffix.max(suffix.len());
                    self.wildcard.entry(suffix.clone()).or_default().insert(policy, routes);
                }
            }
        }
    }

    /// The policies that see the request, each once, in ascending order.
    pub fn matches(&self, method: &str, host: &NormalHost<'_>, path: &NormalPath) -> Vec<usize> {
        let mut found = Vec::new();
        if let Some(trie) = self.exact.get(host.as_str()) {
            trie.collect(method, path, &mut found);
        }
        if !self.wildcard.is_empty() {
            let tries = host.suffixes(self.longest_suffix).filter_map(|suffix| self.wildcard.get(suffix));
            tries.for_each(|trie| trie.collect(method, path, &mut found));
        }
        self.any.collect(method, path, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests;
