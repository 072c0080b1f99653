//! The server's certificate: given in files, or generated once and kept in the data directory.

use std::{
    fs,
    io::{self, Write},
    net::IpAddr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio_rustls::TlsAcceptor;

use crate::{Error, config::Tls, gate::access::digest};

pub(crate) struct Ready {
    pub acceptor: TlsAcceptor,
    /// SHA-256 fingerprint of the first certificate, in hex.
    pub fingerprint: String,
    /// Path of a generated certificate; clients need it because it is self-signed.
    pub made: Option<PathBuf>,
    /// DNS names of the certificate.
    pub names: Vec<String>,
}

pub(crate) fn ready(tls: &Tls, data_dir: &Path, listen: IpAddr) -> Result<Ready, Error> {
    let (certificate, key, made) = match tls {
        Tls::Given { certificate, key } => (certificate.clone(), key.clone(), None),
        Tls::Generated => {
            let (certificate, key) = generated(data_dir, listen)?;
            (certificate.clone(), key, Some(certificate))
        }
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&certificate)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(&certificate, &error))?;
    let Some(first) = chain.first() else {
        return Err(Error::Unusable { path: certificate, why: "there is no certificate in it".to_owned() });
    };
    let names = webpki::EndEntityCert::try_from(first).map_err(|error| unusable(&certificate, &error))?;
    let names = names.valid_dns_names().map(str::to_owned).collect();
    let fingerprint = digest(first).iter().map(|byte| format!("{byte:02x}")).collect();
    let secret = PrivateKeyDer::from_pem_file(&key).map_err(|error| unusable(&key, &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Certificate(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| unusable(&key, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Ready { acceptor: TlsAcceptor::from(Arc::new(config)), fingerprint, made, names })
}

/// Returns certificate and key, generating them unless they exist for these names.
fn generated(data_dir: &Path, listen: IpAddr) -> Result<(PathBuf, PathBuf), Error> {
    let folder = data_dir.join("tls");
    let (certificate, key, list) = (folder.join("cert.pem"), folder.join("key.pem"), folder.join("names"));
    let names = names(listen);
    let known = fs::read_to_string(&list).unwrap_or_default();
    let covered = names.iter().all(|name| known.lines().any(|line| line == name));
    if covered && certificate.is_file() && key.is_file() {
        return Ok((certificate, key));
    }
    let failed = |error: rcgen::Error| Error::Certificate(error.to_string());
    let pair = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::new(names.clone()).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "octoflow");
    let signed = params.self_signed(&pair).map_err(failed)?;
    fs::create_dir_all(&folder).map_err(|source| Error::File { doing: "make", path: folder.clone(), source })?;
    // The list is written last: without it everything is generated again.
    for (path, text) in [(&key, pair.serialize_pem()), (&certificate, signed.pem()), (&list, names.join("\n"))] {
        private(path, text.as_bytes()).map_err(|source| Error::File { doing: "write", path: path.clone(), source })?;
    }
    Ok((certificate, key))
}

/// Returns the names under which clients may address this server.
fn names(listen: IpAddr) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    if !host.is_empty() && host.bytes().all(is_name) {
        names.push(host.to_owned());
    }
    if !listen.is_unspecified() {
        names.push(listen.to_canonical().to_string());
    }
    names.dedup();
    names
}

/// Writes a file that only its owner may read.
fn private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn unusable(path: &Path, error: &dyn std::error::Error) -> Error {
    Error::Unusable { path: path.to_owned(), why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_made_certificate_is_private_and_used_again_until_the_address_changes() {
        let dir = tempfile::tempdir().unwrap();
        let print = |address: &str| ready(&Tls::Generated, dir.path(), address.parse().unwrap()).unwrap().fingerprint;
        let first = print("127.0.0.1");
        assert_eq!(first.len(), 64);
        assert_eq!(print("127.0.0.1"), first);
        let mode = fs::metadata(dir.path().join("tls/key.pem")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_ne!(print("192.0.2.7"), first);
    }

    #[test]
    fn files_that_hold_no_certificate_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = (dir.path().join("c.pem"), dir.path().join("k.pem"));
        fs::write(&certificate, "hello").unwrap();
        fs::write(&key, "hello").unwrap();
        let given = Tls::Given { certificate: certificate.clone(), key };
        let error = ready(&given, dir.path(), "127.0.0.1".parse().unwrap()).err().unwrap().to_string();
        assert!(error.contains(certificate.to_str().unwrap()), "{error}");
    }
}
