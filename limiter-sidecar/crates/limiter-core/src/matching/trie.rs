// SPDX-License-Identifier: Apache-2.0
//! A trie over path segments that gives every policy whose pattern covers a path.

use std::collections::HashMap;

use super::path::Segment;
use super::{MethodSet, NormalPath, Route};

/// Policies by path and method.
#[derive(Clone, Debug, Default)]
pub(super) struct Trie {
    root: Node,
}

#[derive(Clone, Debug, Default)]
struct Node {
    literal: HashMap<Box<[u8]>, Node>,
    any: Option<Box<Node>>,
    /// For paths that end here.
    exact: Vec<Entry>,
    /// For paths that end here or below.
    prefix: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    policy: usize,
    methods: MethodSet,
}

impl Trie {
    /// Adds a policy for these routes; none means every request.
    pub(super) fn insert(&mut self, policy: usize, routes: &[Route]) {
        if routes.is_empty() {
            self.root.prefix.push(Entry { policy, methods: MethodSet::Any });
        }
        for route in routes {
            let mut node = &mut self.root;
            for segment in &route.path.segments {
                node = match segment {
                    Segment::Literal(bytes) => node.literal.entry(bytes.clone()).or_default(),
                    Segment::Capture(_) => node.any.get_or_insert_default(),
                };
            }
            let entries = if route.path.prefix { &mut node.prefix } else { &mut node.exact };
            entries.push(Entry { policy, methods: route.methods.clone() });
        }
    }

    /// Appends the policies that cover the request; one may come several times.
    pub(super) fn collect(&self, method: &str, path: &NormalPath, found: &mut Vec<usize>) {
        for reading in path.readings() {
            self.root.collect(method, reading.segments(), found);
        }
    }
}

impl Node {
    /// Follows the literal and the template branch, since both may lead to policies. As deep as the patterns are, not the path.
    fn collect<'p>(&self, method: &str, mut rest: impl Iterator<Item = &'p [u8]> + Clone, found: &mut Vec<usize>) {
        push(&self.prefix, method, found);
        let Some(segment) = rest.next() else {
            push(&self.exact, method, found);
            return;
        };
        if let Some(any) = &self.any {
            any.collect(method, rest.clone(), found);
        }
        if let Some(literal) = self.literal.get(segment) {
            literal.collect(method, rest, found);
        }
    }
}

fn push(entries: &[Entry], method: &str, found: &mut Vec<usize>) {
    found.extend(entries.iter().filter(|entry| entry.methods.contains(method)).map(|entry| entry.policy));
}
