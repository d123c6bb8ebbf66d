// SPDX-License-Identifier: Apache-2.0
//! The socket that Envoy asks on. It is bound before anything else starts, so that a taken address is a start-up error.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::options::{ConfigError, Listen};

/// Envoy runs as another user of the same group.
const SOCKET_MODE: u32 = 0o660;

/// A bound address, not yet served.
#[derive(Debug)]
pub(crate) enum Bound {
    Unix(unix::UnixListener, SocketFile),
    Tcp(std::net::TcpListener),
}

/// The file of a Unix socket; removed when it is dropped, unless another process has replaced it.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    inode: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if inode(&self.path).is_ok_and(|current| current == self.inode) {
            let _gone_already = fs::remove_file(&self.path);
        }
    }
}

/// Binds the address that Envoy asks on.
///
/// # Errors
/// [`ConfigError`] when it is taken or cannot be used.
pub(crate) fn bind(listen: &Listen) -> Result<Bound, ConfigError> {
    match listen {
        Listen::Unix(path) => bind_unix(path)
            .map_err(|error| ConfigError::new("listen", format!("cannot listen on {}: {error}", path.display()))),
        Listen::Tcp(address) => bind_tcp("listen", *address).map(Bound::Tcp),
    }
}

/// Binds a TCP address for the setting called `setting`.
///
/// # Errors
/// [`ConfigError`] when it is taken or cannot be used.
pub(crate) fn bind_tcp(setting: &'static str, address: SocketAddr) -> Result<std::net::TcpListener, ConfigError> {
    let bound = std::net::TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map_err(|error| ConfigError::new(setting, format!("cannot listen on {address}: {error}")))
}

/// The socket appears under its path with its mode already set: it is made beside it and renamed onto it, which also
/// takes the place of a file that a crashed predecessor left.
fn bind_unix(path: &Path) -> io::Result<Bound> {
    refuse_unless_stale(path)?;
    let mut partial = path.as_os_str().to_owned();
    partial.push("~");
    let partial = PathBuf::from(partial);
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = unix::UnixListener::bind(&partial)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(&partial, fs::Permissions::from_mode(SOCKET_MODE))?;
    fs::rename(&partial, path)?;
    Ok(Bound::Unix(listener, SocketFile { path: path.to_owned(), inode: inode(path)? }))
}

fn refuse_unless_stale(path: &Path) -> io::Result<()> {
    let there = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !there.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is no socket"));
    }
    match unix::UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
    }
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// A listening socket of the running data plane.
pub(super) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A connection of either kind, for any event loop to take.
#[derive(Debug)]
pub(super) enum Accepted {
    Unix(unix::UnixStream),
    Tcp(std::net::TcpStream),
}

/// The same in the event loop that serves it.
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Accepted {
    /// Takes it into the current event loop.
    pub(super) fn open(self) -> io::Result<Stream> {
        match self {
            Self::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
            Self::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
        }
    }
}

impl Listener {
    /// Takes the bound sockets into the current runtime. The file of a Unix socket is for the caller to keep.
    pub(super) fn open(bound: Bound) -> io::Result<(Self, Option<SocketFile>)> {
        match bound {
            Bound::Unix(listener, file) => Ok((Self::Unix(UnixListener::from_std(listener)?), Some(file))),
            Bound::Tcp(listener) => Ok((Self::Tcp(TcpListener::from_std(listener)?), None)),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Unix(listener) => Ok(Accepted::Unix(listener.accept().await?.0.into_std()?)),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Answers are small and waited for; Nagle's algorithm would hold them back.
                stream.set_nodelay(true)?;
                Ok(Accepted::Tcp(stream.into_std()?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("weir-{name}-{}.sock", std::process::id()))
    }

    #[test]
    fn a_socket_has_its_mode_and_vanishes_with_its_owner() {
        let path = scratch("mode");
        let bound = bind(&Listen::Unix(path.clone())).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, SOCKET_MODE);
        drop(bound);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced() {
        let path = scratch("stale");
        drop(unix::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        assert!(bind(&Listen::Unix(path)).is_ok());
    }

    #[test]
    fn a_socket_that_somebody_listens_on_is_left_alone() {
        let path = scratch("taken");
        let owner = bind(&Listen::Unix(path.clone())).unwrap();
        let error = bind(&Listen::Unix(path.clone())).unwrap_err().to_string();
        assert!(error.contains("another process listens there"), "{error}");
        assert!(unix::UnixStream::connect(&path).is_ok());
        drop(owner);
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let path = scratch("file");
        fs::write(&path, "precious").unwrap();
        assert!(bind(&Listen::Unix(path.clone())).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::remove_file(path).unwrap();
    }
}
