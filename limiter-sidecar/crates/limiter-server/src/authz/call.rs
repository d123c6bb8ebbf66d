// SPDX-License-Identifier: Apache-2.0
//! One call from its headers to its answer: which method, its one message, and what becomes of it when the peer gives up.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Method, Request};

use super::check::Decider;
use super::grpc::{self, Status};
use super::{health, patience};

const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";
const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// What is called.
enum Called {
    /// Whether a request may pass, by a caller that waits so long.
    Check(Option<Duration>),
    /// Whether the limiter should get requests.
    Health,
}

/// Answers one call. When the peer resets it, or its connection ends, everything that the call owns is dropped at once.
pub(super) async fn serve(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, decider: Arc<Decider>) {
    let called = called(&request);
    let body = request.into_body();
    let answer = {
        let mut answer = pin!(answer(called, body, &decider));
        poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => respond.poll_reset(context).map(|_| None),
        })
        .await
    };
    if let Some(answer) = answer {
        // A peer that has gone away meanwhile needs none.
        let _gone = grpc::send(&mut respond, answer);
    }
}

/// What a call asks for, after which its headers are of no more use.
fn called(request: &Request<RecvStream>) -> Option<Called> {
    match (request.method(), request.uri().path()) {
        (&Method::POST, CHECK) => Some(Called::Check(patience::of(request.headers()))),
        (&Method::POST, HEALTH) => Some(Called::Health),
        _ => None,
    }
}

async fn answer(called: Option<Called>, body: RecvStream, decider: &Decider) -> Result<Bytes, Status> {
    match called {
        Some(Called::Check(patience)) => decider.check(grpc::read_message(body).await?, patience).await,
        Some(Called::Health) => health::answer(&grpc::read_message(body).await?, decider.is_ready()),
        None => Err(Status::UNKNOWN_METHOD),
    }
}
