// SPDX-License-Identifier: Apache-2.0
//! Between Envoy's messages and the core's request and response. Judges nothing.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use limiter_core::{Headers, PayloadPlace, Request, Response};
use prost::Message;

use super::claims::ReceivedClaims;
use super::grpc::Status;
use super::messages::{
    CheckRequest, CheckResponse, DeniedHttpResponse, Field, HeaderEntry, HeaderMap, HeaderValue, HeaderValueOption,
    HttpRequest, HttpResponse, HttpStatus, OVERWRITE_IF_EXISTS_OR_ADD, OkHttpResponse, RpcStatus, StringValue, Struct,
};

/// `google.rpc.Code.OK` and `PERMISSION_DENIED`: Envoy only asks whether it is OK.
const OK: i32 = 0;
const PERMISSION_DENIED: i32 = 7;

/// A decoded request, which owns what the core borrows.
pub(super) struct Received<'p> {
    method: String,
    host: String,
    path: Bytes,
    headers: ReceivedHeaders,
    principal: Bytes,
    claims: ReceivedClaims<'p>,
}

struct ReceivedHeaders(Vec<HeaderEntry>);

impl Headers for ReceivedHeaders {
    fn value(&self, name: &str) -> Option<&[u8]> {
        let same = |entry: &&HeaderEntry| entry.key.eq_ignore_ascii_case(name.as_bytes());
        self.0.iter().rev().find(same).map(|entry| &entry.value[..])
    }
}

impl<'p> Received<'p> {
    /// Decodes one `CheckRequest`, but for the metadata: where a token's payload lies in that is only kept.
    ///
    /// # Errors
    /// [`Status::MALFORMED`] when it is none, or describes no HTTP request.
    pub(super) fn decode(message: Bytes, place: &'p PayloadPlace) -> Result<Self, Status> {
        let check = CheckRequest::decode(message).map_err(|_| Status::MALFORMED)?;
        let attributes = check.attributes.ok_or(Status::MALFORMED)?;
        let http: HttpRequest = attributes.request.and_then(|request| request.http).ok_or(Status::MALFORMED)?;
        let mut headers = http.headers;
        headers.extend(http.header_map.map(joined).unwrap_or_default());
        Ok(Self {
            method: text(&http.method).into_owned(),
            host: text(&http.host).into_owned(),
            path: http.path,
            headers: ReceivedHeaders(headers),
            principal: attributes.source.map(|peer| peer.principal).unwrap_or_default(),
            claims: ReceivedClaims { metadata: attributes.metadata_context, place },
        })
    }

    /// What the core sees.
    pub(super) fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            host: &self.host,
            path: &self.path,
            headers: &self.headers,
            principal: &self.principal,
            claims: &self.claims,
        }
    }
}

/// Bytes that are no UTF-8 become replacement characters, always the same ones: no such spelling escapes a rule.
fn text(bytes: &Bytes) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The lines of `header_map`, repeated ones joined as Envoy does it for `headers`: with `,`, but cookies with `; `, since
/// HTTP/2 clients may send each cookie in a line of its own.
fn joined(map: HeaderMap) -> Vec<HeaderEntry> {
    let mut entries: Vec<HeaderEntry> = Vec::with_capacity(map.headers.len());
    let mut places: HashMap<Bytes, usize> = HashMap::with_capacity(map.headers.len());
    for line in map.headers {
        let value = if line.value.is_empty() { line.raw_value } else { line.value };
        if let Some(entry) = places.get(&line.key).and_then(|place| entries.get_mut(*place)) {
            let mut both = BytesMut::with_capacity(entry.value.len() + 2 + value.len());
            both.extend_from_slice(&entry.value);
            both.extend_from_slice(if entry.key.eq_ignore_ascii_case(b"cookie") { b"; " } else { b"," });
            both.extend_from_slice(&value);
            entry.value = both.freeze();
        } else {
            places.insert(line.key.clone(), entries.len());
            entries.push(HeaderEntry { key: line.key, value });
        }
    }
    entries
}

