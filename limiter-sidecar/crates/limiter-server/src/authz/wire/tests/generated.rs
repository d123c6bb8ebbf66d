// SPDX-License-Identifier: Apache-2.0
//! Whatever a generated decoder reads, this one reads, and the same.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message as _;

use super::super::super::messages::{AttributeContext, CheckRequest, HeaderEntry, HeaderMap, HttpRequest};
use super::super::super::messages::{Peer, RawHeader, Request};
use super::*;

/// Names of headers; few, so that some come twice.
const NAMES: [&str; 4] = ["x-a", "x-b", "cookie", ""];

/// What a decision may look at.
#[derive(Debug, PartialEq)]
struct Seen {
    texts: [String; 2],
    path: Vec<u8>,
    principal: Vec<u8>,
    metadata: Vec<u8>,
    headers: Vec<Option<Vec<u8>>>,
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

fn name() -> impl Strategy<Value = Bytes> {
    prop::sample::select(&NAMES).prop_map(|name| Bytes::from_static(name.as_bytes()))
}

fn request() -> impl Strategy<Value = CheckRequest> {
    let entry = (name(), bytes()).prop_map(|(key, value)| HeaderEntry { key, value });
    let raw = (name(), bytes(), bytes(), any::<bool>()).prop_map(|(key, value, raw_value, is_raw)| RawHeader {
        key,
        value: if is_raw { Bytes::new() } else { value },
        raw_value: if is_raw { raw_value } else { Bytes::new() },
    });
    let header_map = prop::option::of(vec(raw, 0..4).prop_map(|headers| HeaderMap { headers }));
    let http = (bytes(), bytes(), bytes(), vec(entry, 0..4), header_map)
        .prop_map(|(method, path, host, headers, header_map)| HttpRequest { method, headers, path, host, header_map });
    let request = prop::option::of(prop::option::of(http).prop_map(|http| Request { http }));
    let source = prop::option::of(bytes().prop_map(|principal| Peer { principal }));
    let attributes = (source, request, bytes()).prop_map(|(source, request, metadata_context)| AttributeContext {
        source,
        request,
        metadata_context,
    });
    prop::option::of(attributes).prop_map(|attributes| CheckRequest { attributes })
}

/// What there is to see in a message as it was decoded for us; nothing where there is no HTTP request.
fn expected(message: CheckRequest) -> Option<Seen> {
    let attributes = message.attributes?;
    let http = attributes.request?.http?;
    let value = |name: &str| {
        let lines = http.header_map.iter().flat_map(|map| &map.headers).filter(|line| line.key == name.as_bytes());
        let lines: Vec<&[u8]> =
            lines.map(|line| if line.value.is_empty() { &*line.raw_value } else { &*line.value }).collect();
        let separator: &[u8] = if name == "cookie" { b"; " } else { b"," };
        let entry = || http.headers.iter().rev().find(|entry| entry.key == name.as_bytes());
        if lines.is_empty() { entry().map(|entry| entry.value.to_vec()) } else { Some(lines.join(separator)) }
    };
    Some(Seen {
        texts: [&http.method, &http.host].map(|text| String::from_utf8_lossy(text).into_owned()),
        path: http.path.to_vec(),
        principal: attributes.source.unwrap_or_default().principal.to_vec(),
        metadata: attributes.metadata_context.to_vec(),
        headers: NAMES.map(value).to_vec(),
    })
}

fn seen(message: &[u8]) -> Option<Seen> {
    decoded(message, |received| {
        let received = received.ok()?;
        let request = received.request();
        Some(Seen {
            texts: [request.method, request.host].map(ToOwned::to_owned),
            path: request.path.to_vec(),
            principal: request.principal.to_vec(),
            metadata: received.claims.metadata.to_vec(),
            headers: NAMES.map(|name| request.headers.value(name).map(<[u8]>::to_vec)).to_vec(),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_message_says_what_it_says_to_a_generated_decoder(message in request()) {
        prop_assert_eq!(seen(&message.encode_to_vec()), expected(message));
    }

    /// Fields that nobody knows, in another order, twice, and in pieces.
    #[test]
    fn messages_one_behind_the_other_are_merged_as_protobuf_wants_it(messages in vec(request(), 0..4), unknown: u16) {
        let mut all = Vec::new();
        put_number(&mut all, 15, unknown);
        for message in &messages {
            message.encode_raw(&mut all);
            put_text(&mut all, 14, "unknown");
        }
        prop_assert_eq!(seen(&all), expected(CheckRequest::decode(&*all).unwrap()));
    }

    /// Where bytes are lost, changed or added, no message is read differently; at most one is read that is broken.
    #[test]
    fn what_a_generated_decoder_still_reads_of_a_damaged_message_is_read_the_same(
        message in request(), damage in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
    ) {
        let mut bytes = message.encode_to_vec();
        for (at, byte, kind) in damage {
            if bytes.is_empty() {
                bytes.push(byte);
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
        }
        if let Ok(message) = CheckRequest::decode(&*bytes) {
            prop_assert_eq!(seen(&bytes), expected(message));
        }
    }
}
