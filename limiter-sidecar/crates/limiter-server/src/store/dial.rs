// SPDX-License-Identifier: Apache-2.0
//! Opens the stream to a server, as its URL says: TCP, TLS over it, or a Unix socket. Says nothing on it.

use std::io;
use std::sync::Arc;

use futures_util::future::select_ok;
use redis::{ConnectionAddr, ErrorKind, RedisError};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::pipe::Stream;

/// Connects.
///
/// # Errors
/// Those of the system and of TLS.
pub(super) async fn dial(address: &ConnectionAddr) -> Result<Box<dyn Stream>, RedisError> {
    match address {
        ConnectionAddr::Tcp(host, port) => Ok(Box::new(tcp(host, *port).await?)),
        ConnectionAddr::TcpTls { host, port, insecure: false, .. } => {
            let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
            let connector = TlsConnector::from(Arc::new(trusting()?));
            Ok(Box::new(connector.connect(name, tcp(host, *port).await?).await?))
        }
        ConnectionAddr::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        _ => Err(RedisError::from((ErrorKind::InvalidClientConfig, "a server that nobody verifies is not asked"))),
    }
}

/// To all addresses of the host at once: the first that answers is taken.
async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses: Vec<_> =
        lookup_host((host, port)).await?.map(|address| Box::pin(TcpStream::connect(address))).collect();
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    let (stream, _others) = select_ok(addresses).await?;
    // Questions are small and waited for; Nagle's algorithm would hold them back.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Trusts whom the system trusts, read anew for each connection, so that a replaced authority is seen.
fn trusting() -> Result<ClientConfig, RedisError> {
    let mut found = rustls_native_certs::load_native_certs();
    if let Some(error) = found.errors.pop() {
        return Err(io::Error::other(error).into());
    }
    let mut roots = RootCertStore::empty();
    for certificate in found.certs {
        roots.add(certificate).map_err(io::Error::other)?;
    }
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}
