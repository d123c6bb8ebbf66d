// SPDX-License-Identifier: Apache-2.0
//! Sets of request methods.

/// The registered methods, each with a bit of its own: that of its place.
const KNOWN: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

/// The bits of GET and HEAD. Servers route HEAD to the handler of GET, so a set with GET holds HEAD as well.
const GET: u16 = 1;
const HEAD: u16 = 1 << 1;

/// Which methods. Compared without case: methods are case-sensitive, but some servers serve `post` as POST, and a
/// respelling must never escape a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodSet {
    /// Every one.
    Any,
    /// These.
    Only {
        /// One bit for each of the registered methods.
        known: u16,
        /// All others.
        other: Box<[Box<str>]>,
    },
}

impl MethodSet {
    /// The set of these methods; none means every method.
    ///
    /// # Errors
    /// A message when one of them is no method in upper case.
    pub fn parse(methods: &[String]) -> Result<Self, String> {
        if methods.is_empty() {
            return Ok(Self::Any);
        }
        let (mut bits, mut other) = (0, Vec::new());
        for method in methods {
            if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_'))
            {
                return Err(format!("{method:?} is no method: write it in upper case, as \"GET\""));
            }
            match bit(method) {
                0 => other.push(method.as_str().into()),
                known => bits |= known,
            }
        }
        if bits & GET != 0 {
            bits |= HEAD;
        }
        Ok(Self::Only { known: bits, other: other.into() })
    }

    /// Whether `method` is in the set.
    pub fn contains(&self, method: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only { known, other } => {
                known & bit(method) != 0 || other.iter().any(|name| name.eq_ignore_ascii_case(method))
            }
        }
    }
}

/// The bit of a registered method, 0 for any other.
fn bit(method: &str) -> u16 {
    KNOWN.iter().position(|name| name.eq_ignore_ascii_case(method)).map_or(0, |index| 1 << index)
}
