//! One round of a probe: every address must answer. It stops at the first one that does not, so that a round is short
//! however many there are. Every connection goes through the egress guard, which allows the addresses of the request: the
//! engine has worked them out from the pods it runs.

use std::net::{SocketAddr, TcpStream};

use octoflow_model::request::{ProbeRequest, ProbedPath};
use ureq::{Agent, http};

use crate::egress::{self, Policy};

/// Tests all addresses in turn; on error returns the first one that failed and why.
pub(super) fn round(policy: &Policy, request: &ProbeRequest) -> Result<(), String> {
    let policy = policy.clone().allow_pods(request.addresses.iter().filter_map(|address| address.parse().ok()));
    let agent = request.http.as_ref().map(|asked| (egress::agent(&policy), asked));
    for address in &request.addresses {
        match &agent {
            Some((agent, asked)) => get(agent, address, asked, request)?,
            None => connect(&policy, address, request)?,
        }
    }
    Ok(())
}

fn connect(policy: &Policy, address: &str, request: &ProbeRequest) -> Result<(), String> {
    let place: SocketAddr = address.parse().map_err(|_| format!("{address} is not an address with a port"))?;
    policy.check_at(&place.ip().to_string(), place).map_err(|refused| refused.to_string())?;
    let connected = TcpStream::connect_timeout(&place, request.timeout);
    connected.map(drop).map_err(|error| format!("{address} does not accept connections: {error}"))
}

/// Any 2xx and 3xx is a success; redirects are not followed.
fn get(agent: &Agent, address: &str, asked: &ProbedPath, request: &ProbeRequest) -> Result<(), String> {
    let url = format!("http://{address}{}", asked.path);
    let mut head = http::Request::get(&url);
    if let Some((name, value)) = &asked.header {
        head = head.header(name, value);
    }
    let built = head.body(()).map_err(|error| format!("the request to {url} cannot be sent: {error}"))?;
    let built = agent.configure_request(built).timeout_global(Some(request.timeout)).http_status_as_error(false);
    match agent.run(built.build()) {
        Ok(response) if (200..400).contains(&response.status().as_u16()) => Ok(()),
        Ok(response) => Err(format!("{url} answers with status {}", response.status().as_u16())),
        Err(error) => Err(match (egress::refusal(&error), &error) {
            (Some(refused), _) => refused.to_string(),
            (None, ureq::Error::Timeout(_)) => format!("{url} does not answer in time"),
            (None, error) => format!("{url} does not answer: {error}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread,
        time::Duration,
    };

    use super::*;

    fn probe(address: String, path: Option<&str>) -> ProbeRequest {
        let header = Some(("X-Probe".to_owned(), "yes".to_owned()));
        ProbeRequest {
            addresses: vec![address],
            http: path.map(|path| ProbedPath { path: path.to_owned(), header }),
            every: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
        }
    }

    /// A server that answers with a status by the path, if the header is there.
    fn server() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut bytes = [0; 2048];
                let read = stream.read(&mut bytes).unwrap_or(0);
                let text = String::from_utf8_lossy(&bytes[..read]).to_lowercase();
                let ok = text.starts_with("get /good") && text.contains("x-probe: yes");
                let status = if ok { "302 Found\r\nLocation: /elsewhere" } else { "503 No" };
                let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        address
    }

    #[test]
    fn a_round_holds_only_if_every_address_answers() {
        let (address, policy) = (server(), Policy::local());
        assert_eq!(round(&policy, &probe(address.clone(), Some("/good"))), Ok(()));
        assert_eq!(round(&policy, &probe(address.clone(), None)), Ok(()));
        let why = round(&policy, &probe(address.clone(), Some("/bad"))).unwrap_err();
        assert!(why.contains("status 503"), "{why}");
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let mut both = probe(address, None);
        both.addresses.push(closed.clone());
        assert!(round(&policy, &both).unwrap_err().contains(&closed));
    }

    #[test]
    fn pods_are_reached_under_the_policy_of_a_server_and_nobody_else() {
        let (address, policy) = (server(), Policy::strict());
        for path in [None, Some("/good")] {
            assert_eq!(round(&policy, &probe(address.clone(), path)), Ok(()), "a pod at its port");
            // No pod has such an address, whoever asks.
            for other in ["10.0.0.1:80", "169.254.169.254:80"] {
                let why = round(&policy, &probe(other.to_owned(), path)).unwrap_err();
                assert!(why.contains("not allowed"), "{why}");
            }
        }
        let pods = policy.allow_pods([address.parse().unwrap()]);
        assert!(pods.check_at("127.0.0.1", "127.0.0.1:1".parse().unwrap()).is_err(), "at another port");
        assert!(pods.check("127.0.0.1", "127.0.0.1".parse().unwrap()).is_err(), "without a port");
    }
}
