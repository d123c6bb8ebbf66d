// SPDX-License-Identifier: Apache-2.0
//! One stream type over Unix and TCP sockets.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::config::Address;

/// `h2` takes many small DATA frames at once for an attack. Here they are a backlog of answers under too much load, and
/// whoever is behind must not be spared it.
pub(crate) const MANY_SMALL_FRAMES: usize = 1 << 30;

/// A connected socket of either kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

/// A listening socket of either kind.
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// Connects.
pub(crate) async fn connect(address: &Address) -> io::Result<Box<dyn Stream>> {
    match address {
        Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        Address::Tcp(address) => Ok(Box::new(without_delay(TcpStream::connect(address).await?)?)),
    }
}

/// Listens.
pub(crate) async fn listen(address: &Address) -> io::Result<Listener> {
    match address {
        Address::Unix(path) => Ok(Listener::Unix(UnixListener::bind(path)?)),
        Address::Tcp(address) => Ok(Listener::Tcp(TcpListener::bind(address).await?)),
    }
}

impl Listener {
    /// The next connection.
    pub(crate) async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Unix(listener) => Ok(Box::new(listener.accept().await?.0)),
            Self::Tcp(listener) => Ok(Box::new(without_delay(listener.accept().await?.0)?)),
        }
    }
}

fn without_delay(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}
