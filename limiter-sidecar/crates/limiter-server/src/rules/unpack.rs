// SPDX-License-Identifier: Apache-2.0
//! Documents may arrive compressed, because a `ConfigMap` holds a mebibyte at most.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::GzDecoder;

/// First bytes of a gzip stream; no JSON begins with them.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Largest document after unpacking: sixty times what a `ConfigMap` can hold, so only a bomb exceeds it.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The document's JSON.
///
/// # Errors
/// A message when the compressed stream is damaged or unpacks to more than 64 MiB.
pub(super) fn unpack(document: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    if !document.starts_with(&GZIP_MAGIC) {
        return Ok(Cow::Borrowed(document));
    }
    let mut json = Vec::new();
    GzDecoder::new(document)
        .take(MAX_BYTES + 1)
        .read_to_end(&mut json)
        .map_err(|error| format!("damaged gzip stream: {error}"))?;
    if json.len() as u64 > MAX_BYTES {
        return Err(format!("the document unpacks to more than {MAX_BYTES} bytes"));
    }
    Ok(Cow::Owned(json))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(json: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(json).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn plain_and_packed_documents_come_out_alike() {
        assert_eq!(unpack(b"{}").unwrap().as_ref(), b"{}");
        assert_eq!(unpack(&packed(b"{}")).unwrap().as_ref(), b"{}");
    }

    #[test]
    fn a_damaged_stream_is_an_error() {
        let mut document = packed(b"{\"format\": 1}");
        document.truncate(document.len() - 6);
        assert!(unpack(&document).is_err());
    }

    #[test]
    fn a_bomb_is_an_error() {
        let bomb = packed(&vec![b' '; usize::try_from(MAX_BYTES).unwrap() + 2]);
        assert!(unpack(&bomb).unwrap_err().contains("more than"));
    }
}
