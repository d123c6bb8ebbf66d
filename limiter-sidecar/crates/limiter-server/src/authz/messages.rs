// SPDX-License-Identifier: Apache-2.0
//! Envoy's messages as a generated decoder has them: what is read and written in place is measured by these.

use bytes::Bytes;

/// `envoy.service.auth.v3.CheckRequest`
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::authz) attributes: Option<AttributeContext>,
}

/// `envoy.service.auth.v3.AttributeContext`
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct AttributeContext {
    #[prost(message, optional, tag = "1")]
    pub(in crate::authz) source: Option<Peer>,
    #[prost(message, optional, tag = "4")]
    pub(in crate::authz) request: Option<Request>,
    /// An `envoy.config.core.v3.Metadata`, left as it came: most rulesets never look into it.
    #[prost(bytes = "bytes", tag = "11")]
    pub(in crate::authz) metadata_context: Bytes,
}

/// `envoy.service.auth.v3.AttributeContext.Peer`
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct Peer {
    #[prost(bytes = "bytes", tag = "4")]
    pub(in crate::authz) principal: Bytes,
}

/// `envoy.service.auth.v3.AttributeContext.Request`
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct Request {
    #[prost(message, optional, tag = "2")]
    pub(in crate::authz) http: Option<HttpRequest>,
}

/// `envoy.service.auth.v3.AttributeContext.HttpRequest`. `headers` is a protobuf map, which on the wire is a repeated
/// message of key and value; read as such it keeps its order and needs no table.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct HttpRequest {
    #[prost(bytes = "bytes", tag = "2")]
    pub(in crate::authz) method: Bytes,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::authz) headers: Vec<HeaderEntry>,
    #[prost(bytes = "bytes", tag = "4")]
    pub(in crate::authz) path: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub(in crate::authz) host: Bytes,
    #[prost(message, optional, tag = "13")]
    pub(in crate::authz) header_map: Option<HeaderMap>,
}

/// One entry of `HttpRequest.headers`; Envoy has joined repeated lines with `,`.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct HeaderEntry {
    #[prost(bytes = "bytes", tag = "1")]
    pub(in crate::authz) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(in crate::authz) value: Bytes,
}

/// `envoy.config.core.v3.HeaderMap`, sent instead of `headers` with `encode_raw_headers`.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct HeaderMap {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::authz) headers: Vec<RawHeader>,
}

/// `envoy.config.core.v3.HeaderValue` as it is received: `value` or `raw_value`.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct RawHeader {
    #[prost(bytes = "bytes", tag = "1")]
    pub(in crate::authz) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(in crate::authz) value: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(in crate::authz) raw_value: Bytes,
}

/// `envoy.service.auth.v3.CheckResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct CheckResponse {
    #[prost(message, optional, tag = "1")]
    pub(in crate::authz) status: Option<RpcStatus>,
    #[prost(oneof = "HttpResponse", tags = "2, 3")]
    pub(in crate::authz) http_response: Option<HttpResponse>,
    #[prost(message, optional, tag = "4")]
    pub(in crate::authz) dynamic_metadata: Option<Struct>,
}

/// What Envoy does with the request.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(in crate::authz) enum HttpResponse {
    /// Answer the client with this.
    #[prost(message, tag = "2")]
    Denied(DeniedHttpResponse),
    /// Let it pass.
    #[prost(message, tag = "3")]
    Ok(OkHttpResponse),
}

/// `google.rpc.Status`: 0 lets the request pass, everything else refuses it.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub(in crate::authz) code: i32,
}

/// `envoy.service.auth.v3.DeniedHttpResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct DeniedHttpResponse {
    #[prost(message, optional, tag = "1")]
    pub(in crate::authz) status: Option<HttpStatus>,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::authz) headers: Vec<HeaderValueOption>,
    #[prost(string, tag = "3")]
    pub(in crate::authz) body: String,
}

/// `envoy.type.v3.HttpStatus`
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct HttpStatus {
    #[prost(int32, tag = "1")]
    pub(in crate::authz) code: i32,
}

/// `envoy.service.auth.v3.OkHttpResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct OkHttpResponse {
    #[prost(message, repeated, tag = "6")]
    pub(in crate::authz) response_headers_to_add: Vec<HeaderValueOption>,
}

/// `envoy.config.core.v3.HeaderValueOption`
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct HeaderValueOption {
    #[prost(message, optional, tag = "1")]
    pub(in crate::authz) header: Option<HeaderValue>,
    #[prost(int32, tag = "3")]
    pub(in crate::authz) append_action: i32,
}

/// `envoy.config.core.v3.HeaderValue` as it is sent.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct HeaderValue {
    #[prost(string, tag = "1")]
    pub(in crate::authz) key: String,
    #[prost(string, tag = "2")]
    pub(in crate::authz) value: String,
}

/// `google.protobuf.Struct`, restricted to values that are strings.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct Struct {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::authz) fields: Vec<Field>,
}

/// One entry of `Struct.fields`.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct Field {
    #[prost(string, tag = "1")]
    pub(in crate::authz) key: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::authz) value: Option<StringValue>,
}

/// `google.protobuf.Value` that holds a string.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::authz) struct StringValue {
    #[prost(string, tag = "3")]
    pub(in crate::authz) string_value: String,
}
