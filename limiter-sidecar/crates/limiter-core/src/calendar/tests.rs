// SPDX-License-Identifier: Apache-2.0
use super::*;

const HOUR_US: u64 = 3_600_000_000;

fn us(rfc3339: &str) -> u64 {
    micros(rfc3339.parse().unwrap())
}

fn edges(unit: CalendarUnit, zone: &str, now: &str) -> Edges {
    Calendar::new(unit, zone).unwrap().edges(us(now))
}

#[track_caller]
fn assert_edges(unit: CalendarUnit, zone: &str, now: &str, expected: [&str; 4]) {
    assert_eq!(expected.map(us), edges(unit, zone, now), "{unit:?} around {now} in {zone}");
}

#[test]
fn a_day_begins_at_local_midnight() {
    let expected = ["2025-11-29T23:00:00Z", "2025-11-30T23:00:00Z", "2025-12-01T23:00:00Z", "2025-12-02T23:00:00Z"];
    for now in ["2025-11-30T23:00:00Z", "2025-12-01T12:00:00Z", "2025-12-01T22:59:59.999999Z"] {
        assert_edges(CalendarUnit::Day, "Europe/Berlin", now, expected);
    }
}

#[test]
fn days_on_which_the_clock_changes_have_23_and_25_hours() {
    for (now, hours) in [("2026-03-29T12:00:00Z", 23), ("2026-10-25T12:00:00Z", 25), ("2026-06-01T12:00:00Z", 24)] {
        let [_, start, end, _] = edges(CalendarUnit::Day, "Europe/Berlin", now);
        assert_eq!(hours, (end - start) / HOUR_US, "{now}");
    }
}

#[test]
fn a_week_runs_from_monday_to_monday_over_the_end_of_a_year() {
    let expected = ["2025-12-22T00:00:00Z", "2025-12-29T00:00:00Z", "2026-01-05T00:00:00Z", "2026-01-12T00:00:00Z"];
    for now in ["2025-12-29T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-04T23:59:59Z"] {
        assert_edges(CalendarUnit::Week, "UTC", now, expected);
    }
}

#[test]
fn months_have_28_to_31_days() {
    let expected = ["2024-01-01T05:00:00Z", "2024-02-01T05:00:00Z", "2024-03-01T05:00:00Z", "2024-04-01T04:00:00Z"];
    assert_edges(CalendarUnit::Month, "America/New_York", "2024-02-29T12:00:00Z", expected);
    for (now, days) in [("2023-02-10T00:00:00Z", 28), ("2024-02-10T00:00:00Z", 29), ("2025-12-31T23:59:59Z", 31)] {
        let [_, start, end, _] = edges(CalendarUnit::Month, "UTC", now);
        assert_eq!(days, (end - start) / (24 * HOUR_US), "{now}");
    }
}

#[test]
fn a_day_without_midnight_begins_with_its_first_instant() {
    // At 03:00 UTC of 2017-10-15 the clocks of São Paulo went from midnight to one o'clock.
    let expected = ["2017-10-14T03:00:00Z", "2017-10-15T03:00:00Z", "2017-10-16T02:00:00Z", "2017-10-17T02:00:00Z"];
    assert_edges(CalendarUnit::Day, "America/Sao_Paulo", "2017-10-15T12:00:00Z", expected);
    // Beirut skips it every spring.
    let [_, start, end, _] = edges(CalendarUnit::Day, "Asia/Beirut", "2026-03-29T12:00:00Z");
    assert_eq!((us("2026-03-28T22:00:00Z"), 23), (start, (end - start) / HOUR_US));
}

#[test]
fn of_two_midnights_the_first_begins_the_day() {
    // Havana goes back from one o'clock to midnight.
    let [_, start, end, _] = edges(CalendarUnit::Day, "America/Havana", "2025-11-02T12:00:00Z");
    assert_eq!((us("2025-11-02T04:00:00Z"), 25), (start, (end - start) / HOUR_US));
}

/// St John's went back at one minute past midnight, into the evening of the day before.
#[test]
fn an_evening_that_comes_again_after_midnight_belongs_to_the_new_day() {
    let expected = ["2010-11-06T02:30:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z", "2010-11-09T03:30:00Z"];
    for now in ["2010-11-07T02:30:30Z", "2010-11-07T02:31:00Z", "2010-11-07T03:29:59Z", "2010-11-07T03:30:00Z"] {
        assert_edges(CalendarUnit::Day, "America/St_Johns", now, expected);
    }
}

#[test]
fn a_day_that_a_zone_skips_is_no_window() {
    // Apia went from the 29th to the 31st of December 2011.
    let expected = ["2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z", "2012-01-01T10:00:00Z"];
    assert_edges(CalendarUnit::Day, "Pacific/Apia", "2011-12-30T10:00:00Z", expected);
}

#[test]
fn windows_hold_the_time_and_follow_each_other_wherever_it_is_asked_for() {
    for (unit, step) in
        [(CalendarUnit::Day, 5 * HOUR_US), (CalendarUnit::Week, 60 * HOUR_US), (CalendarUnit::Month, 299 * HOUR_US)]
    {
        for zone in
            ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Cairo"]
        {
            let calendar = Calendar::new(unit, zone).unwrap();
            let mut before = calendar.edges(us("2024-12-31T00:00:00Z"));
            for now in (0..4_000).map(|place| us("2024-12-31T00:00:00Z") + place * step) {
                let edges = calendar.edges(now);
                assert!(edges.is_sorted_by(|a, b| a < b) && (edges[1]..edges[2]).contains(&now), "{zone} {now}");
                assert!(edges == before || edges[..3] == before[1..] || edges[0] >= before[2], "{zone} {now}");
                before = edges;
            }
        }
    }
}

#[test]
fn the_time_may_go_back_and_out_of_all_reason() {
    let calendar = Calendar::new(CalendarUnit::Day, "Europe/Berlin").unwrap();
    let today = calendar.edges(us("2025-12-01T12:00:00Z"));
    assert!(calendar.edges(u64::MAX)[1] > today[3]);
    assert_eq!(today, calendar.edges(us("2025-12-01T12:00:00Z")));
    assert_eq!([0, 0], calendar.edges(0)[..2]);
}

#[test]
fn a_zone_must_exist() {
    for zone in ["", "Europe", "Europe/Atlantis", "../etc/localtime", "local"] {
        let error = Calendar::new(CalendarUnit::Day, zone).unwrap_err();
        assert!(error.contains("no time zone"), "{zone}: {error}");
    }
}
