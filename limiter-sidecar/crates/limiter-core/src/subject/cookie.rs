// SPDX-License-Identifier: Apache-2.0
//! Cookies, as a server reads them (RFC 6265, section 4.2).

/// The value of the first cookie of this name (names are case-sensitive), as it was sent: quotes and escapes are part
/// of it. User agents send the cookie of the longest path first, so the first is the most specific one.
pub(super) fn value<'a>(header: &'a [u8], name: &str) -> Option<&'a [u8]> {
    header.split(|byte| *byte == b';').find_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (found, value) = pair.split_at_checked(equals)?;
        (found.trim_ascii() == name.as_bytes()).then(|| value.get(1..).unwrap_or_default().trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cookie_of_a_name_counts_as_it_was_sent() {
        let cases: [(&str, Option<&str>); 15] = [
            ("sid=a", Some("a")),
            ("other=1; sid=a; sid=b", Some("a")),
            ("sid=a;other=1", Some("a")),
            ("  sid = a \t;x=1", Some("a")),
            ("sid=\"a b\"", Some("\"a b\"")),
            ("sid=a=b=", Some("a=b=")),
            ("sid=%41", Some("%41")),
            ("sid=", Some("")),
            ("sid=; sid=b", Some("")),
            ("SID=a", None),
            ("xsid=a; sidx=b", None),
            ("sid", None),
            ("sid; sid=b", Some("b")),
            ("=a; ;;", None),
            ("", None),
        ];
        for (header, expected) in cases {
            assert_eq!(expected.map(str::as_bytes), value(header.as_bytes(), "sid"), "{header:?}");
        }
    }

    #[test]
    fn a_cookie_that_is_no_text_is_a_value() {
        assert_eq!(Some(&b"\xff\0"[..]), value(b"a=\xfe; sid=\xff\0", "sid"));
    }
}
