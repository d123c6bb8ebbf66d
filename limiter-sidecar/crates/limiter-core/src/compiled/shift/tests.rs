// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::samples::{get, hash_key};
use crate::subject::{Identity, KeySpec, Source};

const SUBJECTS: usize = 100_000;

fn stage(policy: &str, rule: &str, percent: u8) -> Stage {
    let doc = StageDoc { mode: Mode::Enforce, plans: Vec::new(), percent };
    Shift::of(policy, rule, Some(&doc), &[]).unwrap().stage.unwrap()
}

fn subjects() -> Vec<Subject> {
    let (key, spec) = (hash_key(), KeySpec::new([Source::Header("x-api-key".into())]));
    (0..SUBJECTS)
        .map(|number| {
            let name = number.to_string();
            let headers = [("x-api-key", name.as_str())];
            get("/", &headers).request(|request| key.subject(&spec, &Identity::of(*request)).unwrap())
        })
        .collect()
}

#[test]
fn a_stage_takes_its_share_of_the_subjects() {
    let subjects = subjects();
    for (percent, wanted) in [(0, 0), (1, 1_000), (10, 10_000), (50, 50_000), (99, 99_000), (100, SUBJECTS)] {
        let stage = stage("team/api", "burst", percent);
        let taken = subjects.iter().filter(|subject| stage.takes(**subject)).count();
        assert!(taken.abs_diff(wanted) <= 500, "{percent} %: {taken}");
    }
}

#[test]
fn a_subject_never_leaves_a_stage_that_grows() {
    let growing: Vec<Stage> = (0..=100).map(|percent| stage("team/api", "burst", percent)).collect();
    for subject in subjects().into_iter().take(1_000) {
        let first = growing.iter().position(|stage| stage.takes(subject)).unwrap();
        assert!(growing[first..].iter().all(|stage| stage.takes(subject)));
    }
}

#[test]
fn another_rule_or_policy_takes_other_subjects() {
    let (subjects, one) = (subjects(), stage("team/api", "burst", 10));
    for other in [stage("team/api", "daily", 10), stage("team/web", "burst", 10)] {
        let both = subjects.iter().filter(|subject| one.takes(**subject) && other.takes(**subject)).count();
        assert!(both.abs_diff(1_000) <= 150, "{both}");
    }
}

#[test]
fn the_weakest_switch_holds_until_its_second() {
    let switch = |mode, not_after| SwitchDoc { mode, not_after };
    let switches = [switch(Mode::Shadow, None), switch(Mode::Disabled, Some(20)), switch(Mode::Shadow, Some(30))];
    let shift = Shift::of("team/api", "burst", None, &switches).unwrap();
    assert_eq!([Mode::Disabled, Mode::Shadow, Mode::Shadow], [19, 20, 30].map(|now_s| shift.cap_at(now_s)));
    let ending = Shift::of("team/api", "burst", None, &switches[1..]).unwrap();
    assert_eq!([Mode::Shadow, Mode::Enforce], [29, 30].map(|now_s| ending.cap_at(now_s)));
}

#[test]
fn a_rule_of_which_nothing_is_said_has_no_shift() {
    assert!(Shift::of("team/api", "burst", None, &[]).is_none());
}
