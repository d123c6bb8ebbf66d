// SPDX-License-Identifier: Apache-2.0
//! The part of Envoy's external authorization messages that a decision needs, with Envoy's own field numbers.
//!
//! Written by hand, so that no build needs `protoc`; `tests/integration` checks them against Envoy's published
//! messages. Fields that are left out here are skipped by the decoder. Everything a client can write is `Bytes`: it is
//! a slice of the request's own buffer, and text that is no UTF-8 must not fail the whole request.

use bytes::Bytes;

/// `envoy.service.auth.v3.CheckRequest`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) attributes: Option<AttributeContext>,
}

/// `envoy.service.auth.v3.AttributeContext`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AttributeContext {
    #[prost(message, optional, tag = "1")]
    pub(crate) source: Option<Peer>,
    #[prost(message, optional, tag = "4")]
    pub(crate) request: Option<Request>,
    /// An `envoy.config.core.v3.Metadata`, left as it came: most rulesets never look into it.
    #[prost(bytes = "bytes", tag = "11")]
    pub(crate) metadata_context: Bytes,
}

/// `envoy.service.auth.v3.AttributeContext.Peer`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Peer {
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) principal: Bytes,
}

/// `envoy.service.auth.v3.AttributeContext.Request`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Request {
    #[prost(message, optional, tag = "2")]
    pub(crate) http: Option<HttpRequest>,
}

/// `envoy.service.auth.v3.AttributeContext.HttpRequest`. `headers` is a protobuf map, which on the wire is a repeated
/// message of key and value; read as such it keeps its order and needs no table.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HttpRequest {
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) method: Bytes,
    #[prost(message, repeated, tag = "3")]
    pub(crate) headers: Vec<HeaderEntry>,
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) path: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) host: Bytes,
    #[prost(message, optional, tag = "13")]
    pub(crate) header_map: Option<HeaderMap>,
}

/// One entry of `HttpRequest.headers`; Envoy has joined repeated lines with `,`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HeaderEntry {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
}

/// `envoy.config.core.v3.HeaderMap`, sent instead of `headers` with `encode_raw_headers`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HeaderMap {
    #[prost(message, repeated, tag = "1")]
    pub(crate) headers: Vec<RawHeader>,
}

/// `envoy.config.core.v3.HeaderValue` as it is received: `value` or `raw_value`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RawHeader {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) raw_value: Bytes,
}

/// `envoy.service.auth.v3.CheckResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CheckResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<RpcStatus>,
    #[prost(oneof = "HttpResponse", tags = "2, 3")]
    pub(crate) http_response: Option<HttpResponse>,
    #[prost(message, optional, tag = "4")]
    pub(crate) dynamic_metadata: Option<Struct>,
}

/// What Envoy does with the request.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum HttpResponse {
    /// Answer the client with this.
    #[prost(message, tag = "2")]
    Denied(DeniedHttpResponse),
    /// Let it pass.
    #[prost(message, tag = "3")]
    Ok(OkHttpResponse),
}

/// `google.rpc.Status`: 0 lets the request pass, everything else refuses it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
}

/// `envoy.service.auth.v3.DeniedHttpResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DeniedHttpResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<HttpStatus>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) headers: Vec<HeaderValueOption>,
    #[prost(string, tag = "3")]
    pub(crate) body: String,
}

/// `envoy.type.v3.HttpStatus`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HttpStatus {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
}

/// `envoy.service.auth.v3.OkHttpResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OkHttpResponse {
    #[prost(message, repeated, tag = "6")]
    pub(crate) response_headers_to_add: Vec<HeaderValueOption>,
}

/// `envoy.config.core.v3.HeaderValueOption`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HeaderValueOption {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<HeaderValue>,
    #[prost(int32, tag = "3")]
    pub(crate) append_action: i32,
}

/// `HeaderValueOption.HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD`: left out, Envoy adds a second line.
pub(crate) const OVERWRITE_IF_EXISTS_OR_ADD: i32 = 2;

/// `envoy.config.core.v3.HeaderValue` as it is sent.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HeaderValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// `google.protobuf.Struct`, restricted to values that are strings.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Struct {
    #[prost(message, repeated, tag = "1")]
    pub(crate) fields: Vec<Field>,
}

/// One entry of `Struct.fields`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Field {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<StringValue>,
}

/// `google.protobuf.Value` that holds a string.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StringValue {
    #[prost(string, tag = "3")]
    pub(crate) string_value: String,
}

/// `grpc.health.v1.HealthCheckRequest`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    pub(crate) service: String,
}

/// `grpc.health.v1.HealthCheckResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    pub(crate) status: i32,
}

/// `HealthCheckResponse.ServingStatus`
pub(crate) const SERVING: i32 = 1;
/// `HealthCheckResponse.ServingStatus`
pub(crate) const NOT_SERVING: i32 = 2;
