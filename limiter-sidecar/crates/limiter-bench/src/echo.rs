// SPDX-License-Identifier: Apache-2.0
//! The canary: an HTTP/2 server that reads a request's body and allows, and does nothing else.

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Request, Response, header};

use crate::BenchError;
use crate::check::ALLOWED;
use crate::config::Echo;
use crate::connect::{MANY_SMALL_FRAMES, Stream, listen};

/// Streams of one connection at a time; above what the load generator opens.
const STREAMS: u32 = 1024;

/// Serves until the process is ended.
pub(crate) async fn serve(echo: Echo) -> Result<(), BenchError> {
    let listener = listen(&echo.listen).await?;
    loop {
        let stream = listener.accept().await?;
        tokio::task::spawn_local(async move {
            let _client_has_gone = connection(stream).await;
        });
    }
}

async fn connection(stream: Box<dyn Stream>) -> Result<(), h2::Error> {
    let mut connection = h2::server::Builder::new()
        .max_concurrent_streams(STREAMS)
        .data_frame_budget(MANY_SMALL_FRAMES)
        .handshake::<_, Bytes>(stream)
        .await?;
    while let Some(accepted) = connection.accept().await {
        let (request, respond) = accepted?;
        tokio::task::spawn_local(async move {
            let _stream_was_reset = answer(request, respond).await;
        });
    }
    Ok(())
}

async fn answer(request: Request<RecvStream>, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
    let mut body = request.into_body();
    while let Some(data) = body.data().await {
        body.flow_control().release_capacity(data?.len())?;
    }
    let mut response = Response::new(());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    let mut stream = respond.send_response(response, false)?;
    stream.send_data(Bytes::from_static(ALLOWED), false)?;
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    stream.send_trailers(trailers)
}
