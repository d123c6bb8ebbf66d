// SPDX-License-Identifier: Apache-2.0
use super::*;

fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

#[test]
fn a_string_of_doubles_is_decoded_check_by_check() {
    let numbers = [0.0, 1.7e15, 1.0, 4.0, 0.0, 200_000.0, 0.0, 0.0, 300_000.0, 1_000_000.0, 0.0, 5.0, -1.0, 0.0];
    let expected = [
        CheckReply { ok: true, remaining: 4, wait: Wait::Us(0), reset_us: 200_000 },
        CheckReply { ok: false, remaining: 0, wait: Wait::Us(300_000), reset_us: 1_000_000 },
        CheckReply { ok: false, remaining: 5, wait: Wait::Never, reset_us: 0 },
    ];
    let reply = Reply { allowed: false, now_us: 1_700_000_000_000_000, checks: expected.into() };
    assert_eq!(Ok(Answer::Decided(reply)), Reply::decode(&bytes(&numbers), 3));
}

#[test]
fn numbers_are_what_was_decoded() {
    let numbers = [1, 17, 1, 9_007_199_254_740_991, 0, 12, 0, 3, -1, 0];
    #[expect(clippy::cast_precision_loss, reason = "all below 2^53")]
    let decoded = Reply::decode(&bytes(&numbers.map(|number| number as f64)), 2);
    assert_eq!(numbers.to_vec(), decoded.unwrap().numbers());
}

#[test]
fn stale_edges_come_with_the_stores_clock_and_nothing_else() {
    let stale = Reply::decode(&bytes(&[-1.0, 5.0]), 3).unwrap();
    assert_eq!((Answer::Stale { now_us: 5 }, vec![-1, 5]), (stale.clone(), stale.numbers()));
    assert!(matches!(Reply::decode(&bytes(&[-1.0]), 3), Err(ReplyError::Length { found: 8, expected: 16 })));
}

#[test]
fn a_string_of_another_length_is_no_reply() {
    for found in [0, 1, 16, 40, 47, 49, 80] {
        assert_eq!(Err(ReplyError::Length { found, expected: 48 }), Reply::decode(&vec![0; found], 1));
    }
}

/// D15, D33.
#[test]
fn numbers_out_of_range_are_no_decision() {
    let cases = [(0, 2.0), (0, 0.5), (1, -1.0), (2, -1.0), (3, -1.0), (4, -2.0), (5, 0.5), (5, 2_f64.powi(53))];
    for (position, value) in cases {
        let mut numbers = [1.0, 9.0, 1.0, 4.0, 0.0, 0.0];
        numbers[position] = value;
        assert_eq!(Err(ReplyError::Range { position, value }), Reply::decode(&bytes(&numbers), 1));
    }
    let garbled = Reply::decode(&bytes(&[1.0, f64::NAN, 1.0, 4.0, 0.0, 0.0]), 1);
    assert!(matches!(garbled, Err(ReplyError::Range { position: 1, .. })));
}

#[test]
fn never_is_longer_than_any_time() {
    assert!(Wait::Never > Wait::Us(u64::MAX));
    assert!(Wait::Us(2) > Wait::Us(1));
}
