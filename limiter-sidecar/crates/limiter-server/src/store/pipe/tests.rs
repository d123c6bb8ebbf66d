// SPDX-License-Identifier: Apache-2.0
//! The far end is a stream in memory, which answers when and in what pieces the test wants.

use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::yield_now;

use super::lines::MAX_OUTSTANDING;
use super::*;

const PATIENCE: Duration = Duration::from_millis(5);

fn pipe() -> (Pipe, DuplexStream) {
    let (near, far) = duplex(1 << 20);
    let (pipe, work) = Pipe::new(Box::new(near));
    tokio::spawn(work);
    (pipe, far)
}

fn ask(pipe: &Pipe, name: &str) -> Answer {
    pipe.ask(redis::cmd("GET").arg(name), Instant::now() + PATIENCE).ok().unwrap()
}

fn text(answer: Result<Value, RedisOrTimeout>) -> Result<String, &'static str> {
    match answer {
        Ok(Value::BulkString(bytes)) => Ok(String::from_utf8(bytes).unwrap()),
        Ok(_) => Err("another value"),
        Err(RedisOrTimeout::Timeout) => Err("timeout"),
        Err(RedisOrTimeout::Redis(error)) if error.is_io_error() => Err("connection"),
        Err(RedisOrTimeout::Redis(_)) => Err("garbled"),
    }
}

/// What a server that answers with what it was asked for says to so many questions.
fn echo(names: impl Iterator<Item = usize>) -> Vec<u8> {
    let mut out = Vec::new();
    names.for_each(|name| crate::store::resp::number(&mut out, name));
    out
}

