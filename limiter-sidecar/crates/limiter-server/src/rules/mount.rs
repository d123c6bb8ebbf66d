// SPDX-License-Identifier: Apache-2.0
//! The rules from a mounted `ConfigMap`: looked at four times a second, because the kubelet's way of updating a volume
//! (a new directory, then the symlink `..data` renamed onto it) escapes file watchers that look at a file.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::book::{RuleBook, Source};
use super::glass::{Glass, MODES};

/// How often the directory is looked at: three file system calls.
const POLL: Duration = Duration::from_millis(250);

/// How many looks in a row must miss the break-glass map until it is gone.
const GONE_AFTER: u32 = 2;

/// The keys of the `ConfigMap` that hold the document, in order of preference.
pub(crate) const DOCUMENT: &str = "ruleset.json";
pub(crate) const DOCUMENT_GZ: &str = "ruleset.json.gz";

/// Follows `directory` until the runtime ends.
pub(crate) async fn run(directory: PathBuf, book: Arc<RuleBook>) {
    let mut mount = Mount::new(directory, &[DOCUMENT, DOCUMENT_GZ]);
    loop {
        mount.look(&book);
        sleep(POLL).await;
    }
}

/// The same for the break-glass map, which ends when its file does.
pub(super) async fn run_glass(directory: PathBuf, glass: Arc<Glass>) {
    let mut mount = Mount::new(directory, &[MODES]);
    let mut missing = 0;
    loop {
        let new = mount.read_new();
        // While the kubelet swaps directories a look may find neither: two in a row say that the file is gone.
        missing = if matches!(&new, Err(error) if error.kind() == io::ErrorKind::NotFound) { missing + 1 } else { 0 };
        match new {
            Ok(Some((fingerprint, text))) => {
                mount.seen = Some(fingerprint);
                glass.mounted(Some(&text));
            }
            Err(_) if missing == GONE_AFTER && mount.seen.take().is_some() => glass.mounted(None),
            // A file that is there and cannot be read is looked at again; what it said before stays.
            Ok(None) | Err(_) => {}
        }
        glass.fall_back();
        sleep(POLL).await;
    }
}

/// What tells one content of a file from another without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fingerprint {
    /// Where `..data` leads; none in a plain directory.
    data: Option<PathBuf>,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

struct Mount {
    directory: PathBuf,
    /// The first that exists is read.
    names: &'static [&'static str],
    /// The fingerprint of what was last taken.
    seen: Option<Fingerprint>,
    /// Why nothing could be read at the last look, so that it is said once and not four times a second.
    trouble: Option<io::ErrorKind>,
}

impl Mount {
    fn new(directory: PathBuf, names: &'static [&'static str]) -> Self {
        Self { directory, names, seen: None, trouble: None }
    }

    /// Offers the book what is there now, if that is something new.
    fn look(&mut self, book: &RuleBook) {
        match self.read_new() {
            Ok(new) => {
                self.trouble = None;
                if let Some((fingerprint, document)) = new {
                    self.seen = Some(fingerprint);
                    // A refusal is remembered by the book. The file is offered again as soon as it changes.
                    let _refused = book.offer(&document, Source::Mount);
                }
            }
            Err(error) => {
                if self.trouble.replace(error.kind()) != Some(error.kind()) {
                    let directory = self.directory.display();
                    tracing::warn!(%directory, %error, "no ruleset can be read from the mounted directory");
                }
            }
        }
    }

    /// The document, when it is another one than was seen and did not change while it was read.
    fn read_new(&self) -> io::Result<Option<(Fingerprint, Vec<u8>)>> {
        let (file, before) = self.locate()?;
        if self.seen.as_ref() == Some(&before) {
            return Ok(None);
        }
        let document = fs::read(&file)?;
        let (_, after) = self.locate()?;
        Ok((before == after && document.len() as u64 == after.size).then_some((after, document)))
    }

    /// The file to read, inside the directory that `..data` leads to now, so that what is looked at and what is read
    /// belong to one update.
    fn locate(&self) -> io::Result<(PathBuf, Fingerprint)> {
        let data = fs::read_link(self.directory.join("..data")).ok();
        let directory = data.as_ref().map_or_else(|| self.directory.clone(), |data| self.directory.join(data));
        let (file, metadata) = first_existing(&directory, self.names)?;
        let fingerprint = Fingerprint {
            data,
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        };
        Ok((file, fingerprint))
    }
}

fn first_existing(directory: &Path, names: &[&str]) -> io::Result<(PathBuf, fs::Metadata)> {
    let mut missing = io::Error::from(io::ErrorKind::NotFound);
    for name in names {
        let file = directory.join(name);
        match fs::metadata(&file) {
            Ok(metadata) => return Ok((file, metadata)),
            Err(error) => missing = error,
        }
    }
    Err(missing)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("weir-mount-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    /// What the kubelet does on an update.
    fn swap(directory: &Path, stamp: &str, document: &str) {
        let fresh = directory.join(stamp);
        fs::create_dir(&fresh).unwrap();
        fs::write(fresh.join(DOCUMENT), document).unwrap();
        symlink(stamp, directory.join("..data_tmp")).unwrap();
        fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
    }

    fn take(mount: &mut Mount) -> Option<String> {
        let (fingerprint, document) = mount.read_new().ok()??;
        mount.seen = Some(fingerprint);
        Some(String::from_utf8(document).unwrap())
    }

    #[test]
    fn every_swap_is_seen_once() {
        let directory = scratch("swap");
        let mut mount = Mount::new(directory.clone(), &[DOCUMENT]);
        assert_eq!(take(&mut mount), None, "an empty directory has no document");
        for number in 0..20 {
            swap(&directory, &format!("..{number}"), &format!("document {number}"));
            assert_eq!(take(&mut mount), Some(format!("document {number}")));
            assert_eq!(take(&mut mount), None);
        }
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_plain_file_that_is_rewritten_is_seen() {
        let directory = scratch("plain");
        let mut mount = Mount::new(directory.clone(), &[DOCUMENT]);
        fs::write(directory.join(DOCUMENT), "half").unwrap();
        assert_eq!(take(&mut mount).as_deref(), Some("half"));
        fs::write(directory.join(DOCUMENT), "half and half").unwrap();
        assert_eq!(take(&mut mount).as_deref(), Some("half and half"));
        fs::remove_dir_all(directory).unwrap();
    }
}
