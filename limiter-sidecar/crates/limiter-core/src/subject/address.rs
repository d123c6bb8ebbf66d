// SPDX-License-Identifier: Apache-2.0
//! Client addresses: reading what proxies write, un-mapping, masking, canonical text.

use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How many leading bits of an address tell clients apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefixes {
    /// 0 to 32.
    pub ipv4: u8,
    /// 0 to 128.
    pub ipv6: u8,
}

/// A masked address as canonical text: dotted or RFC 5952, with `/n` unless the whole address counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Masked {
    text: [u8; Self::MAX],
    length: usize,
}

impl Masked {
    /// Eight groups of four digits, seven colons and `/128`; 43 would do.
    const MAX: usize = 48;

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }
}

impl fmt::Debug for Masked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl Write for Masked {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.length + part.len();
        self.text.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(part.as_bytes());
        self.length = end;
        Ok(())
    }
}

impl Prefixes {
    /// The network of `address`, as text. Lengths beyond the address count as the whole address.
    pub fn mask(self, address: IpAddr) -> Masked {
        let mut masked = Masked { text: [0; Masked::MAX], length: 0 };
        // The buffer holds the longest text there is, so writing cannot fail; a cut text would still be one text per network.
        let written = match address.to_canonical() {
            IpAddr::V4(address) => {
                let bits = u32::from(self.ipv4).min(32);
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                write_network(&mut masked, Ipv4Addr::from_bits(address.to_bits() & mask), bits, 32)
            }
            IpAddr::V6(address) => {
                let bits = u32::from(self.ipv6).min(128);
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                write_network(&mut masked, Ipv6Addr::from_bits(address.to_bits() & mask), bits, 128)
            }
        };
        debug_assert_eq!(written, Ok(()));
        masked
    }
}

fn write_network(out: &mut Masked, network: impl fmt::Display, bits: u32, all: u32) -> fmt::Result {
    if bits == all { write!(out, "{network}") } else { write!(out, "{network}/{bits}") }
}

/// Reads a client's address as proxies write it: spaces around it, a port, brackets and a zone id are tolerated,
/// IPv4-mapped IPv6 is the IPv4 address. Nothing when it cannot be read; the raw text never becomes a key.
pub fn parse_client_ip(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let host = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            let port = after.strip_prefix(':');
            if !after.is_empty() && !port.is_some_and(is_port) {
                return None;
            }
            host
        }
        // One colon is IPv4 with a port; several are IPv6, which has no port without brackets.
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => {
                if !is_port(port) {
                    return None;
                }
                host
            }
            _ => text,
        },
    };
    let host = host.split_once('%').map_or(host, |(host, _zone)| host);
    host.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

fn is_port(text: &str) -> bool {
    text.len() <= 5 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