/// Reads until nothing more comes in this turn.
async fn heard(far: &mut DuplexStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut piece = vec![0; 1 << 20];
    while let Ok(Ok(length @ 1..)) = tokio::time::timeout(Duration::from_nanos(1), far.read(&mut piece)).await {
        all.extend_from_slice(&piece[..length]);
    }
    all
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Asker {
    Waits,
    /// Goes away before anything is sent.
    LeavesAtOnce,
    /// Goes away when the question is with the server.
    Leaves,
}

fn askers() -> impl Strategy<Value = Vec<Asker>> {
    let asker = prop_oneof![3 => Just(Asker::Waits), 1 => Just(Asker::LeavesAtOnce), 1 => Just(Asker::Leaves)];
    proptest::collection::vec(asker, 1..40)
}

proptest! {
    #[test]
    fn everybody_gets_the_answer_to_his_own_question_whoever_goes_away(
        askers in askers(), cuts in proptest::collection::vec(1_usize..40, 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (pipe, mut far) = pipe();
            let mut waiting = Vec::new();
            for (name, asker) in askers.iter().enumerate() {
                let answer = ask(&pipe, &name.to_string());
                if *asker != Asker::LeavesAtOnce {
                    waiting.push((name, *asker, answer));
                }
            }
            yield_now().await;
            waiting.retain(|(_, asker, _)| *asker == Asker::Waits);
            let tasks: Vec<_> =
                waiting.into_iter().map(|(name, _, answer)| (name, tokio::spawn(async { text(answer.await) }))).collect();
            let said = echo(0..askers.len());
            let (mut rest, mut cuts) = (&said[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (piece, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                far.write_all(piece).await.unwrap();
                yield_now().await;
                rest = later;
            }
            for (name, task) in tasks {
                assert_eq!(task.await.unwrap(), Ok(name.to_string()));
            }
            assert_eq!((pipe.outstanding(), pipe.answered()), (0, askers.len() as u64));
        });
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_in_one_turn_goes_out_in_one_piece() {
    let (pipe, mut far) = pipe();
    let _answers: Vec<_> = (0..10).map(|name| ask(&pipe, &name.to_string())).collect();
    let mut piece = vec![0; 1 << 20];
    let length = far.read(&mut piece).await.unwrap();
    assert_eq!(piece[..length].windows(3).filter(|part| part == b"GET").count(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_thrown_away_and_the_next_question_gets_its_own() {
    let (pipe, mut far) = pipe();
    let asked = Instant::now();
    assert_eq!(text(ask(&pipe, "0").await), Err("timeout"));
    assert!((PATIENCE..PATIENCE + Duration::from_millis(2)).contains(&asked.elapsed()), "{:?}", asked.elapsed());
    assert_eq!(pipe.outstanding(), 1);
    let second = ask(&pipe, "1");
    far.write_all(&echo(0..2)).await.unwrap();
    assert_eq!(text(second.await), Ok("1".to_owned()));
    assert_eq!((pipe.outstanding(), pipe.answered()), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn each_question_waits_until_its_own_deadline() {
    let (pipe, _far) = pipe();
    let start = Instant::now();
    let mut tasks = Vec::new();
    for ms in [1_000, 5, 80, 20, 5_u64] {
        let answer = pipe.ask(redis::cmd("GET").arg("x"), start + Duration::from_millis(ms)).ok().unwrap();
        tasks.push(tokio::spawn(async move { (text(answer.await), start.elapsed(), ms) }));
    }
    for task in tasks {
        let (answer, elapsed, ms) = task.await.unwrap();
        assert_eq!(answer, Err("timeout"));
        let bounds = Duration::from_millis(ms)..=Duration::from_millis(ms + 2);
        assert!(bounds.contains(&elapsed), "{ms} took {elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_is_told_to_all_who_wait_and_to_all_who_come() {
    let (pipe, far) = pipe();
    let waits = ask(&pipe, "0");
    drop(far);
    assert_eq!(text(waits.await), Err("connection"));
    let error = pipe.ask(&redis::cmd("PING"), Instant::now() + PATIENCE).err().unwrap();
    assert_eq!(text(Err(error)), Err("connection"));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_redis_ends_the_connection() {
    for said in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"+OK\r\n+nobody asked\r\n"] {
        let (pipe, mut far) = pipe();
        let first = tokio::spawn(ask(&pipe, "0"));
        yield_now().await;
        far.write_all(said).await.unwrap();
        let _first = first.await.unwrap();
        assert_eq!(
            pipe.ask(&redis::cmd("PING"), Instant::now()).err().map(|error| text(Err(error))),
            Some(Err("garbled"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_frozen_does_not_make_the_memory_grow() {
    let (pipe, _far) = pipe();
    for _ in 0..MAX_OUTSTANDING {
        drop(ask(&pipe, "x"));
    }
    assert_eq!(pipe.ask(&redis::cmd("PING"), Instant::now()).err().map(|error| text(Err(error))), Some(Err("timeout")));
}

#[tokio::test(start_paused = true)]
async fn deadlines_hold_while_the_server_takes_not_a_byte_more() {
    let (near, _far) = duplex(16);
    let (pipe, work) = Pipe::new(Box::new(near));
    tokio::spawn(work);
    for name in ["0", "1", "2", "3"] {
        let answer = tokio::time::timeout(PATIENCE * 2, ask(&pipe, name)).await;
        assert_eq!(answer.map(text), Ok(Err("timeout")), "question {name} had no timer");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_hears_of_a_driver_that_is_gone() {
    let (near, _far) = duplex(16);
    let (pipe, work) = Pipe::new(Box::new(near));
    let waits = ask(&pipe, "0");
    drop(work);
    assert_eq!(text(waits.await), Err("connection"));
}

#[tokio::test(start_paused = true)]
async fn a_pipe_that_nobody_holds_ends_its_connection() {
    let (pipe, mut far) = pipe();
    let waits = ask(&pipe, "0");
    drop(pipe);
    assert_eq!(text(waits.await), Err("connection"));
    heard(&mut far).await;
    assert_eq!(far.read(&mut [0; 9]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_longer_than_any_buffer_is_read_whole() {
    let (pipe, mut far) = pipe();
    let answer = ask(&pipe, "0");
    let mut said = Vec::new();
    crate::store::resp::argument(&mut said, &vec![b'x'; 300_000]);
    far.write_all(&said).await.unwrap();
    assert_eq!(text(answer.await).map(|text| text.len()), Ok(300_000));
    let next = ask(&pipe, "1");
    far.write_all(&echo(1..2)).await.unwrap();
    assert_eq!(text(next.await), Ok("1".to_owned()));
}
