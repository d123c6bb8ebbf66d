// SPDX-License-Identifier: Apache-2.0
//! From the core's response to Envoy's `CheckResponse`, written once, with its frame, into one buffer. Judges nothing.

use bytes::Bytes;
use limiter_core::{Header, Response};

use super::grpc;
use super::protobuf::{begin, length_of, put_number, put_text};

/// `google.rpc.Code.PERMISSION_DENIED`. Envoy only asks whether a code is OK, which is 0 and is left out.
const PERMISSION_DENIED: u16 = 7;
/// A `google.rpc.Status` with that code.
const DENIED_STATUS_BYTES: usize = 2;

/// `HeaderValueOption.append_action`, and `OVERWRITE_IF_EXISTS_OR_ADD`: left out, Envoy adds a second line.
const APPEND_ACTION: u8 = 3;
const OVERWRITE: u16 = 2;
const APPEND_ACTION_BYTES: usize = 2;

/// The framed `envoy.service.auth.v3.CheckResponse`.
pub(super) fn frame(response: &Response<'_>) -> Bytes {
    let metadata = &response.metadata;
    let fields = [
        ("policy", metadata.policy),
        ("rule", metadata.rule),
        ("decision", metadata.decision),
        ("mode", metadata.mode),
    ];
    let metadata_bytes = fields.iter().map(|field| length_of(field_bytes(field))).sum();
    let headers_bytes: usize = response.headers.iter().map(|header| length_of(option_bytes(header))).sum();
    let status_bytes = if response.denial.is_some() { DENIED_STATUS_BYTES } else { 0 };
    let http_bytes = headers_bytes
        + response
            .denial
            .as_ref()
            .map_or(0, |denial| length_of(http_status_bytes(denial.status)) + length_of(denial.body.len()));
    let length = length_of(status_bytes) + length_of(http_bytes) + length_of(metadata_bytes);

    let mut out = grpc::begin_frame(length);
    begin(&mut out, 1, status_bytes);
    if let Some(denial) = &response.denial {
        put_number(&mut out, 1, PERMISSION_DENIED);
        // DeniedHttpResponse
        begin(&mut out, 2, http_bytes);
        begin(&mut out, 1, http_status_bytes(denial.status));
        put_number(&mut out, 1, denial.status);
        for header in &response.headers {
            put_header(&mut out, 2, header);
        }
        put_text(&mut out, 3, &denial.body);
    } else {
        // OkHttpResponse
        begin(&mut out, 3, http_bytes);
        for header in &response.headers {
            put_header(&mut out, 6, header);
        }
    }
    // dynamic_metadata, a Struct
    begin(&mut out, 4, metadata_bytes);
    for field in &fields {
        put_field(&mut out, field);
    }
    out.into()
}

/// `envoy.type.v3.HttpStatus`; codes below 128 do not exist as answers.
fn http_status_bytes(code: u16) -> usize {
    if code < 0x80 { 2 } else { 3 }
}

/// `envoy.config.core.v3.HeaderValue`
fn header_bytes((name, value): &Header) -> usize {
    length_of(name.len()) + length_of(value.len())
}

/// `envoy.config.core.v3.HeaderValueOption`
fn option_bytes(header: &Header) -> usize {
    length_of(header_bytes(header)) + APPEND_ACTION_BYTES
}

fn put_header(out: &mut Vec<u8>, number: u8, header: &Header) {
    begin(out, number, option_bytes(header));
    begin(out, 1, header_bytes(header));
    put_text(out, 1, header.0);
    put_text(out, 2, &header.1);
    put_number(out, APPEND_ACTION, OVERWRITE);
}

/// An entry of `google.protobuf.Struct.fields` whose `Value` is a string.
fn field_bytes((key, value): &(&str, &str)) -> usize {
    length_of(key.len()) + length_of(length_of(value.len()))
}

fn put_field(out: &mut Vec<u8>, field: &(&str, &str)) {
    let (key, value) = *field;
    begin(out, 1, field_bytes(field));
    put_text(out, 1, key);
    begin(out, 2, length_of(value.len()));
    put_text(out, 3, value);
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use limiter_core::{Denial, Metadata};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use prost::Message as _;

    use super::super::messages::{
        CheckResponse, DeniedHttpResponse, Field, HeaderValue, HeaderValueOption, HttpResponse, HttpStatus,
        OkHttpResponse, RpcStatus, StringValue, Struct,
    };
    use super::*;

    const METADATA: Metadata<'static> = Metadata { policy: "team/p", rule: "r", decision: "refused", mode: "Enforce" };

    #[test]
    fn a_refusal_is_as_long_as_its_parts_say() {
        let denial = Some(Denial { status: 429, body: "b".repeat(300) });
        let headers: Vec<Header> = vec![("retry-after", Cow::Borrowed("1")), ("x-long", Cow::Owned("v".repeat(200)))];
        let frame = frame(&Response { denial, headers, metadata: METADATA });
        assert_eq!(grpc::unframe(frame.clone()).map(|message| message.len() + 5), Ok(frame.len()));
        assert_eq!(&frame[5..9], [0x0a, 2, 8, 7]);
    }

    #[test]
    fn what_passes_has_no_status_code() {
        let frame = frame(&Response { denial: None, headers: Vec::new(), metadata: METADATA });
        assert_eq!(&frame[5..9], [0x0a, 0, 0x1a, 0]);
        assert_eq!(grpc::unframe(frame.clone()).map(|message| message.len() + 5), Ok(frame.len()));
    }

    /// The same as a generated encoder has it.
    fn expected(response: &Response<'_>) -> CheckResponse {
        let metadata = &response.metadata;
        let fields = [
            ("policy", metadata.policy),
            ("rule", metadata.rule),
            ("decision", metadata.decision),
            ("mode", metadata.mode),
        ];
        let field = |(key, text): (&str, &str)| Field {
            key: key.to_owned(),
            value: Some(StringValue { string_value: text.to_owned() }),
        };
        let header = |(name, value): &Header| HeaderValueOption {
            header: Some(HeaderValue { key: (*name).to_owned(), value: value.clone().into_owned() }),
            append_action: i32::from(OVERWRITE),
        };
        let headers = response.headers.iter().map(header).collect();
        let (code, http_response) = match &response.denial {
            None => (0, HttpResponse::Ok(OkHttpResponse { response_headers_to_add: headers })),
            Some(Denial { status, body }) => {
                let status = Some(HttpStatus { code: i32::from(*status) });
                (7, HttpResponse::Denied(DeniedHttpResponse { status, headers, body: body.clone() }))
            }
        };
        CheckResponse {
            status: Some(RpcStatus { code }),
            http_response: Some(http_response),
            dynamic_metadata: Some(Struct { fields: fields.into_iter().map(field).collect() }),
        }
    }

    proptest! {
        #[test]
        fn a_generated_decoder_reads_what_was_meant(
            denial in prop::option::of((1..1_000_u16, ".{0,300}")), values in vec(".{0,200}", 0..4),
            policy in ".{0,150}", rule in ".{0,150}",
        ) {
            let names = ["retry-after", "ratelimit", "x-ratelimit-mode", ""];
            let response = Response {
                denial: denial.map(|(status, body)| Denial { status, body }),
                headers: names.into_iter().zip(values.into_iter().map(Cow::Owned)).collect(),
                metadata: Metadata { policy: &policy, rule: &rule, ..METADATA },
            };
            let message = grpc::unframe(frame(&response)).unwrap();
            prop_assert_eq!(CheckResponse::decode(message).unwrap(), expected(&response));
        }
    }
}
