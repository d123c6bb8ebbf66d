// SPDX-License-Identifier: Apache-2.0
//! Unary calls of `Check` over a few HTTP/2 connections, with bodies that were built before the measurement.

use bytes::{Bytes, BytesMut};
use h2::client::SendRequest;
use http::{HeaderValue, Request, header};

use crate::BenchError;
use crate::check;
use crate::config::{CheckedRequest, Load};
use crate::connect::connect;
use crate::pace::{Callee, Verdict};

/// Connections that take turns.
pub(crate) struct Client {
    connections: Vec<SendRequest<Bytes>>,
    template: Request<()>,
    bodies: Vec<Bytes>,
    apart: Vec<bool>,
}

impl Client {
    /// Opens the connections and builds the bodies.
    pub(crate) async fn connect(load: &Load, requests: &[CheckedRequest]) -> Result<Self, BenchError> {
        let connections = connections(load).await?;
        let template = Request::post(format!("http://limiter{}", check::METHOD))
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"))
            .header(header::TE, HeaderValue::from_static("trailers"))
            .body(())?;
        let bodies = requests.iter().map(check::request).collect();
        Ok(Self { connections, template, bodies, apart: requests.iter().map(|request| request.apart).collect() })
    }
}

impl Callee for Client {
    async fn call(&self, turn: usize) -> Result<Verdict, BenchError> {
        let (Some(connection), Some(body)) = (nth(&self.connections, turn), nth(&self.bodies, turn)) else {
            return Err(BenchError::Usage);
        };
        let mut connection = connection.clone().ready().await?;
        let (response, mut stream) = connection.send_request(self.template.clone(), false)?;
        stream.send_data(body.clone(), true)?;
        let mut body = response.await?.into_body();
        let mut message = BytesMut::new();
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            message.extend_from_slice(&data);
        }
        let trailers = body.trailers().await?.unwrap_or_default();
        if trailers.get("grpc-status").is_none_or(|status| status != "0") {
            return Err(BenchError::Answer("the gRPC status is not OK"));
        }
        Ok(if check::allows(&message)? { Verdict::Allowed } else { Verdict::Refused })
    }

    fn is_apart(&self, turn: usize) -> bool {
        nth(&self.apart, turn).copied().unwrap_or(false)
    }
}

/// Opens the connections of a load.
pub(crate) async fn connections(load: &Load) -> Result<Vec<SendRequest<Bytes>>, BenchError> {
    let mut connections = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        let (send, connection) = h2::client::Builder::new()
            .data_frame_budget(crate::connect::MANY_SMALL_FRAMES)
            .handshake(connect(&load.address).await?)
            .await?;
        tokio::task::spawn_local(async move {
            let _seen_by_the_calls = connection.await;
        });
        connections.push(send);
    }
    Ok(connections)
}

/// The one whose turn it is.
pub(crate) fn nth<T>(items: &[T], turn: usize) -> Option<&T> {
    items.get(turn.checked_rem(items.len())?)
}
