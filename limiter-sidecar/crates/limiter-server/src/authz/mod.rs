// SPDX-License-Identifier: Apache-2.0
//! Envoy's external authorization over HTTP/2: accepts connections, routes the two methods, drains at the end.
//!
//! hyper directly, because two unary methods do not pay for a gRPC framework. Decides nothing itself.

mod answer;
mod charge;
mod check;
mod claims;
mod fallback;
mod groups;
mod grpc;
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

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioExecutor;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use self::grpc::{Status, Unary};
use self::listener::{Listener, Stream};

pub(crate) use self::check::Decider;
pub(crate) use self::listener::{Bound, bind, bind_tcp};

const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";
const HEALTH: &str = "/grpc.health.v1.Health/Check";

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
/// Pause after an `accept` that failed, which means that file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// When to stop: none while serving, then the moment until which calls under way must have finished.
pub(crate) type Drain = watch::Receiver<Option<Instant>>;

/// Serves until told to drain, and then until every connection has ended or the time for it is over.
///
/// # Errors
/// When the bound socket cannot be used.
pub(crate) async fn serve(bound: Bound, decider: Arc<Decider>, mut drain: Drain) -> std::io::Result<()> {
    let (listener, file) = Listener::open(bound)?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(Stream::Unix(stream)) => { connections.spawn(converse(stream, Arc::clone(&decider), drain.clone())); }
                Ok(Stream::Tcp(stream)) => { connections.spawn(converse(stream, Arc::clone(&decider), drain.clone())); }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
            _ = drain.changed() => break,
        }
    }
    drop((listener, file));
    let end = drain.borrow().unwrap_or_else(Instant::now);
    let _out_of_time = timeout_at(end, async { while connections.join_next().await.is_some() {} }).await;
    decider.settle().await;
    Ok(())
}

/// Serves one connection.
async fn converse<S>(stream: S, decider: Arc<Decider>, mut drain: Drain)
where
    S: Read + Write + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let decider = Arc::clone(&decider);
        async move { Ok::<_, Infallible>(call(request, &decider).await) }
    });
    let mut server = http2::Builder::new(TokioExecutor::new());
    server
        .auto_date_header(false)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
        .max_local_error_reset_streams(None)
        .max_header_list_size(MAX_HEADER_LIST_BYTES);
    let mut connection = pin!(server.serve_connection(stream, service));
    // However a connection ends, its calls have been answered or the peer is gone: nothing to report.
    tokio::select! {
        _ended = connection.as_mut() => return,
        _ = drain.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ended = connection.await;
}

async fn call(request: Request<Incoming>, decider: &Decider) -> Response<Unary> {
    let answer = match (request.method(), request.uri().path()) {
        (&Method::POST, CHECK) => check(request, decider).await,
        (&Method::POST, HEALTH) => health(request.into_body(), decider).await,
        _ => Err(Status::UNKNOWN_METHOD),
    };
    answer.unwrap_or_else(grpc::failure)
}

async fn check(request: Request<Incoming>, decider: &Decider) -> Result<Response<Unary>, Status> {
    let patience = patience::of(request.headers());
    let message = grpc::read_message(request.into_body()).await?;
    Ok(grpc::answer(decider.check(message, patience).await?))
}

async fn health(body: Incoming, decider: &Decider) -> Result<Response<Unary>, Status> {
    let message = grpc::read_message(body).await?;
    Ok(grpc::answer(health::answer(&message, decider.is_ready())?))
}
