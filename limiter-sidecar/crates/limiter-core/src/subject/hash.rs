// SPDX-License-Identifier: Apache-2.0
//! Hashes that leave the process: subjects, bucket keys, rule ids.
//!
//! Every variable part goes in behind its length, so that no two different tuples feed the same bytes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use thiserror::Error;

use super::{Identity, KeySpec, MissingSource, Source, Value};
use crate::ruleset::{Algorithm, Slot};

/// Version of the encoding below; a change starts all counters afresh.
const DOMAIN: &[u8] = b"weir:1";

const EVERYONE: u8 = 0;
const SHARED: u8 = 1;
const TUPLE: u8 = 2;
const HEADER: u8 = 1;
const CLIENT_IP: u8 = 2;
const COOKIE: u8 = 3;
const QUERY: u8 = 4;
const CLAIM: u8 = 5;
const PRINCIPAL: u8 = 6;
const PATH: u8 = 7;
const HOST: u8 = 8;
const METHOD: u8 = 9;

/// Set in the length of a list, which so never feeds what a text feeds: no text is that long.
const LIST: u64 = 1 << 63;

/// The identity of a rule's record inside a bucket string.
pub type RuleId = [u8; 8];

/// 22 characters for a subject: 16 bytes of a keyed hash, base64url.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject([u8; 22]);

/// 11 characters for a policy: 8 bytes of a hash of its id, base64url.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PolicyTag([u8; 11]);

/// `weir:2:{<subject>}:<policy>`, or that with `:<rule>` for a rule that is kept apart: one string of the store. The hash tag
/// keeps all of one subject in one cluster slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketKey {
    /// Zeros behind the text.
    text: [u8; 55],
    length: u8,
}

/// The secret that makes subjects unguessable, ready for use. Its bytes cannot be read back.
#[derive(Clone)]
pub struct HashKey(Hmac<Sha256>);

/// The secret is too short to hide anything.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the hash key must have at least {min} bytes, not {found}", min = HashKey::MIN_BYTES)]
pub struct HashKeyError {
    found: usize,
}

impl fmt::Debug for HashKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("HashKey(…)")
    }
}

impl HashKey {
    /// The shortest secret that is accepted: as long as the hash's output.
    pub const MIN_BYTES: usize = 32;

    /// Takes the secret. All limiters of a gateway must use the same one.
    ///
    /// # Errors
    /// When it is shorter than [`HashKey::MIN_BYTES`].
    pub fn new(secret: &[u8]) -> Result<Self, HashKeyError> {
        let error = HashKeyError { found: secret.len() };
        if secret.len() < Self::MIN_BYTES {
            return Err(error);
        }
        // HMAC takes keys of any length, so this error does not occur either.
        Hmac::new_from_slice(secret).map(Self).map_err(|_| error)
    }

    /// A key that hides nothing, for work whose subjects are never shown.
    pub(crate) fn stand_in() -> Self {
        Self(Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default()))
    }

    /// The one subject of a rule without a key. Contains the policy, so that such counters spread over cluster slots.
    pub fn everyone(&self, policy: &str) -> Subject {
        let mut hash = self.start(EVERYONE);
        feed(&mut hash, policy.as_bytes());
        finish(hash)
    }

    /// The one subject of all requests that lack `spec`'s key, in a rule that shares it.
    pub fn shared(&self, policy: &str, spec: &KeySpec) -> Subject {
        let mut hash = self.start(SHARED);
        feed(&mut hash, policy.as_bytes());
        feed_sources(&mut hash, spec);
        finish(hash)
    }

    /// The subject that a request's values for `spec` make.
    ///
    /// # Errors
    /// [`MissingSource`] when a source has no value.
    pub fn subject(&self, spec: &KeySpec, identity: &Identity<'_>) -> Result<Subject, MissingSource> {
        let mut hash = self.start(TUPLE);
        feed_sources(&mut hash, spec);
        for (place, source) in spec.sources().iter().enumerate() {
            feed_value(&mut hash, &identity.value(source).ok_or(MissingSource(place))?);
        }
        Ok(finish(hash))
    }

    fn start(&self, kind: u8) -> Hmac<Sha256> {
        let mut hash = self.0.clone();
        Mac::update(&mut hash, DOMAIN);
        Mac::update(&mut hash, &[kind]);
        hash
    }
}

impl Subject {
    /// As it stands in the store's keys.
    pub fn as_str(&self) -> &str {
        // Base64, so this is all of it.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// A number that differs between subjects, of 96 of their bits.
    pub fn digits(self) -> u64 {
        let ([first, second, ..], _) = self.0.as_chunks() else { return 0 };
        u64::from_be_bytes(*first) ^ u64::from_be_bytes(*second).rotate_left(4)
    }
}

impl PolicyTag {
    /// The tag of a policy id.
    pub fn of(policy: &str) -> Self {
        let hash: [u8; 32] = Sha256::digest(policy.as_bytes()).into();
        Self(base64url(hash.split_at(8).0))
    }
}

impl BucketKey {
    const PREFIX: &[u8; 8] = b"weir:2:{";

