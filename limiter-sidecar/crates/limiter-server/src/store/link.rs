// SPDX-License-Identifier: Apache-2.0
//! One connection to the store, shared by all requests of the data plane, which write to it in turns of the event loop.
//!
//! Answers come in the order of the questions, and the client library keeps that order also for askers who have gone
//! away. So a question that is answered proves that all earlier ones were: counting both sides tells how many are still
//! with the server, including the abandoned ones.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisError, RedisResult, Value};
use tokio::time::{Instant, timeout, timeout_at};

use super::address::Address;
use super::failure::{StoreFailure, describe};
use super::script::{self, Script};

/// Time for everything that a new connection needs: name lookup, TCP, TLS, credentials, loading the scripts.
const OPEN_WITHIN: Duration = Duration::from_secs(2);

/// Questions that may be with the server at once. A server that is frozen must not make the sidecar's memory grow;
/// at 5 ms per question this is 800,000 decisions a second, far above what one server decides.
const MAX_OUTSTANDING: u64 = 4096;

/// An open connection.
pub(super) struct Link {
    connection: MultiplexedConnection,
    /// The server's time when the link was opened, µs since the epoch; none where the user may not ask for it.
    opened_at_us: Option<u64>,
    sent: AtomicU64,
    answered: AtomicU64,
}

impl Link {
    /// Connects, authenticates and loads the scripts, so that requests find it.
    ///
    /// # Errors
    /// A description for people, without credentials.
    pub(super) async fn open(client: &Client) -> Result<Self, String> {
        Self::connect(client, &script::ALL).await
    }

    /// Connects and authenticates: enough to be asked about a cluster's slots.
    ///
    /// # Errors
    /// A description for people, without credentials.
    pub(super) async fn open_bare(client: &Client) -> Result<Self, String> {
        Self::connect(client, &[]).await
    }

    async fn connect(client: &Client, scripts: &[&Script]) -> Result<Self, String> {
        let handshake = async {
            // Deadlines are set per question, below: the library's own would start a second timer for each.
            let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
            let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
            for script in scripts {
                match script.load().query_async::<String>(&mut connection).await {
                    // A user who may not load a script may still run it by its text. The preflight says what is missing.
                    Err(error) if error.code() == Some("NOPERM") => {}
                    answer => drop(answer?),
                }
            }
            // Last, so that it is as new as can be.
            let opened_at_us = match redis::cmd("TIME").query_async::<(u64, u64)>(&mut connection).await {
                Err(error) if error.code() == Some("NOPERM") => None,
                answer => answer.map(|(s, us)| Some(s.saturating_mul(1_000_000).saturating_add(us)))?,
            };
            RedisResult::Ok((connection, opened_at_us))
        };
        match timeout(OPEN_WITHIN, handshake).await {
            Ok(Ok((connection, opened_at_us))) => {
                Ok(Self { connection, opened_at_us, sent: AtomicU64::new(0), answered: AtomicU64::new(0) })
            }
            Ok(Err(error)) => Err(describe(&error)),
            Err(_) => Err(format!("no answer within {} s", OPEN_WITHIN.as_secs())),
        }
    }

    /// Asks one question. An answer that comes after `deadline` is thrown away and reaches nobody else.
    ///
    /// # Errors
    /// The failure; `Timeout` also when too many questions are unanswered already.
    pub(super) async fn ask(&self, command: &Cmd, deadline: Instant) -> Result<Value, RedisOrTimeout> {
        let mut connection = self.connection.clone();
        // Pinned here, because a future that is handed on has a place on each way that it takes.
        self.answer(pin!(connection.send_packed_command(command)), deadline).await
    }

    /// Asks a node about a slot that is on its way to it. What allows that holds for the next command of the connection
    /// only, so both go out as one piece.
    ///
    /// # Errors
    /// As [`Link::ask`].
    pub(super) async fn ask_on_arrival(&self, command: Cmd, deadline: Instant) -> Result<Value, RedisOrTimeout> {
        let mut both = Pipeline::with_capacity(2);
        both.add_command(redis::cmd("ASKING")).add_command(command);
        let mut connection = self.connection.clone();
        let sent = async { connection.send_packed_commands(&both, 1, 1).await };
        let sent = pin!(async { sent.await.map(|mut answers| answers.pop().unwrap_or(Value::Nil)) });
        self.answer(sent, deadline).await
    }

    async fn answer(
        &self,
        sending: Pin<&mut impl Future<Output = RedisResult<Value>>>,
        deadline: Instant,
    ) -> Result<Value, RedisOrTimeout> {
        if self.outstanding() >= MAX_OUTSTANDING {
            return Err(RedisOrTimeout::Timeout);
        }
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let answer = timeout_at(deadline, sending).await.map_err(|_| RedisOrTimeout::Timeout)?;
        // A refusal is an answer too: it proves that the server is alive and has come to this question.
        if !answer.as_ref().is_err_and(RedisError::is_io_error) {
            self.answered.fetch_max(number, Ordering::Relaxed);
        }
        match answer.map_err(RedisOrTimeout::Redis)? {
            Value::ServerError(error) => Err(RedisOrTimeout::Redis(error.into())),
            value => Ok(value),
        }
    }

    /// The server's time when the link was opened, µs since the epoch, if it tells.
    pub(super) fn opened_at_us(&self) -> Option<u64> {
        self.opened_at_us
    }

    /// Questions that the server has not answered yet, whether or not somebody still waits.
    pub(super) fn outstanding(&self) -> u64 {
        self.sent.load(Ordering::Relaxed).saturating_sub(self.answered())
    }

    /// Number of the latest question that was answered.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

/// Where a node sends a question that is about a slot of another node.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirection {
    /// The slot is there now.
    Moved(Address),
    /// The slot is on its way; this one question goes there.
    Ask(Address),
}

/// What [`Link::ask`] can run into.
pub(super) enum RedisOrTimeout {
    Redis(RedisError),
    Timeout,
}

impl RedisOrTimeout {
    pub(super) fn failure(&self) -> StoreFailure {
        match self {
            Self::Redis(error) => error.into(),
            Self::Timeout => StoreFailure::Timeout,
        }
    }

    pub(super) fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout)
    }

    pub(super) fn is_missing_script(&self) -> bool {
        matches!(self, Self::Redis(error) if error.code() == Some("NOSCRIPT"))
    }

    /// The user may not run the command.
    pub(super) fn is_refused_right(&self) -> bool {
        matches!(self, Self::Redis(error) if error.code() == Some("NOPERM"))
    }

    /// Where else to ask, as a node of a cluster says; its host may be empty.
    pub(super) fn redirection(&self) -> Option<Redirection> {
        let Self::Redis(error) = self else { return None };
        let (address, _slot) = error.redirect_node()?;
        let address = address.parse().ok()?;
        Some(if error.code() == Some("ASK") { Redirection::Ask(address) } else { Redirection::Moved(address) })
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::Redis(error) => describe(error),
            Self::Timeout => "no answer in time".to_owned(),
        }
    }
}
