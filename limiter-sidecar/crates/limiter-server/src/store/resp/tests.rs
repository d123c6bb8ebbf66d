// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

/// A reply of any shape, as a server writes it.
fn reply() -> impl Strategy<Value = Vec<u8>> {
    let line = "[ -~]{0,20}";
    let leaf = prop_oneof![
        line.prop_map(|text| format!("+{text}\r\n").into_bytes()),
        line.prop_map(|text| format!("-ERR {text}\r\n").into_bytes()),
        any::<i64>().prop_map(|number| format!(":{number}\r\n").into_bytes()),
        Just(b"$-1\r\n".to_vec()),
        Just(b"*-1\r\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| bulk(&bytes)),
    ];
    leaf.prop_recursive(3, 20, 5, |inner| {
        proptest::collection::vec(inner, 0..5).prop_map(|items| {
            let mut out = format!("*{}\r\n", items.len()).into_bytes();
            for item in items {
                out.extend_from_slice(&item);
            }
            out
        })
    })
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    argument(&mut out, bytes);
    out
}

proptest! {
    #[test]
    fn a_reply_is_what_the_client_library_reads_and_ends_where_it_ends(reply in reply(), next: Vec<u8>) {
        let expected = redis::parse_redis_value(&reply).unwrap();
        prop_assert_eq!(take(&[&*reply, &next].concat()).unwrap(), Some((expected, reply.len())));
    }

    #[test]
    fn a_part_of_a_reply_is_waited_for(reply in reply(), part: prop::sample::Index) {
        prop_assert_eq!(take(&reply[..part.index(reply.len())]).unwrap(), None);
    }

    #[test]
    fn bytes_of_any_kind_never_panic_and_never_yield_more_than_there_is(bytes: Vec<u8>) {
        if let Ok(Some((_, length))) = take(&bytes) {
            prop_assert!(length <= bytes.len());
        }
    }

    #[test]
    fn a_command_is_what_the_client_library_writes(arguments in proptest::collection::vec(any::<Vec<u8>>(), 1..6)) {
        let mut expected = redis::Cmd::new();
        let mut written = Vec::new();
        begin(&mut written, arguments.len());
        for bytes in &arguments {
            expected.arg(&bytes[..]);
            argument(&mut written, bytes);
        }
        prop_assert_eq!(written, expected.get_packed_command());
    }
}

#[test]
fn what_is_no_resp_is_refused_at_once() {
    for bytes in [
        &b"HTTP/1.1 400 Bad Request\r\n"[..],
        b"\x15\x03\x01\x00\x02",
        b"$x\r\n",
        b"$12345678901\r\n",
        b"$99999999\r\n",
        b"*99999999\r\n",
        b"$\r\n",
        b"+OK\n",
        b"%1\r\n",
        b"*1\r\n%1\r\n",
    ] {
        let error = take(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parse, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn an_error_inside_an_array_does_not_end_it() {
    let (value, length) = take(b"*2\r\n-ERR no\r\n:1\r\n+OK\r\n").unwrap().unwrap();
    assert!(matches!(value, Value::Array(items) if items.len() == 2));
    assert_eq!(length, 17);
}
