// SPDX-License-Identifier: Apache-2.0
//! One connection to the store as its requests use it: opened with credentials and scripts, asked within deadlines.

use std::time::Duration;

use redis::{Client, ErrorKind, RedisError, Value};
use tokio::time::{Instant, timeout};

use super::address::Address;
use super::dial::dial;
use super::failure::{StoreFailure, describe};
use super::pipe::{Pipe, Question};
use super::script::{self, Script};

/// Time for everything that a new connection needs: name lookup, TCP, TLS, credentials, loading the scripts.
const OPEN_WITHIN: Duration = Duration::from_secs(2);

/// An open connection.
pub(super) struct Link {
    pipe: Pipe,
    /// The server's time when the link was opened, µs since the epoch; none where the user may not ask for it.
    opened_at_us: Option<u64>,
}

/// A question to a node about a slot that is on its way to it. What allows that holds for the next command of the
/// connection only, so both go out as one piece.
struct OnArrival<'a, Q>(&'a Q);

impl<Q: Question> Question for OnArrival<'_, Q> {
    const REPLIES: usize = 2;

    fn write(&self, out: &mut Vec<u8>) {
        redis::cmd("ASKING").write(out);
        self.0.write(out);
    }
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
        let deadline = Instant::now() + OPEN_WITHIN;
        let handshake = async {
            let (pipe, work) = Pipe::new(dial(client.get_connection_info().addr()).await?);
            tokio::spawn(work);
            let mut link = Self { pipe, opened_at_us: None };
            link.introduce(client, deadline).await?;
            for script in scripts {
                match link.ask(&script.load(), deadline).await {
                    // A user who may not load a script may still run it by its text. The preflight says what is missing.
                    Err(error) if error.is_refused_right() => {}
                    answer => drop(answer?),
                }
            }
            // Last, so that it is as new as can be.
            link.opened_at_us = link.time_us(deadline).await?;
            Ok::<_, RedisOrTimeout>(link)
        };
        match timeout(OPEN_WITHIN, handshake).await {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(RedisOrTimeout::Redis(error))) => Err(describe(&error)),
            Ok(Err(RedisOrTimeout::Timeout)) | Err(_) => Err(format!("no answer within {} s", OPEN_WITHIN.as_secs())),
        }
    }

    /// Says who we are, and which database we use.
    async fn introduce(&self, client: &Client, deadline: Instant) -> Result<(), RedisOrTimeout> {
        let settings = client.get_connection_info().redis_settings();
        if let Some(password) = settings.password() {
            let mut auth = redis::cmd("AUTH");
            auth.arg(settings.username()).arg(password);
            match self.ask(&auth, deadline).await {
                Err(RedisOrTimeout::Redis(error)) if !error.is_io_error() => {
                    return Err(RedisError::from((ErrorKind::AuthenticationFailed, "the server refused")).into());
                }
                answer => drop(answer?),
            }
        }
        if settings.db() != 0 {
            self.ask(redis::cmd("SELECT").arg(settings.db()), deadline).await?;
        }
        // Older servers do not know the command, and some users may not run it.
        for (attribute, value) in [("LIB-NAME", "weir-limiter"), ("LIB-VER", env!("CARGO_PKG_VERSION"))] {
            match self.ask(redis::cmd("CLIENT").arg("SETINFO").arg(attribute).arg(value), deadline).await {
                Err(error) if error.is_timeout() || error.failure().breaks_link() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Asks one question. An answer that comes after `deadline` is thrown away and reaches nobody else.
    ///
    /// # Errors
    /// The failure; `Timeout` also when too many questions are unanswered already.
    pub(super) async fn ask(&self, question: &impl Question, deadline: Instant) -> Result<Value, RedisOrTimeout> {
        match self.pipe.ask(question, deadline)?.await? {
            Value::ServerError(error) => Err(RedisError::from(error).into()),
            value => Ok(value),
        }
    }

    /// The server's time, µs since the epoch; none where the user may not ask for it.
    async fn time_us(&self, deadline: Instant) -> Result<Option<u64>, RedisOrTimeout> {
        match self.ask(&redis::cmd("TIME"), deadline).await {
            Err(error) if error.is_refused_right() => Ok(None),
            answer => {
                let (s, us) = redis::from_redis_value::<(u64, u64)>(answer?).map_err(RedisError::from)?;
                Ok(Some(s.saturating_mul(1_000_000).saturating_add(us)))
            }
        }
    }

    /// The server's time when the link was opened, µs since the epoch, if it tells.
    pub(super) fn opened_at_us(&self) -> Option<u64> {
        self.opened_at_us
    }

    /// Asks a node about a slot that is on its way to it.
    ///
    /// # Errors
    /// As [`Link::ask`].
    pub(super) async fn ask_on_arrival(
        &self,
        question: &impl Question,
        deadline: Instant,
    ) -> Result<Value, RedisOrTimeout> {
        self.ask(&OnArrival(question), deadline).await
    }

    /// Questions that the server has not answered yet, whether or not somebody still waits.
    pub(super) fn outstanding(&self) -> u64 {
        self.pipe.outstanding()
    }

    /// How many questions were answered.
    pub(super) fn answered(&self) -> u64 {
        self.pipe.answered()
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

impl From<RedisError> for RedisOrTimeout {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
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
