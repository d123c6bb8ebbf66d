// SPDX-License-Identifier: Apache-2.0
//! The script's ARGV, as bytes that the server only ships.

use super::Prepared;

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
}
