// SPDX-License-Identifier: Apache-2.0
//! The admin port: health, readiness, metrics, status. Read only, on loopback unless told otherwise.

mod status;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::shared::Shared;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A client that does not finish its request's head within this time is cut off.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Pause after an `accept` that failed, which means that file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until the runtime ends.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let response = route(&request, &shared);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
            // A client that went away is no news.
            let _gone = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn route(request: &Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return respond(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".to_owned());
    }
    match request.uri().path() {
        "/healthz" => verdict(shared.is_alive(), "the data plane does not respond"),
        "/readyz" => verdict(shared.is_ready(), "no rules yet, the store not tried yet, or draining"),
        "/metrics" => {
            shared.book.forget_gone();
            shared.metrics.note_preflight(&shared.stores.findings());
            respond(StatusCode::OK, OPEN_METRICS, shared.metrics.encode(shared.connections()))
        }
        "/status" => match serde_json::to_string(&status::document(shared)) {
            Ok(document) => respond(StatusCode::OK, JSON, document),
            Err(error) => respond(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{error}\n")),
        },
        _ => respond(StatusCode::NOT_FOUND, TEXT, "try /healthz, /readyz, /metrics, /status\n".to_owned()),
    }
}

fn verdict(good: bool, otherwise: &str) -> Response<Full<Bytes>> {
    if good {
        respond(StatusCode::OK, TEXT, "ok\n".to_owned())
    } else {
        respond(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{otherwise}\n"))
    }
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
