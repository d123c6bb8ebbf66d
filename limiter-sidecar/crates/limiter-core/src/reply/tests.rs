// SPDX-License-Identifier: Apache-2.0
use super::*;

#[test]
fn a_flat_list_is_decoded_check_by_check() {
    let reply = Reply::decode(&[0, 1, 4, 0, 200_000, 0, 0, 300_000, 1_000_000, 0, 5, -1, 0], 3).unwrap();
    let expected = [
        CheckReply { ok: true, remaining: 4, wait: Wait::Us(0), reset_us: 200_000 },
        CheckReply { ok: false, remaining: 0, wait: Wait::Us(300_000), reset_us: 1_000_000 },
        CheckReply { ok: false, remaining: 5, wait: Wait::Never, reset_us: 0 },
    ];
    assert_eq!(Reply { allowed: false, checks: expected.into() }, reply);
}

#[test]
fn decoding_undoes_encoding() {
    let integers = [1, 1, 9_007_199_254_740_991, 0, 12, 0, 3, -1, 0];
    assert_eq!(integers.to_vec(), Reply::decode(&integers, 2).unwrap().encode());
}

#[test]
fn a_list_of_another_length_is_no_reply() {
    for integers in [&[][..], &[1], &[1, 1, 4, 0], &[1, 1, 4, 0, 0, 1], &[1, 1, 4, 0, 0, 1, 4, 0, 0]] {
        assert_eq!(Err(ReplyError::Length { found: integers.len(), expected: 5 }), Reply::decode(integers, 1));
    }
}

/// D15, D33.
#[test]
fn integers_out_of_range_are_no_decision() {
    for (position, value) in [(0, 2), (1, -1), (2, -1), (3, -2), (4, i64::MIN)] {
        let mut integers = [1, 1, 4, 0, 0];
        integers[position] = value;
        assert_eq!(Err(ReplyError::Range { position, value }), Reply::decode(&integers, 1));
    }
}

#[test]
fn never_is_longer_than_any_time() {
    assert!(Wait::Never > Wait::Us(u64::MAX));
    assert!(Wait::Us(2) > Wait::Us(1));
}
