//! Classifies addresses: public on the internet, or local, private, reserved.
//!
//! A name may resolve to any address: its owner can point it at the host's loopback, at a neighbour, or at the
//! metadata service that gives a cloud machine its credentials. So an address that is not public is connected to only
//! if the policy names it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that are not public (RFC 6890 and IANA's registry of special-purpose addresses).
const SPECIAL_V4: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    // Link-local, including the metadata service of cloud machines, 169.254.169.254.
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 31, 196, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    // Multicast, and the reserved block behind it with the broadcast address.
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Blocks within the IPv6 unicast range `2000::/3` that are not public, or that lead to IPv4 addresses.
const SPECIAL_V6: [([u16; 2], u32); 4] = [
    // Teredo and other protocols; documentation; 6to4; documentation again.
    ([0x2001, 0x0000], 23),
    ([0x2001, 0x0db8], 32),
    ([0x2002, 0x0000], 16),
    ([0x3fff, 0x0000], 20),
];

/// Returns true if an address is public.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|(first, bits)| begins(address, *first, *bits)),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn begins(address: Ipv4Addr, first: [u8; 4], bits: u32) -> bool {
    (address.to_bits() ^ Ipv4Addr::from(first).to_bits()) >> (32 - bits) == 0
}

/// True for public IPv6 addresses. Everything outside `2000::/3` is local, multicast, mapped from IPv4, or
/// unassigned.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let start = u32::from(first) << 16 | u32::from(second);
    let special = SPECIAL_V6.iter().any(|([one, two], bits)| {
        let address = u32::from(*one) << 16 | u32::from(*two);
        (start ^ address) >> (32 - bits) == 0
    });
    first >> 13 == 1 && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_anybody_may_have_are_public() {
        for (address, expected) in [
            ("1.1.1.1", true),
            ("8.8.8.8", true),
            ("100.63.255.255", true),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("100.128.0.1", true),
            ("0.0.0.0", false),
            ("10.0.0.1", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("169.254.169.254", false),
            ("172.15.0.1", true),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("192.0.0.170", false),
            ("198.18.0.1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700::1111", true),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:8.8.8.8", true),
            ("::127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("2002:7f00:1::", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("2001:4860:4860::8888", true),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("ff02::1", false),
            ("100::1", false),
            ("3fff::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }
}
