// SPDX-License-Identifier: Apache-2.0
//! Which of one subject's overrides is in force when. Built in order of precedence, read by binary search.

/// Stretches of time without overlap, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timeline(Vec<Stretch>);

/// `place` is in force from `from` to before `until`, in epoch seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    from: u64,
    until: u64,
    place: usize,
}

impl Timeline {
    /// Puts `place` in force where nothing is yet, between `from` and before `until`.
    pub(super) fn fill(&mut self, mut from: u64, until: u64, place: usize) {
        let mut next = self.first_after(from);
        while from < until {
            let gap_end = self.0.get(next).map_or(until, |stretch| stretch.from.min(until));
            if from < gap_end {
                self.0.insert(next, Stretch { from, until: gap_end, place });
                from = gap_end;
            } else {
                from = self.0.get(next).map_or(until, |stretch| stretch.until);
            }
            next += 1;
        }
    }

    /// What is in force at `now_s`.
    pub(super) fn at(&self, now_s: u64) -> Option<usize> {
        let stretch = self.0.get(self.first_after(now_s))?;
        (stretch.from <= now_s).then_some(stretch.place)
    }

    /// The first stretch that has not ended at `time`.
    fn first_after(&self, time: u64) -> usize {
        self.0.partition_point(|stretch| stretch.until <= time)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn later_ones_fill_what_earlier_ones_leave_free() {
        let mut timeline = Timeline::default();
        for (from, until, place) in [(10, 20, 0), (30, 40, 1), (0, u64::MAX, 2), (15, 35, 3)] {
            timeline.fill(from, until, place);
        }
        let expected = [(0, 2), (9, 2), (10, 0), (19, 0), (20, 2), (29, 2), (30, 1), (39, 1), (40, 2), (1 << 40, 2)];
        for (now_s, place) in expected {
            assert_eq!(Some(place), timeline.at(now_s), "at {now_s}");
        }
    }

    #[test]
    fn nothing_is_in_force_outside_every_window() {
        let mut timeline = Timeline::default();
        timeline.fill(5, 10, 0);
        timeline.fill(10, 10, 1);
        assert_eq!([None, Some(0), Some(0), None], [4, 5, 9, 10].map(|now_s| timeline.at(now_s)));
    }

    proptest! {
        #[test]
        fn the_first_window_that_holds_a_moment_counts(windows in prop::collection::vec((0_u64..30, 0_u64..30), 0..12)) {
            let mut timeline = Timeline::default();
            for (place, (from, until)) in windows.iter().enumerate() {
                timeline.fill(*from, *until, place);
            }
            for now_s in 0..31 {
                let expected = windows.iter().position(|(from, until)| (*from..*until).contains(&now_s));
                prop_assert_eq!(expected, timeline.at(now_s));
            }
        }
    }
}
