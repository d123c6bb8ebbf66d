// SPDX-License-Identifier: Apache-2.0
//! Envoy's external authorization over HTTP/2: serves connections, routes the two methods, drains at the end.
//!
//! The HTTP/2 library directly, because two unary methods pay for no framework. Decides nothing itself.

mod answer;
mod call;
mod charge;
mod check;
mod claims;
mod fallback;
mod groups;
mod grpc;
mod handover;
mod health;
mod hold;
mod lateness;
mod listener;
#[cfg(test)]
mod messages;
mod patience;
mod protobuf;
mod queue;
mod refunds;
mod wire;

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use self::handover::{Handed, Place};
use self::listener::Stream;

pub(crate) use self::check::Decider;
pub(crate) use self::handover::{Dealer, Incoming};
pub(crate) use self::listener::{Bound, bind, bind_tcp};

/// Decisions that may be under way on one connection. Envoy opens one connection per worker thread and has its own
/// circuit breaker below this.
const MAX_STREAMS: u32 = 4096;
/// Flow control: a request of usual size is sent without waiting for a window.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Envoy's own headers on a call; the client's headers travel in the message.
const MAX_HEADER_LIST_BYTES: u32 = 32 * 1024;
/// Calls that the peer may open and reset before we have looked at them. The library's default of 20 is meant for hostile
/// peers; ours is Envoy, which passes on whatever its clients cancel, and a connection that we end for that reason would
/// let every call under way on it pass unlimited. One read holds far fewer than this.
const MAX_RESET_STREAMS: usize = 1 << 20;
/// When to stop: none while serving, then the moment until which calls under way must have finished.
pub(crate) type Drain = watch::Receiver<Option<Instant>>;

/// Serves what comes to this event loop until told to drain, and then until every connection has ended or the time for it
/// is over.
pub(crate) async fn serve(mut incoming: Incoming, decider: Arc<Decider>, mut drain: Drain) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(Handed { accepted, place }) = incoming.next() => {
                let (decider, drain) = (Arc::clone(&decider), drain.clone());
                // A connection that no loop can take is gone, as one that broke right away.
                match accepted.open() {
                    Ok(Stream::Unix(stream)) => { connections.spawn(keep(place, converse(stream, decider, drain))); }
                    Ok(Stream::Tcp(stream)) => { connections.spawn(keep(place, converse(stream, decider, drain))); }
                    Err(_) => {}
                }
            },
            Some(_) = connections.join_next() => {}
            _ = drain.changed() => break,
        }
    }
    drop(incoming);
    let end = drain.borrow().unwrap_or_else(Instant::now);
    let _out_of_time = timeout_at(end, async { while connections.join_next().await.is_some() {} }).await;
    decider.settle().await;
}

/// Holds on to a connection's place for as long as it lasts.
async fn keep(place: Place, connection: impl Future<Output = ()>) {
    connection.await;
    drop(place);
}

/// Serves one connection.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(stream: S, decider: Arc<Decider>, mut drain: Drain) {
    let mut server = Builder::new();
    server
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
        .max_local_error_reset_streams(None)
        .max_header_list_size(MAX_HEADER_LIST_BYTES);
    // However a connection ends, its calls have been answered or the peer is gone: nothing to report.
    let Ok(mut connection) = server.handshake::<_, Bytes>(stream).await else { return };
    let mut draining = false;
    let mut drained = pin!(drain.changed());
    loop {
        tokio::select! {
            biased;
            accepted = connection.accept() => match accepted {
                Some(Ok((request, answer))) => { tokio::spawn(call::serve(request, answer, Arc::clone(&decider))); }
                Some(Err(_)) | None => return,
            },
            _ = drained.as_mut(), if !draining => {
                draining = true;
                connection.graceful_shutdown();
            }
        }
    }
}
