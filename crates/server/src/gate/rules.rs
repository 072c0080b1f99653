//! Safety rules for listening beyond this machine.

use std::net::SocketAddr;

use crate::Error;

/// Checks whether listening on this address is safe enough. Loopback addresses always are.
pub(crate) fn check(address: SocketAddr, default_password: bool, tls: bool, insecure: bool) -> Result<(), Error> {
    let refuse = |why, help| Err(Error::Unsafe { address, why, help });
    if insecure || address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    if default_password {
        return refuse(
            "the admin still has the password everybody knows, and others can reach this address",
            "give --admin-token-file FILE, or start on 127.0.0.1 and change it with `octoflow token set-admin`",
        );
    }
    if !tls {
        return refuse(
            "tokens would travel in clear text to an address that others can reach",
            "give --tls-cert and --tls-key, or --tls for a certificate made here",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_comes_in_with_the_known_password_or_without_tls() {
        let check = |address: &str, default, tls, insecure| check(address.parse().unwrap(), default, tls, insecure);
        for inside in ["127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(check(inside, true, false, false).is_ok(), "{inside}");
        }
        for outside in ["0.0.0.0:1", "[::]:1", "192.0.2.7:1"] {
            assert!(check(outside, true, true, false).unwrap_err().to_string().contains("password"), "{outside}");
            assert!(check(outside, false, false, false).unwrap_err().to_string().contains("--tls"), "{outside}");
            assert!(check(outside, false, true, false).is_ok(), "{outside}");
            assert!(check(outside, true, false, true).is_ok(), "{outside}");
        }
    }
}
