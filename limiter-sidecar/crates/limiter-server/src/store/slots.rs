// SPDX-License-Identifier: Apache-2.0
//! Hash slots: which one a key is in, and which node serves it, as the specification of Redis Cluster has it.

use redis::Value;

use super::address::Address;

/// Slots of every cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// The polynomial of CRC-16/XMODEM.
const POLYNOMIAL: u16 = 0x1021;

static CRC: [u16; 256] = crc_table();

const fn crc_table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte: u16 = 0;
    while byte < 256 {
        let mut crc = byte << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ POLYNOMIAL };
            bit += 1;
        }
        table[byte as usize] = crc;
        byte += 1;
    }
    table
}

/// The slot of a key: of what stands between its first `{` and the next `}`, unless that is nothing.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let crc = hashed_part(key).iter().fold(0_u16, |crc, byte| {
        let place = usize::from(crc.to_be_bytes()[0] ^ byte);
        crc << 8 ^ CRC.get(place).copied().unwrap_or_default()
    });
    crc % SLOTS
}

fn hashed_part(key: &[u8]) -> &[u8] {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let inside = key.get(open + 1..)?;
        inside.get(..inside.iter().position(|&byte| byte == b'}')?)
    });
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// Consecutive slots and the nodes that have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotRange {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) primary: Address,
    pub(super) replicas: Vec<Address>,
}

/// Reads the answer to `CLUSTER SLOTS`, in the order of slots. `asked`: the node that gave it.
///
/// None for what is no such answer. Entries after a node's port (its id, further names) are not needed.
pub(super) fn parse(answer: &Value, asked: &Address) -> Option<Vec<SlotRange>> {
    let Value::Array(entries) = answer else { return None };
    let mut ranges = entries.iter().map(|entry| range(entry, asked)).collect::<Option<Vec<_>>>()?;
    ranges.sort_by_key(|range| range.first);
    Some(ranges)
}

fn range(entry: &Value, asked: &Address) -> Option<SlotRange> {
    let Value::Array(fields) = entry else { return None };
    let [first, last, primary, replicas @ ..] = fields.as_slice() else { return None };
    let (first, last) = (slot(first)?, slot(last)?);
    let replicas = replicas.iter().filter_map(|node| address(node, asked)).collect();
    (first <= last).then_some(SlotRange { first, last, primary: address(primary, asked)?, replicas })
}

fn slot(value: &Value) -> Option<u16> {
    let Value::Int(number) = value else { return None };
    u16::try_from(*number).ok().filter(|slot| *slot < SLOTS)
}

fn address(node: &Value, asked: &Address) -> Option<Address> {
    let Value::Array(fields) = node else { return None };
    let [host, Value::Int(port), ..] = fields.as_slice() else { return None };
    let host = match host {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
        Value::SimpleString(text) => text,
        Value::Nil => "",
        _ => return None,
    };
    let parsed: Address = format!("{host}:{port}").parse().ok().or_else(|| {
        // A node that knows no name of its own says so with a question mark.
        (host == "?").then(|| format!(":{port}").parse().ok()).flatten()
    })?;
    Some(parsed.seen_from(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // 31C3 is the check value that the specification gives for its CRC; the others are from CLUSTER KEYSLOT.
        assert_eq!(slot_of(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b""), 0);
    }

    #[test]
    fn only_a_filled_hash_tag_counts() {
        assert_eq!(slot_of(b"weir:1:{foo}:policy"), slot_of(b"foo"));
        assert_eq!(slot_of(b"a{foo}b{bar}"), slot_of(b"foo"));
        assert_eq!(slot_of(b"{{foo}}"), slot_of(b"{foo"));
        for whole in [&b"foo{}bar"[..], b"foo{bar", b"foo}bar{"] {
            assert_eq!(hashed_part(whole), whole);
        }
    }

    fn node(host: Value, port: i64) -> Value {
        let id = Value::BulkString(b"09dbe9720cda62f7865eabc5fd8857c5d2678366".to_vec());
        Value::Array(vec![host, Value::Int(port), id, Value::Array(vec![])])
    }

    fn host(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn entry(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
    }

    #[test]
    fn the_answer_of_a_server_is_read_in_the_order_of_slots() {
        let asked = "10.0.0.9:7000".parse().unwrap();
        let answer = Value::Array(vec![
            entry(5461, 16383, vec![node(Value::Nil, 7001)]),
            entry(0, 5460, vec![node(host("10.0.0.1"), 7000), node(host("?"), 7004)]),
        ]);
        let ranges = parse(&answer, &asked).unwrap();
        assert_eq!((ranges[0].first, ranges[0].last), (0, 5460));
        assert_eq!(ranges[0].primary.to_string(), "10.0.0.1:7000");
        assert_eq!(ranges[0].replicas[0].to_string(), "10.0.0.9:7004");
        assert_eq!(ranges[1].primary.to_string(), "10.0.0.9:7001");
    }

    #[test]
    fn what_is_no_answer_about_slots_is_refused() {
        let asked = "10.0.0.9:7000".parse().unwrap();
        for answer in [
            Value::Okay,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![entry(0, 16384, vec![node(host("a"), 1)])]),
            Value::Array(vec![entry(9, 0, vec![node(host("a"), 1)])]),
            Value::Array(vec![entry(0, 9, vec![])]),
            Value::Array(vec![entry(0, 9, vec![node(host("a"), 0)])]),
        ] {
            assert_eq!(parse(&answer, &asked), None, "{answer:?}");
        }
    }
}