    /// The key of a subject's counters in one policy.
    pub fn new(subject: Subject, policy: PolicyTag) -> Self {
        Self { text: [0; 55], length: 0 }.with(Self::PREFIX).with(&subject.0).with(b"}:").with(&policy.0)
    }

    /// The key of one rule's own string, beside the others of this subject and policy.
    #[must_use]
    pub fn of_rule(self, rule: RuleId) -> Self {
        self.with(b":").with(&base64url::<11>(&rule))
    }

    /// Whose counters it holds.
    pub fn subject(&self) -> Subject {
        let mut subject = [0; 22];
        for (to, from) in subject.iter_mut().zip(self.text.iter().skip(Self::PREFIX.len())) {
            *to = *from;
        }
        Subject(subject)
    }

    /// The key's bytes, printable ASCII.
    pub fn as_bytes(&self) -> &[u8] {
        self.text.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// With a part appended. The parts in use fill the text exactly.
    fn with(mut self, part: &[u8]) -> Self {
        let from = usize::from(self.length);
        if let Some(place) = self.text.get_mut(from..from + part.len()) {
            place.copy_from_slice(part);
            // The parts in use have at most 55 bytes together.
            self.length += u8::try_from(part.len()).unwrap_or_default();
        }
        self
    }
}

impl AsRef<[u8]> for BucketKey {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Debug for BucketKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

/// The id of a rule's record: it survives changed numbers and a changed order, not a new name, slot, algorithm or key.
pub fn rule_id(policy: &str, (rule, slot): (&str, Option<Slot>), algorithm: Algorithm, spec: &KeySpec) -> RuleId {
    let mut hash = Sha256::new();
    for part in [policy, rule, algorithm.as_str()] {
        feed(&mut hash, part.as_bytes());
    }
    feed_sources(&mut hash, spec);
    // Behind all else, so that a rule without a slot keeps the counters that it had before there were any.
    if let Some(slot) = slot {
        feed(&mut hash, slot.as_str().as_bytes());
    }
    let hash: [u8; 32] = hash.finalize().into();
    let mut id = [0; 8];
    id.copy_from_slice(hash.split_at(8).0);
    id
}

/// What the two hashes have in common.
trait Feed {
    fn add(&mut self, bytes: &[u8]);
}

impl Feed for Hmac<Sha256> {
    fn add(&mut self, bytes: &[u8]) {
        Mac::update(self, bytes);
    }
}

impl Feed for Sha256 {
    fn add(&mut self, bytes: &[u8]) {
        Digest::update(self, bytes);
    }
}

fn feed(hash: &mut impl Feed, part: &[u8]) {
    hash.add(&(part.len() as u64).to_be_bytes());
    hash.add(part);
}

fn feed_sources(hash: &mut impl Feed, spec: &KeySpec) {
    hash.add(&(spec.sources().len() as u64).to_be_bytes());
    for source in spec.sources() {
        match source {
            Source::Header(name) => feed_named(hash, HEADER, name),
            Source::Cookie(name) => feed_named(hash, COOKIE, name),
            Source::Query(name) => feed_named(hash, QUERY, name),
            Source::ClientIp(prefixes) => hash.add(&[CLIENT_IP, prefixes.ipv4, prefixes.ipv6]),
            Source::Claim(path) => {
                hash.add(&[CLAIM]);
                hash.add(&(path.len() as u64).to_be_bytes());
                path.iter().for_each(|member| feed(hash, member.as_bytes()));
            }
            Source::Principal => hash.add(&[PRINCIPAL]),
            Source::Path(name) => feed_named(hash, PATH, name),
            Source::Host => hash.add(&[HOST]),
            Source::Method => hash.add(&[METHOD]),
        }
    }
}

fn feed_named(hash: &mut impl Feed, kind: u8, name: &str) {
    hash.add(&[kind]);
    feed(hash, name.as_bytes());
}

fn feed_value(hash: &mut impl Feed, value: &Value<'_>) {
    let text = value.as_bytes();
    let mark = if matches!(value, Value::List(_)) { LIST } else { 0 };
    hash.add(&(text.len() as u64 | mark).to_be_bytes());
    hash.add(text);
}

fn finish(hash: Hmac<Sha256>) -> Subject {
    let hash: [u8; 32] = hash.finalize().into_bytes().into();
    Subject(base64url(hash.split_at(16).0))
}

/// The two lengths in use (16 bytes → 22 characters, 8 → 11) fit exactly, so encoding cannot fail.
fn base64url<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut text = [0; N];
    let written = URL_SAFE_NO_PAD.encode_slice(bytes, &mut text);
    debug_assert_eq!(written, Ok(N));
    text
}
