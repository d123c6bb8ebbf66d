// SPDX-License-Identifier: Apache-2.0

use proptest::prelude::*;

use super::*;
use crate::ruleset::CalendarUnit;

fn bucket(requests: u64, period_us: u64, burst: u64) -> LimitDoc {
    LimitDoc::TokenBucket { requests, period_us, burst }
}

fn share_of(doc: &LimitDoc, share: Option<Share>) -> LimitDoc {
    let limit = Limit::from_doc(doc).unwrap().with_share(share, 1);
    limit.local().unwrap().doc().clone()
}

#[test]
fn a_limit_without_a_share_grants_nothing_by_itself() {
    assert_eq!(None, Limit::from_doc(&bucket(5, 1_000_000, 5)).unwrap().local());
}

#[test]
fn nobody_shares_with_no_limiters_or_by_a_factor_out_of_range() {
    assert_eq!(None, Share::split(0));
    assert_eq!(None, Share::of_milli(0));
    assert_eq!(None, Share::of_milli(MAX_SHARE_MILLI + 1));
}

#[test]
fn a_bucket_is_split_to_an_exact_rate_and_a_burst_in_whole_requests() {
    for (whole, limiters, part) in [
        (bucket(100, 1_000_000, 200), 5, bucket(20, 1_000_000, 40)),
        (bucket(7, 1_000_000, 10), 3, bucket(7, 3_000_000, 3)),
        (bucket(100, 1_000_000, 3), 8, bucket(25, 2_000_000, 1)),
        (bucket(1, 60_000_000, 1), 4, bucket(1, 240_000_000, 1)),
    ] {
        assert_eq!(part, share_of(&whole, Share::split(limiters)));
    }
}

#[test]
fn the_dearest_request_finds_room_in_every_share_but_in_no_more_than_the_whole() {
    let part = |doc: &LimitDoc, dearest| {
        let limit = Limit::from_doc(doc).unwrap().with_share(Share::split(4), dearest);
        limit.local().unwrap().doc().clone()
    };
    assert_eq!(bucket(5, 1_000_000, 10), part(&bucket(20, 1_000_000, 20), 10));
    assert_eq!(bucket(5, 1_000_000, 5), part(&bucket(20, 1_000_000, 20), 3));
    assert_eq!(bucket(5, 1_000_000, 20), part(&bucket(20, 1_000_000, 20), 50));
    let log = |requests| LimitDoc::SlidingWindowLog { requests, period_us: 1_000_000 };
    assert_eq!(log(10), part(&log(20), 10));
    let window = |requests| LimitDoc::SlidingWindowCounter { requests, period_us: 1_000_000 };
    assert_eq!(window(10), part(&window(20), 10));
    let leaky =
        |requests, queue| LimitDoc::LeakyBucket { requests, period_us: 1_000_000, queue, max_delay_us: 500_000 };
    assert_eq!(leaky(5, 5), part(&leaky(20, 20), 10), "whatever it costs, it may leave after those before it");
}

#[test]
fn a_queue_is_split_as_a_burst_is_and_nobody_waits_longer() {
    let whole = |queue, max_delay_us| LimitDoc::LeakyBucket { requests: 10, period_us: 1_000_000, queue, max_delay_us };
    let part = |queue, max_delay_us| LimitDoc::LeakyBucket { requests: 5, period_us: 1_000_000, queue, max_delay_us };
    assert_eq!(part(4, 700_000), share_of(&whole(9, 700_000), Share::split(2)));
    assert_eq!(part(1, 700_000), share_of(&whole(1, 700_000), Share::split(2)));
    assert_eq!(part(0, 0), share_of(&whole(0, 0), Share::split(2)));
}

#[test]
fn windows_are_split_by_their_requests_and_keep_their_edges() {
    let month = |requests| LimitDoc::FixedWindow {
        requests,
        period_us: None,
        calendar: Some(CalendarUnit::Month),
        time_zone: Some("UTC".to_owned()),
    };
    assert_eq!(month(333_333), share_of(&month(1_000_000), Share::split(3)));
    let sliding = |requests| LimitDoc::SlidingWindowCounter { requests, period_us: 60_000_000 };
    assert_eq!(sliding(33), share_of(&sliding(100), Share::split(3)));
    let log = |requests| LimitDoc::SlidingWindowLog { requests, period_us: 60_000_000 };
    assert_eq!(log(1), share_of(&log(5), Share::split(9)));
}

#[test]
fn a_factor_gives_every_limiter_that_much() {
    assert_eq!(bucket(100, 1_000_000, 200), share_of(&bucket(100, 1_000_000, 200), Share::of_milli(1_000)));
    assert_eq!(bucket(200, 1_000_000, 400), share_of(&bucket(100, 1_000_000, 200), Share::of_milli(2_000)));
    assert_eq!(bucket(7, 2_000_000, 5), share_of(&bucket(7, 1_000_000, 10), Share::of_milli(500)));
    let log = |requests| LimitDoc::SlidingWindowLog { requests, period_us: 60_000_000 };
    assert_eq!(log(MAX_LOG), share_of(&log(6_000), Share::of_milli(2_000)), "no log is longer");
}

proptest! {
    #[test]
    fn all_limiters_together_never_grant_more_than_the_whole(
        requests in 1_u64..1_000_000, period_us in 1_000_u64..86_400_000_000, burst in 1_u64..1_000_000,
        limiters in 1_u64..2_000,
    ) {
        let Ok(whole) = Limit::from_doc(&bucket(requests, period_us, burst)) else { return Ok(()) };
        let LimitDoc::TokenBucket { requests: part, period_us: longer, burst: smaller } =
            share_of(whole.doc(), Share::split(limiters)) else { panic!("a bucket") };
        // n × part / longer = requests / period, exactly.
        prop_assert_eq!(
            u128::from(part) * u128::from(limiters) * u128::from(period_us),
            u128::from(requests) * u128::from(longer)
        );
        prop_assert!(smaller == 1 || smaller * limiters <= burst);
    }

    #[test]
    fn every_share_of_every_limit_is_a_limit(
        requests in 1_u64..=MAX_TOKENS, period_us in 1_000_u64..=MAX_EXACT, burst in 1_u64..=MAX_TOKENS,
        limiters in 1_u64..1_000_000, milli in 1_u64..=MAX_SHARE_MILLI,
    ) {
        for doc in [
            bucket(requests, period_us, burst),
            LimitDoc::SlidingWindowCounter { requests, period_us },
            LimitDoc::FixedWindow { requests, period_us: Some(period_us), calendar: None, time_zone: None },
        ] {
            let Ok(whole) = Limit::from_doc(&doc) else { continue };
            for share in [Share::split(limiters), Share::of_milli(milli)] {
                let limit = whole.clone().with_share(share, 1);
                prop_assert_eq!(limit.algorithm(), limit.local().unwrap().algorithm());
            }
        }
    }
}
