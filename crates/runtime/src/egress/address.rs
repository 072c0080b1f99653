//! Classifies addresses, and parses networks. Knows nothing of policies.

use super::{FromStr, IpAddr, Ipv4Addr, Ipv6Addr, fmt};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressKind {
    Public,
    /// A service that hands out the credentials of the machine it is asked from.
    Metadata,
    LinkLocal,
    Multicast,
    /// This machine, or no address at all.
    Unspecified,
    Loopback,
    /// Private networks, shared carrier space, and reserved ranges that only a local network would route.
    Private,
}

/// Well-known metadata services in ranges that are otherwise ordinary or private.
const METADATA: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

impl AddressKind {
    pub(super) fn of(address: IpAddr) -> Self {
        if METADATA.contains(&address) {
            return Self::Metadata;
        }
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Public => "a public address",
            Self::Metadata => "the address of a cloud's metadata service",
            Self::LinkLocal => "a link-local address",
            Self::Multicast => "a multicast or broadcast address",
            Self::Unspecified => "not an address of any machine",
            Self::Loopback => "this machine itself",
            Self::Private => "an address of a private network",
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressKind {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (0, ..) => AddressKind::Unspecified,
        (127, ..) => AddressKind::Loopback,
        (169, 254, _) => AddressKind::LinkLocal,
        // 240/4 is reserved and ends with the broadcast address.
        (224.., ..) => AddressKind::Multicast,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => AddressKind::Private,
        (192, 0, 0 | 2) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => AddressKind::Private,
        _ => AddressKind::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressKind {
    let first = address.segments()[0];
    if address.is_unspecified() {
        AddressKind::Unspecified
    } else if address.is_loopback() {
        AddressKind::Loopback
    } else if address.is_multicast() {
        AddressKind::Multicast
    } else if first & 0xffc0 == 0xfe80 {
        AddressKind::LinkLocal
    } else if first & 0xfe00 == 0xfc00
        || first & 0xffc0 == 0xfec0
        || (first == 0x2001 && address.segments()[1] == 0xdb8)
    {
        AddressKind::Private
    } else {
        AddressKind::Public
    }
}

/// Returns the address and the IPv4 addresses embedded in it: mapped, compatible, behind NAT64, 6to4 or Teredo.
pub(super) fn with_embedded(address: IpAddr) -> Vec<IpAddr> {
    let mut all = vec![address];
    let IpAddr::V6(address) = address else { return all };
    let segments = address.segments();
    let pair = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    let last = pair(segments[6], segments[7]);
    match segments {
        // The unspecified address and loopback embed nothing.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => {}
        // The mapped form is the IPv4 address and nothing else.
        [0, 0, 0, 0, 0, 0xffff, ..] => all = vec![last],
        [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, ..] => all.push(last),
        [0x2002, high, low, ..] => all.push(pair(high, low)),
        [0x2001, 0, ..] => all.push(pair(!segments[6], !segments[7])),
        _ => {}
    }
    all
}

/// A network: an address and its prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    address: IpAddr,
    bits: u8,
}

impl Net {
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                own.to_bits() & mask == other.to_bits() & mask
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                own.to_bits() & mask == other.to_bits() & mask
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// Error for a text that is neither an address nor a CIDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANet;

impl FromStr for Net {
    type Err = NotANet;

    fn from_str(text: &str) -> Result<Self, NotANet> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| NotANet)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotANet)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most {
            return Err(NotANet);
        }
        Ok(Self { address, bits })
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}
