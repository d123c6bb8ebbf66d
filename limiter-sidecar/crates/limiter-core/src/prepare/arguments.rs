// SPDX-License-Identifier: Apache-2.0
//! What the store gets to decide: the script's ARGV as bytes that the server only ships, or charges for buckets in memory.

use super::Prepared;
use crate::bucket::Charge;
use crate::subject::BucketKey;

impl Prepared<'_> {
    /// Hands the script's arguments to `ship`, one after the other: clock, number of rules, seven for each rule.
    ///
    /// `now_us`: µs since the epoch for tests; in production nothing, which makes the script use the store's own clock.
    pub fn ship_arguments(&self, now_us: Option<u64>, mut ship: impl FnMut(&[u8])) {
        let mut digits = itoa::Buffer::new();
        match now_us {
            Some(now) => ship(digits.format(now).as_bytes()),
            None => ship(b""),
        }
        ship(digits.format(self.check_count()).as_bytes());
        for (rule, check) in self.checks() {
            ship(digits.format(check.key + 1).as_bytes());
            ship(&rule.rule.id);
            for number in check.limit.arguments() {
                ship(number.as_bytes());
            }
            ship(digits.format(check.limit.increment(check.cost)).as_bytes());
            ship(if rule.rule.enforces() { b"1" } else { b"0" });
        }
    }

    /// The same checks for [`crate::bucket::Buckets`].
    pub fn charges(&self) -> impl Iterator<Item = Charge<BucketKey>> {
        self.checks().filter_map(|(rule, check)| {
            Some(Charge {
                key: *self.keys.get(check.key)?,
                id: rule.rule.id,
                weight: check.limit.weight(),
                drain_per_us: check.limit.drain_per_us(),
                capacity: check.limit.capacity(),
                increment: check.limit.increment(check.cost),
                enforcing: rule.rule.enforces(),
            })
        })
    }
}