/// The core's answer as Envoy's message.
pub(super) fn answer(response: Response<'_>) -> CheckResponse {
    let headers = response.headers.into_iter().map(|(name, value)| header(name, value)).collect();
    let (code, http_response) = match response.denial {
        None => (OK, HttpResponse::Ok(OkHttpResponse { response_headers_to_add: headers })),
        Some(denial) => {
            let status = Some(HttpStatus { code: i32::from(denial.status) });
            (PERMISSION_DENIED, HttpResponse::Denied(DeniedHttpResponse { status, headers, body: denial.body }))
        }
    };
    let metadata = response.metadata;
    let fields = [
        ("policy", metadata.policy),
        ("rule", metadata.rule),
        ("decision", metadata.decision),
        ("mode", metadata.mode),
    ];
    CheckResponse {
        status: Some(RpcStatus { code }),
        http_response: Some(http_response),
        dynamic_metadata: Some(Struct { fields: fields.into_iter().map(field).collect() }),
    }
}

fn header(name: &'static str, value: Cow<'static, str>) -> HeaderValueOption {
    HeaderValueOption {
        header: Some(HeaderValue { key: name.to_owned(), value: value.into_owned() }),
        append_action: OVERWRITE_IF_EXISTS_OR_ADD,
    }
}

fn field((key, value): (&str, &str)) -> Field {
    Field { key: key.to_owned(), value: Some(StringValue { string_value: value.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::messages::{AttributeContext, RawHeader, Request as EnvoyRequest};

    fn encoded(http: HttpRequest) -> Bytes {
        let request = EnvoyRequest { http: Some(http) };
        let attributes = AttributeContext { request: Some(request), ..Default::default() };
        CheckRequest { attributes: Some(attributes) }.encode_to_vec().into()
    }

    fn place() -> PayloadPlace {
        PayloadPlace { namespace: "jwt".into(), key: "payload".into() }
    }

    fn raw(key: &'static str, value: &'static [u8]) -> RawHeader {
        RawHeader { key: key.into(), value: Bytes::new(), raw_value: Bytes::from_static(value) }
    }

    #[test]
    fn headers_are_found_in_either_form() {
        let headers = vec![HeaderEntry { key: "x-a".into(), value: "1".into() }];
        let header_map = Some(HeaderMap { headers: vec![raw("x-b", b"2"), raw("x-b", b"\xff")] });
        let message = encoded(HttpRequest { headers, header_map, ..Default::default() });
        let place = place();
        let received = Received::decode(message, &place).unwrap();
        let request = received.request();
        assert_eq!(request.headers.value("x-a"), Some(&b"1"[..]));
        assert_eq!(request.headers.value("x-b"), Some(&b"2,\xff"[..]));
        assert_eq!(request.headers.value("x-c"), None);
    }

    #[test]
    fn cookies_in_lines_of_their_own_are_one_header() {
        let header_map = Some(HeaderMap { headers: vec![raw("cookie", b"a=1"), raw("cookie", b"sid=x,y")] });
        let message = encoded(HttpRequest { header_map, ..Default::default() });
        let place = place();
        let received = Received::decode(message, &place).unwrap();
        assert_eq!(received.request().headers.value("cookie"), Some(&b"a=1; sid=x,y"[..]));
    }

    #[test]
    fn a_path_that_is_no_utf_8_is_still_a_path() {
        let http = HttpRequest { path: Bytes::from_static(b"/a\xff"), ..Default::default() };
        assert_eq!(Received::decode(encoded(http), &place()).unwrap().request().path, b"/a\xff");
    }

    #[test]
    fn a_message_without_an_http_request_is_refused() {
        assert_eq!(Received::decode(Bytes::new(), &place()).err(), Some(Status::MALFORMED));
        assert_eq!(Received::decode(Bytes::from_static(b"\xff\xff"), &place()).err(), Some(Status::MALFORMED));
    }
}
