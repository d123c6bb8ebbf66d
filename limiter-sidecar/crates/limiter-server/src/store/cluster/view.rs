// SPDX-License-Identifier: Apache-2.0
//! Asking nodes how they see the cluster, and whom to believe.

use futures_util::StreamExt;
use futures_util::future::{join, join_all};
use futures_util::stream::FuturesUnordered;
use redis::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

use super::Cluster;
use crate::store::address::Address;
use crate::store::link::{Link, RedisOrTimeout};
use crate::store::slots::{self, SlotRange};

/// Time that a node has to tell; one that is frozen must not hold up what the others know.
const TELL_WITHIN: Duration = Duration::from_millis(500);

/// How one node sees the cluster.
struct View {
    node: Address,
    ranges: Vec<SlotRange>,
    /// The node takes the cluster for whole. One that is cut off does not, and keeps telling what was true before.
    whole: bool,
    /// Rises with every change of who has what.
    epoch: u64,
}

/// What there is to know after asking them all.
pub(super) struct Seen {
    pub(super) ranges: Vec<SlotRange>,
    /// A node with slots that serves nobody, because the cluster is not whole for it.
    pub(super) down_at: Option<Address>,
}

impl Cluster {
    /// The slots as the best informed node that answers sees them.
    ///
    /// # Errors
    /// Why no node tells, with the address of one of them.
    pub(super) async fn look(&self) -> Result<Seen, String> {
        let map = self.map.load_full();
        let linked = map.nodes().filter_map(|(address, node)| Some((address.clone(), node.link()?)));
        let views = join_all(linked.map(async |(address, link)| view(&link, address).await)).await;
        let views: Vec<_> = views.into_iter().flatten().collect();
        if views.is_empty() { self.look_anew().await } else { Ok(judge(&views)) }
    }

    /// Asks every address that was ever named, each over a connection of its own; the first that tells of a whole
    /// cluster is believed.
    async fn look_anew(&self) -> Result<Seen, String> {
        let map = self.map.load_full();
        let addresses: BTreeSet<_> = self.seeds.iter().chain(map.addresses()).cloned().collect();
        let mut views: FuturesUnordered<_> = addresses.into_iter().map(|address| self.open_and_view(address)).collect();
        let mut reason = String::new();
        let mut cut_off = Vec::new();
        while let Some(view) = views.next().await {
            match view {
                Ok(view) if view.whole => return Ok(judge(&[view])),
                Ok(view) => cut_off.push(view),
                Err(error) => reason = error,
            }
        }
        if cut_off.is_empty() { Err(reason) } else { Ok(judge(&cut_off)) }
    }

    async fn open_and_view(&self, address: Address) -> Result<View, String> {
        let told = async {
            let client = self.access.client(&address).map_err(|()| "is no address".to_owned())?;
            view(&Link::open_bare(&client).await?, address.clone()).await
        };
        told.await.map_err(|error| format!("{address}: {error}"))
    }
}

/// Believes the node that takes the cluster for whole and knows the latest change.
fn judge(views: &[View]) -> Seen {
    let best = views.iter().max_by_key(|view| (view.whole, view.epoch));
    let ranges = best.map(|view| view.ranges.clone()).unwrap_or_default();
    let serves_nobody = |view: &&View| !view.whole && ranges.iter().any(|range| range.primary == view.node);
    let down_at = views.iter().find(serves_nobody).map(|view| view.node.clone());
    Seen { ranges, down_at }
}

async fn view(link: &Link, node: Address) -> Result<View, String> {
    let deadline = Instant::now() + TELL_WITHIN;
    let (mut slots, mut info) = (redis::cmd("CLUSTER"), redis::cmd("CLUSTER"));
    slots.arg("SLOTS");
    info.arg("INFO");
    let (slots, info) = join(link.ask(&slots, deadline), link.ask(&info, deadline)).await;
    let ranges = match slots {
        Ok(answer) => slots::parse(&answer, &node).ok_or("its answer to CLUSTER SLOTS has an unknown form")?,
        Err(RedisOrTimeout::Redis(error)) if error.code() == Some("ERR") => {
            return Err("is no node of a cluster".to_owned());
        }
        Err(error) => return Err(error.describe()),
    };
    // A user who may not ask for the state still has the slots; they are then believed.
    let (whole, epoch) = info.ok().and_then(state).unwrap_or((true, 0));
    Ok(View { node, ranges, whole, epoch })
}

/// Whether the node thinks that the cluster works, and its epoch, from `CLUSTER INFO`.
fn state(answer: Value) -> Option<(bool, u64)> {
    let text = redis::from_redis_value::<String>(answer).ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    Some((field("cluster_state")? == "ok", field("cluster_current_epoch")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view_of(node: &str, primary: &str, whole: bool, epoch: u64) -> View {
        let (node, primary) = (node.parse().unwrap(), primary.parse().unwrap());
        View { node, ranges: vec![SlotRange { first: 0, last: 16383, primary, replicas: vec![] }], whole, epoch }
    }

    #[test]
    fn the_node_that_knows_of_the_latest_change_is_believed() {
        let seen = judge(&[view_of("a:1", "a:1", true, 6), view_of("b:1", "b:1", true, 7)]);
        assert_eq!(seen.ranges[0].primary.to_string(), "b:1");
        assert_eq!(seen.down_at, None);
    }

    #[test]
    fn a_node_that_is_cut_off_is_not_believed_and_no_longer_missed() {
        let seen = judge(&[view_of("a:1", "a:1", false, 9), view_of("b:1", "b:1", true, 7)]);
        assert_eq!(seen.ranges[0].primary.to_string(), "b:1");
        assert_eq!(seen.down_at, None, "it has no slots in the eyes of the others");
    }

    #[test]
    fn a_node_with_slots_that_serves_nobody_is_named() {
        let seen = judge(&[view_of("a:1", "a:1", false, 7), view_of("b:1", "a:1", true, 7)]);
        assert_eq!(seen.down_at.unwrap().to_string(), "a:1");
    }

    #[test]
    fn the_state_of_a_cluster_is_read_from_its_info() {
        let info = |text: &str| state(Value::BulkString(text.as_bytes().to_vec()));
        let text = "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_current_epoch:6\r\n";
        assert_eq!(info(text), Some((true, 6)));
        assert_eq!(info("cluster_state:fail\r\ncluster_current_epoch:7\r\n"), Some((false, 7)));
        assert_eq!(info("something else"), None);
    }
}
