// SPDX-License-Identifier: Apache-2.0
//! Requests as a client of the API sends them, over a few HTTP/2 connections to an Envoy.

use ::http::{HeaderName, HeaderValue, Request, StatusCode, Uri};
use bytes::Bytes;
use h2::client::SendRequest;

use crate::BenchError;
use crate::config::{CheckedRequest, Load};
use crate::grpc::{connections, nth};
use crate::pace::{Callee, Verdict};

/// Connections that take turns.
pub(crate) struct Client {
    connections: Vec<SendRequest<Bytes>>,
    requests: Vec<Request<()>>,
    apart: Vec<bool>,
}

impl Client {
    /// Opens the connections and builds the requests.
    pub(crate) async fn connect(load: &Load, requests: &[CheckedRequest]) -> Result<Self, BenchError> {
        let apart = requests.iter().map(|request| request.apart).collect();
        let requests = requests.iter().map(built).collect::<Result<_, _>>()?;
        Ok(Self { connections: connections(load).await?, requests, apart })
    }
}

impl Callee for Client {
    async fn call(&self, turn: usize) -> Result<Verdict, BenchError> {
        let (Some(connection), Some(request)) = (nth(&self.connections, turn), nth(&self.requests, turn)) else {
            return Err(BenchError::Usage);
        };
        let mut connection = connection.clone().ready().await?;
        let (response, _nothing_to_send) = connection.send_request(request.clone(), true)?;
        let response = response.await?;
        let status = response.status();
        let mut body = response.into_body();
        while let Some(data) = body.data().await {
            body.flow_control().release_capacity(data?.len())?;
        }
        match status {
            StatusCode::TOO_MANY_REQUESTS => Ok(Verdict::Refused),
            status if status.is_success() => Ok(Verdict::Allowed),
            _ => Err(BenchError::Answer("the status is neither 2xx nor 429")),
        }
    }

    fn is_apart(&self, turn: usize) -> bool {
        nth(&self.apart, turn).copied().unwrap_or(false)
    }
}

fn built(about: &CheckedRequest) -> Result<Request<()>, BenchError> {
    let uri =
        Uri::builder().scheme("http").authority(about.host.as_str()).path_and_query(about.path.as_str()).build()?;
    let mut request = Request::builder().method(about.method.as_str()).uri(uri).body(())?;
    for (name, value) in &about.headers {
        let name = HeaderName::try_from(name).map_err(::http::Error::from)?;
        request.headers_mut().append(name, HeaderValue::try_from(value).map_err(::http::Error::from)?);
    }
    Ok(request)
}
