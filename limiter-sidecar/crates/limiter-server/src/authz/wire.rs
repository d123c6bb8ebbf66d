// SPDX-License-Identifier: Apache-2.0
//! From Envoy's `CheckRequest` to the core's request: read in place, and only what a rule may ask for. Judges nothing.
//!
//! The field numbers are Envoy's own; `tests/integration` checks them against Envoy's published messages. What a client
//! can write stays bytes: text that is no UTF-8 must not fail the whole request.

use std::borrow::Cow;
use std::collections::HashMap;

use limiter_core::{Headers, PayloadPlace, Request};

use super::claims::ReceivedClaims;
use super::grpc::Status;
use super::protobuf::{Content, Fields};

/// Headers that there is room for at once. Gateways send some twenty; more are no harm.
const USUAL_HEADERS: usize = 24;

/// A request in the bytes that it came in.
pub(super) struct Received<'m> {
    method: Cow<'m, str>,
    host: Cow<'m, str>,
    path: &'m [u8],
    headers: ReceivedHeaders<'m>,
    principal: &'m [u8],
    claims: ReceivedClaims<'m>,
}

struct ReceivedHeaders<'m>(Vec<(&'m [u8], Cow<'m, [u8]>)>);

impl Headers for ReceivedHeaders<'_> {
    fn value(&self, name: &str) -> Option<&[u8]> {
        let same = |(key, _): &&(&[u8], Cow<'_, [u8]>)| key.eq_ignore_ascii_case(name.as_bytes());
        self.0.iter().rev().find(same).map(|(_, value)| &**value)
    }
}

/// One line of `header_map`.
struct Line<'m> {
    name: &'m [u8],
    value: &'m [u8],
}

/// What a message holds, field by field.
#[derive(Default)]
struct Parts<'m> {
    found: bool,
    method: &'m [u8],
    host: &'m [u8],
    path: &'m [u8],
    headers: Vec<(&'m [u8], Cow<'m, [u8]>)>,
    lines: Vec<Line<'m>>,
    principal: &'m [u8],
    metadata: &'m [u8],
}

impl<'m> Received<'m> {
    /// Reads one `CheckRequest`, but for the metadata: where a token's payload lies in that is only kept.
    ///
    /// # Errors
    /// [`Status::MALFORMED`] when it is none, or describes no HTTP request.
    pub(super) fn decode(message: &'m [u8], place: &'m PayloadPlace) -> Result<Self, Status> {
        let mut parts = Parts { headers: Vec::with_capacity(USUAL_HEADERS), ..Parts::default() };
        parts.read(message).filter(|()| parts.found).ok_or(Status::MALFORMED)?;
        let mut headers = parts.headers;
        join(&parts.lines, &mut headers);
        Ok(Self {
            method: text(parts.method),
            host: text(parts.host),
            path: parts.path,
            headers: ReceivedHeaders(headers),
            principal: parts.principal,
            claims: ReceivedClaims { metadata: parts.metadata, place },
        })
    }

    /// What the core sees.
    pub(super) fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            host: &self.host,
            path: self.path,
            headers: &self.headers,
            principal: self.principal,
            claims: &self.claims,
        }
    }
}

/// Each reads one message, and fails where that is broken or a field is of another kind. A message that is there twice is
/// read as one, as protobuf wants it.
impl<'m> Parts<'m> {
    /// `envoy.service.auth.v3.CheckRequest`
    fn read(&mut self, message: &'m [u8]) -> Option<()> {
        each(message, |number, content| match number {
            1 => self.attributes(content.bytes()?),
            _ => Some(()),
        })
    }

    /// `envoy.service.auth.v3.AttributeContext`
    fn attributes(&mut self, message: &'m [u8]) -> Option<()> {
        each(message, |number, content| {
            match number {
                1 => self.source(content.bytes()?)?,
                4 => self.request(content.bytes()?)?,
                11 => self.metadata = content.bytes()?,
                _ => {}
            }
            Some(())
        })
    }

