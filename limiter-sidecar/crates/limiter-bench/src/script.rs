// SPDX-License-Identifier: Apache-2.0
//! The bare script: commands written to a store's socket as they are, without any client library in between.
//!
//! Replies come in the order of the commands; a queue of waiters is all the state there is.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::sync::{Mutex, oneshot};

use crate::BenchError;
use crate::config::Load;
use crate::connect::{Stream, connect};
use crate::pace::{Callee, Verdict};

const NOT_DOUBLES: BenchError = BenchError::Answer("the store did not answer with doubles");

type Waiters = Rc<RefCell<VecDeque<oneshot::Sender<f64>>>>;

/// One connection; the commands take turns.
pub(crate) struct Client {
    writer: Mutex<WriteHalf<Box<dyn Stream>>>,
    waiters: Waiters,
    commands: Vec<Bytes>,
}

impl Client {
    /// Connects and builds the commands.
    pub(crate) async fn connect(load: &Load, commands: &[Vec<String>]) -> Result<Self, BenchError> {
        let (reader, writer) = tokio::io::split(connect(&load.address).await?);
        let waiters = Waiters::default();
        tokio::task::spawn_local(read(BufReader::new(reader), Rc::clone(&waiters)));
        let commands = commands.iter().map(|arguments| command(arguments)).collect::<Result<_, _>>()?;
        Ok(Self { writer: Mutex::new(writer), waiters, commands })
    }
}

impl Callee for Client {
    async fn call(&self, turn: usize) -> Result<Verdict, BenchError> {
        let place = turn.checked_rem(self.commands.len()).ok_or(BenchError::Usage)?;
        let command = self.commands.get(place).ok_or(BenchError::Usage)?;
        let (reply, waiting) = oneshot::channel();
        {
            let mut writer = self.writer.lock().await;
            self.waiters.borrow_mut().push_back(reply);
            writer.write_all(command).await?;
        }
        match waiting.await {
            Ok(allowed) if allowed > 0.0 => Ok(Verdict::Allowed),
            Ok(_) => Ok(Verdict::Refused),
            Err(_) => Err(NOT_DOUBLES),
        }
    }

    fn is_apart(&self, _turn: usize) -> bool {
        false
    }
}

/// Hands out replies until one is of another shape; then the waiters see their channels closed.
async fn read(mut reader: BufReader<ReadHalf<Box<dyn Stream>>>, waiters: Waiters) {
    while let Ok(first) = doubles(&mut reader).await {
        if let Some(waiter) = waiters.borrow_mut().pop_front() {
            let _caller_has_gone = waiter.send(first);
        }
    }
    waiters.borrow_mut().clear();
}

/// Reads `$n` and n bytes of big-endian doubles; returns the first.
async fn doubles(reader: &mut BufReader<ReadHalf<Box<dyn Stream>>>) -> Result<f64, BenchError> {
    let mut line = String::new();
    // A bound, so that the answer of a store that is something else cannot fill the memory.
    reader.take(64).read_line(&mut line).await?;
    let bytes = line.strip_prefix('$').and_then(|rest| rest.trim_end().parse::<u16>().ok());
    let mut reply = vec![0; usize::from(bytes.ok_or(NOT_DOUBLES)?) + "\r\n".len()];
    reader.read_exact(&mut reply).await?;
    let first = reply.first_chunk().ok_or(NOT_DOUBLES)?;
    Ok(f64::from_be_bytes(*first))
}

/// A command in the store's protocol, of arguments in hexadecimal.
fn command(arguments: &[String]) -> Result<Bytes, BenchError> {
    let mut command = BytesMut::new();
    command.put_slice(format!("*{}\r\n", arguments.len()).as_bytes());
    for argument in arguments {
        let bytes = unhex(argument).ok_or(BenchError::Answer("an argument is not hexadecimal"))?;
        command.put_slice(format!("${}\r\n", bytes.len()).as_bytes());
        command.put_slice(&bytes);
        command.put_slice(b"\r\n");
    }
    Ok(command.freeze())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}
