// SPDX-License-Identifier: Apache-2.0
//! Where a node of a cluster listens, as people and as other nodes write it.

use std::fmt;
use std::str::FromStr;

/// Host and port of one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Address {
    /// A name, an IPv4 address, or an IPv6 address without brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl FromStr for Address {
    type Err = ();

    /// `host:port`, or `[v6]:port`. A redirection writes an IPv6 address without brackets, which is right as well: what
    /// follows the last colon is the port.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (host, port) = text.rsplit_once(':').ok_or(())?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let right = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_' | ':' | '%');
        if !bare.chars().all(right) {
            return Err(());
        }
        match port.parse() {
            Ok(port) if port > 0 => Ok(Self { host: bare.to_owned(), port }),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(out, "[{host}]:{port}") } else { write!(out, "{host}:{port}") }
    }
}

impl Address {
    /// The same, where a node leaves out its host: that means "the one that you asked me at".
    pub(super) fn seen_from(mut self, asked: &Self) -> Self {
        if self.host.is_empty() || self.host == "?" {
            self.host.clone_from(&asked.host);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_it_was_read() {
        for text in ["127.0.0.1:6379", "store-0.store.svc:6379", "[fd00::1]:6379"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("fd00::1:6379".parse::<Address>().unwrap().to_string(), "[fd00::1]:6379");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "host", "host:", "host:0", "host:65536", "a b:1", "user@host:1", "host:1/0"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_node_that_leaves_out_its_host_means_the_one_that_was_asked() {
        let asked = "10.0.0.1:7000".parse().unwrap();
        assert_eq!(":7001".parse::<Address>().unwrap().seen_from(&asked).to_string(), "10.0.0.1:7001");
        assert_eq!("10.0.0.2:7001".parse::<Address>().unwrap().seen_from(&asked).to_string(), "10.0.0.2:7001");
    }
}