    /// `envoy.service.auth.v3.AttributeContext.Peer`
    fn source(&mut self, message: &'m [u8]) -> Option<()> {
        each(message, |number, content| {
            if number == 4 {
                self.principal = content.bytes()?;
            }
            Some(())
        })
    }

    /// `envoy.service.auth.v3.AttributeContext.Request`
    fn request(&mut self, message: &'m [u8]) -> Option<()> {
        each(message, |number, content| match number {
            2 => self.http(content.bytes()?),
            _ => Some(()),
        })
    }

    /// `envoy.service.auth.v3.AttributeContext.HttpRequest`. `headers` is a map, which on the wire is a list of keys and
    /// values; Envoy has joined repeated lines with `,`. `header_map` comes instead of it with `encode_raw_headers`.
    fn http(&mut self, message: &'m [u8]) -> Option<()> {
        self.found = true;
        each(message, |number, content| {
            match number {
                2 => self.method = content.bytes()?,
                3 => self.headers.push(header(content.bytes()?)?),
                4 => self.path = content.bytes()?,
                5 => self.host = content.bytes()?,
                13 => self.header_map(content.bytes()?)?,
                _ => {}
            }
            Some(())
        })
    }

    /// `envoy.config.core.v3.HeaderMap`
    fn header_map(&mut self, message: &'m [u8]) -> Option<()> {
        each(message, |number, content| {
            if number == 1 {
                self.lines.push(line(content.bytes()?)?);
            }
            Some(())
        })
    }
}

/// One entry of `HttpRequest.headers`.
fn header(message: &[u8]) -> Option<(&[u8], Cow<'_, [u8]>)> {
    let (mut name, mut value): (&[u8], &[u8]) = (&[], &[]);
    each(message, |number, content| {
        match number {
            1 => name = content.bytes()?,
            2 => value = content.bytes()?,
            _ => {}
        }
        Some(())
    })?;
    Some((name, Cow::Borrowed(value)))
}

/// `envoy.config.core.v3.HeaderValue`: `value` or `raw_value`.
fn line(message: &[u8]) -> Option<Line<'_>> {
    let (mut name, mut value, mut raw): (&[u8], &[u8], &[u8]) = (&[], &[], &[]);
    each(message, |number, content| {
        match number {
            1 => name = content.bytes()?,
            2 => value = content.bytes()?,
            3 => raw = content.bytes()?,
            _ => {}
        }
        Some(())
    })?;
    Some(Line { name, value: if value.is_empty() { raw } else { value } })
}

/// Every field of a message; nothing when `read` fails for one, or the message is broken.
fn each<'m>(message: &'m [u8], mut read: impl FnMut(u64, Content<'m>) -> Option<()>) -> Option<()> {
    let mut fields = Fields::of(message);
    for (number, content) in fields.by_ref() {
        read(number, content)?;
    }
    fields.is_whole().then_some(())
}

/// Bytes that are no UTF-8 become replacement characters, always the same ones: no such spelling escapes a rule.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The lines of `header_map`, repeated ones joined as Envoy does it for `headers`: with `,`, but cookies with `; `, since
/// HTTP/2 clients may send each cookie in a line of its own.
fn join<'m>(lines: &[Line<'m>], headers: &mut Vec<(&'m [u8], Cow<'m, [u8]>)>) {
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    for line in lines {
        if let Some((name, value)) = places.get(line.name).and_then(|place| headers.get_mut(*place)) {
            let both = value.to_mut();
            both.extend_from_slice(if name.eq_ignore_ascii_case(b"cookie") { b"; " } else { b"," });
            both.extend_from_slice(line.value);
        } else {
            places.insert(line.name, headers.len());
            headers.push((line.name, Cow::Borrowed(line.value)));
        }
    }
}

#[cfg(test)]
mod tests;
