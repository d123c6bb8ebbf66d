// SPDX-License-Identifier: Apache-2.0
//! Which node has which slots, as seen at the latest look.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::store::address::Address;
use crate::store::node::Node;
use crate::store::slots::{SLOTS, SlotRange};

/// A map of the cluster; never changed, only replaced.
#[derive(Default)]
pub(super) struct Map {
    /// In the order of slots.
    ranges: Vec<SlotRange>,
    /// Parallel to `ranges`.
    owners: Vec<(Address, Arc<Node>)>,
    nodes: BTreeMap<Address, Arc<Node>>,
}

impl Map {
    /// A map of `ranges`, with links also to the `visited` nodes. `node_at` finds or makes a node.
    pub(super) fn new(
        mut ranges: Vec<SlotRange>,
        visited: Vec<Address>,
        mut node_at: impl FnMut(&Address) -> Option<Arc<Node>>,
    ) -> Self {
        let mut nodes = BTreeMap::new();
        for address in ranges.iter().map(|range| range.primary.clone()).chain(visited) {
            if !nodes.contains_key(&address)
                && let Some(node) = node_at(&address)
            {
                nodes.insert(address, node);
            }
        }
        let node_of = |range: &SlotRange| Some((range.primary.clone(), nodes.get(&range.primary)?.clone()));
        ranges.retain(|range| node_of(range).is_some());
        let owners = ranges.iter().filter_map(node_of).collect();
        Self { ranges, owners, nodes }
    }

    /// The node that has a slot.
    pub(super) fn primary(&self, slot: u16) -> Option<&(Address, Arc<Node>)> {
        let place = self.ranges.partition_point(|range| range.last < slot);
        self.ranges.get(place).filter(|range| range.first <= slot)?;
        self.owners.get(place)
    }

    /// The node at an address.
    pub(super) fn node(&self, address: &Address) -> Option<&Arc<Node>> {
        self.nodes.get(address)
    }

    /// Every node that requests may be sent to, visited ones included.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&Address, &Arc<Node>)> {
        self.nodes.iter()
    }

    /// Every node that has slots, once.
    pub(super) fn primaries(&self) -> impl Iterator<Item = &Arc<Node>> {
        let with_slots: BTreeSet<_> = self.ranges.iter().map(|range| &range.primary).collect();
        self.nodes.iter().filter(move |(address, _)| with_slots.contains(address)).map(|(_, node)| node)
    }

    /// Every address that the cluster has named, replicas included.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.ranges.iter().flat_map(|range| std::iter::once(&range.primary).chain(&range.replicas))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The first slots that no node has, both ends included.
    pub(super) fn gap(&self) -> Option<(u16, u16)> {
        let mut next = 0;
        for range in &self.ranges {
            if range.first > next {
                return Some((next, range.first - 1));
            }
            next = range.last + 1;
        }
        (next < SLOTS).then_some((next, SLOTS - 1))
    }
}

#[cfg(test)]
mod tests {
    use redis::Client;

    use super::super::super::news::News;
    use super::*;

    fn range(first: u16, last: u16, primary: &str) -> SlotRange {
        SlotRange { first, last, primary: primary.parse().unwrap(), replicas: vec!["r:1".parse().unwrap()] }
    }

    fn map(ranges: Vec<SlotRange>, visited: &[&str]) -> Map {
        let visited = visited.iter().map(|text| text.parse().unwrap()).collect();
        Map::new(ranges, visited, |address| {
            let client = Client::open(format!("redis://{address}")).unwrap();
            let news = Arc::new(News::default());
            Some(Arc::new(Node::new(address.to_string(), client, news, std::time::Duration::ZERO, Arc::default())))
        })
    }

    fn owner(map: &Map, slot: u16) -> Option<String> {
        map.primary(slot).map(|(address, _)| address.to_string())
    }

    #[test]
    fn every_slot_leads_to_the_node_that_has_it() {
        let map = map(vec![range(0, 99, "a:1"), range(100, 100, "b:1"), range(200, 16383, "a:1")], &["c:1"]);
        assert_eq!(owner(&map, 0).as_deref(), Some("a:1"));
        assert_eq!(owner(&map, 99).as_deref(), Some("a:1"));
        assert_eq!(owner(&map, 100).as_deref(), Some("b:1"));
        assert_eq!(owner(&map, 150), None);
        assert_eq!(owner(&map, 16383).as_deref(), Some("a:1"));
        assert_eq!(map.primaries().count(), 2);
        assert_eq!(map.nodes().count(), 3, "a visited node has a link and no slots");
    }

    #[test]
    fn slots_that_nobody_has_are_named() {
        assert_eq!(map(vec![], &[]).gap(), Some((0, 16383)));
        assert_eq!(map(vec![range(0, 99, "a:1"), range(200, 16383, "b:1")], &[]).gap(), Some((100, 199)));
        assert_eq!(map(vec![range(0, 16382, "a:1")], &[]).gap(), Some((16383, 16383)));
        assert_eq!(map(vec![range(0, 99, "a:1"), range(100, 16383, "b:1")], &[]).gap(), None);
    }
}
