// SPDX-License-Identifier: Apache-2.0
//! The last good document on the limiter's own disk, so that a restart without an API server and without a mount still
//! has rules.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where one ruleset is kept.
pub(crate) struct StateDir {
    file: PathBuf,
}

impl StateDir {
    /// Keeps the ruleset called `name` in `directory`, which is made if it is missing.
    ///
    /// # Errors
    /// When the directory can be neither used nor made.
    pub(crate) fn open(directory: &Path, name: &str) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        Ok(Self { file: directory.join(format!("{name}.ruleset")) })
    }

    /// The kept document; none when there is none yet.
    ///
    /// # Errors
    /// When there is one that cannot be read.
    pub(crate) fn load(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(&self.file) {
            Ok(document) => Ok(Some(document)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the kept document. Whoever reads, also after a power cut, finds the old one or the new one.
    ///
    /// # Errors
    /// When it cannot be written; the old one is then still there.
    pub(crate) fn save(&self, document: &[u8]) -> io::Result<()> {
        let partial = self.file.with_extension("partial");
        let mut file = File::create(&partial)?;
        file.write_all(document)?;
        file.sync_all()?;
        fs::rename(&partial, &self.file)?;
        // The rename itself is only safe on disk once the directory is.
        self.file.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("weir-state-{name}-{}", std::process::id()))
    }

    #[test]
    fn what_was_saved_is_loaded_and_replaced() {
        let directory = scratch("replace");
        let state = StateDir::open(&directory, "edge-rules-0").unwrap();
        assert_eq!(state.load().unwrap(), None);
        state.save(b"first").unwrap();
        state.save(b"second").unwrap();
        assert_eq!(state.load().unwrap().as_deref(), Some(&b"second"[..]));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "no partial file stays behind");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_an_error() {
        assert!(StateDir::open(Path::new("/proc/nowhere"), "edge-rules-0").is_err());
    }
}
