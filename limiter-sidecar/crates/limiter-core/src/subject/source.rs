// SPDX-License-Identifier: Apache-2.0
//! Where a request's values are read from, and what these places are called.

use super::Prefixes;

/// One source of a rule's key, or of a plan's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The value of a header (lower-case name).
    Header(Box<str>),
    /// The value of a cookie.
    Cookie(Box<str>),
    /// The value of a query parameter.
    Query(Box<str>),
    /// The client's network.
    ClientIp(Prefixes),
    /// A claim of the verified token, by the names of the members that lead to it.
    Claim(Box<[Box<str>]>),
    /// The principal of the client's certificate, verified by Envoy.
    Principal,
    /// The segment of the path that the route's template gives this name.
    Path(Box<str>),
    /// The host.
    Host,
    /// The method.
    Method,
}

impl Source {
    /// As overrides name it: `header:<name>`, `claim:<name>.<name>`, `clientIP`, …. Dots and backslashes inside a claim's
    /// names stand behind a backslash, so that no two sources have one name.
    pub fn name(&self) -> String {
        match self {
            Self::Header(name) => format!("header:{name}"),
            Self::Cookie(name) => format!("cookie:{name}"),
            Self::Query(name) => format!("query:{name}"),
            Self::ClientIp(_) => "clientIP".to_owned(),
            Self::Claim(path) => {
                let escape = |name: &str| name.replace('\\', r"\\").replace('.', r"\.");
                format!("claim:{}", path.iter().map(|name| escape(name)).collect::<Vec<_>>().join("."))
            }
            Self::Principal => "principal".to_owned(),
            Self::Path(name) => format!("path:{name}"),
            Self::Host => "host".to_owned(),
            Self::Method => "method".to_owned(),
        }
    }

    /// For people: `header x-api-key`, `claim realm.sub`, `client address`, ….
    pub fn describe(&self) -> String {
        match self {
            Self::Header(name) => format!("header {name}"),
            Self::Cookie(name) => format!("cookie {name}"),
            Self::Query(name) => format!("query parameter {name}"),
            Self::ClientIp(_) => "client address".to_owned(),
            Self::Claim(path) => format!("token claim {}", path.join(".")),
            Self::Principal => "principal of a client certificate".to_owned(),
            Self::Path(name) => format!("path segment {{{name}}}"),
            Self::Host => "host".to_owned(),
            Self::Method => "method".to_owned(),
        }
    }

    /// Whether its value depends on the policy's routes.
    pub fn needs_captures(&self) -> bool {
        matches!(self, Self::Path(_))
    }
}
