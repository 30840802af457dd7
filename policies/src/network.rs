//! Part of a policy about networks: its rules for Landlock and the system call filter, and the parts that they cannot
//! enforce on this host.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hosts::{self, HostRule, Target};
use crate::report::{Layer, LayerReport};
use crate::run_context::BoardAccess;

/// Networks that a run may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Extent of the network that is open.
    pub mode: Mode,
    /// TCP ports, of any host, that may be connected to (mode `ports`).
    pub connect_tcp: BTreeSet<u16>,
    /// TCP ports that may be bound (mode `ports`).
    pub bind_tcp: BTreeSet<u16>,
    /// True if UDP may be used, to any host and port (modes `ports` and `host`).
    pub udp: bool,
    /// Hosts that the proxy connects to (mode `proxy`): to the named port, else to ports 80 and 443. An address outside of
    /// the public internet must be named as an address itself, even for a name that resolves to it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub hosts: BTreeSet<HostRule>,
}

/// Gap without the system call filter: sockets of some families are not in the network namespace (vsock(7)).
const OTHER_SOCKETS: &str =
    "without the system call filter sockets between virtual machines lead out of the run's network";

/// Extent of the network that is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// No network.
    #[default]
    None,
    /// A loopback interface for this run alone.
    Loopback,
    /// The listed TCP ports of any host.
    Ports,
    /// The listed hosts, through a proxy of the supervisor.
    Proxy,
    /// The whole network of the host.
    Host,
}

/// Rules for the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    /// TCP ports that are open; `None` leaves TCP unrestricted.
    pub(crate) tcp: Option<Ports>,
    /// True if an internet stream socket may be made.
    pub(crate) stream: bool,
    /// True if an internet datagram socket may be made.
    pub(crate) datagram: bool,
}

/// The TCP ports that are open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) connect: BTreeSet<u16>,
    pub(crate) bind: BTreeSet<u16>,
}

impl Reach {
    /// Returns the rules that restrict nothing.
    pub(crate) fn everything() -> Self {
        Self { tcp: None, stream: true, datagram: true }
    }
}

impl Network {
    /// Returns true if the run has a network of its own, with a loopback interface alone.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.mode, Mode::Loopback | Mode::Proxy)
    }

    /// Returns true if the policy names a host, with any port.
    pub(crate) fn names(&self, host: &str) -> bool {
        host.parse().is_ok_and(|host| hosts::name(&self.hosts, &host))
    }

    /// Returns true if the proxy of a run may connect to a target. The target is the host that the worker names, or an
    /// address outside of the public internet to which its name resolves.
    pub fn permits(&self, target: &Target) -> bool {
        self.mode == Mode::Proxy && hosts::permit(&self.hosts, target)
    }

    /// Returns the rules for the kernel, the board's port included.
    pub(crate) fn reach(&self, board: &BoardAccess) -> Reach {
        let mut ports = match self.mode {
            Mode::None => Ports::default(),
            Mode::Ports => Ports { connect: self.connect_tcp.clone(), bind: self.bind_tcp.clone() },
            Mode::Loopback | Mode::Proxy => return Reach::everything(),
            Mode::Host => return Reach { tcp: None, stream: true, datagram: self.udp },
        };
        if let BoardAccess::Port(port) = board {
            ports.connect.insert(*port);
        }
        let stream = !ports.connect.is_empty() || !ports.bind.is_empty();
        let datagram = self.mode == Mode::Ports && self.udp;
        Reach { tcp: Some(ports), stream, datagram }
    }

    /// Returns a description of a part of the network that stays open although the policy closes it, on a host with this ABI
    /// of Landlock; none if the policy is enforced.
    pub(crate) fn unenforceable(&self, reach: &Reach, abi: u32, filtered: Filtered) -> Option<&'static str> {
        let is_closed = matches!(self.mode, Mode::None | Mode::Ports);
        match filtered {
            Filtered::No if is_closed => Some("without the system call filter UDP is open to every host"),
            Filtered::Yes if is_closed && reach.stream && abi < 4 => {
                Some("below Landlock ABI 4 every TCP port of every host is open")
            }
            Filtered::No if self.mode == Mode::Proxy => Some(OTHER_SOCKETS),
            Filtered::Yes | Filtered::No => None,
        }
    }

    /// Returns the entry about the network in the report of a run, on a host with this ABI of Landlock.
    pub(crate) fn report(&self, reach: &Reach, abi: u32, filtered: Filtered) -> LayerReport {
        let layer = Layer::Network;
        match self.mode {
            Mode::Host => return LayerReport::absent(layer, "the policy opens the host's network"),
            Mode::Loopback => {
                return LayerReport::enforced_by(layer, "a network namespace with a loopback alone");
            }
            Mode::Proxy => {
                let count = self.hosts.len();
                let hosts = if count == 1 { "host" } else { "hosts" };
                let why = format!(
                    "a network namespace with a loopback alone; its only way out is a proxy to {count} {hosts}"
                );
                return match filtered {
                    Filtered::Yes => LayerReport::enforced_by(layer, why),
                    Filtered::No => LayerReport::partial(layer, OTHER_SOCKETS),
                };
            }
            Mode::None | Mode::Ports => {}
        }
        let mut gaps = Vec::new();
        // Landlock has rules for TCP ports from ABI 4 on.
        let ruled = abi >= 4;
        match filtered {
            Filtered::Yes if !reach.stream && !reach.datagram => return LayerReport::enforced(layer),
            Filtered::Yes if !ruled => {
                gaps.push("TCP ports need Landlock ABI 4: any port is open".to_owned());
            }
            Filtered::Yes => {}
            Filtered::No if ruled => {
                gaps.push("UDP, MPTCP and TCP fast open need the system call filter".to_owned());
            }
            Filtered::No => {
                return LayerReport::absent(layer, "needs Landlock ABI 4 or the system call filter");
            }
        }
        if ruled && reach.stream {
            gaps.push("listen() without bind() takes a port of the kernel's choice".to_owned());
        }
        if reach.datagram {
            gaps.push("UDP is not limited to ports".to_owned());
        }
        LayerReport::unless(layer, &gaps)
    }
}

/// State of the system call filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filtered {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::State;

    #[test]
    fn no_network_and_a_socket_board_need_no_internet_socket() {
        let network = Network::default();
        let reach = network.reach(&BoardAccess::Socket("/s".into()));
        assert!(!reach.stream && !reach.datagram);
        assert_eq!(reach.tcp, Some(Ports::default()));
        assert_eq!(network.report(&reach, 0, Filtered::Yes).state, State::Enforced);
    }

    #[test]
    fn the_boards_port_is_the_only_port() {
        let reach = Network::default().reach(&BoardAccess::Port(4711));
        assert!(reach.stream && !reach.datagram);
        assert_eq!(reach.tcp.unwrap().connect, BTreeSet::from([4711]));
    }

    #[test]
    fn what_would_be_open_instead_of_closed_is_said() {
        let none = Network::default();
        let (socket, port) = (BoardAccess::Socket("/s".into()), BoardAccess::Port(4711));
        let unenforceable =
            |board: &BoardAccess, abi, filtered| none.unenforceable(&none.reach(board), abi, filtered);
        assert_eq!(unenforceable(&socket, 0, Filtered::Yes), None, "no internet socket can be made");
        assert_eq!(unenforceable(&port, 4, Filtered::Yes), None);
        assert!(unenforceable(&port, 3, Filtered::Yes).unwrap().contains("every TCP port"));
        assert!(unenforceable(&socket, 9, Filtered::No).unwrap().contains("UDP"));
        let host = Network { mode: Mode::Host, ..Network::default() };
        assert_eq!(host.unenforceable(&host.reach(&port), 0, Filtered::No), None, "the policy opens it");
        let proxy = Network { mode: Mode::Proxy, ..Network::default() };
        let unenforceable = |filtered| proxy.unenforceable(&proxy.reach(&socket), 0, filtered);
        assert_eq!((unenforceable(Filtered::Yes), unenforceable(Filtered::No)), (None, Some(OTHER_SOCKETS)));
        assert_eq!(proxy.report(&proxy.reach(&socket), 0, Filtered::No).state, State::Partial);
    }

    #[test]
    fn ports_without_landlock_are_partial() {
        let network = Network { mode: Mode::Ports, connect_tcp: [443].into(), ..Network::default() };
        let reach = network.reach(&BoardAccess::None);
        let report = network.report(&reach, 3, Filtered::Yes);
        assert!(report.why.unwrap().contains("ABI 4"));
        assert_eq!(network.report(&reach, 3, Filtered::No).state, State::Absent);
    }

    #[test]
    fn a_proxy_permits_the_hosts_of_its_policy_and_no_other_mode_any() {
        let hosts = BTreeSet::from(["a.example".parse().unwrap()]);
        let target = |text: &str| Target::parse(text, None).unwrap();
        for mode in [Mode::None, Mode::Ports, Mode::Loopback, Mode::Proxy, Mode::Host] {
            let network = Network { mode, hosts: hosts.clone(), ..Network::default() };
            assert_eq!(network.permits(&target("a.example:443")), mode == Mode::Proxy, "{mode:?}");
            assert!(!network.permits(&target("b.example:443")), "{mode:?}");
        }
    }

    #[test]
    fn udp_is_open_only_to_a_policy_of_ports_that_asks_for_it() {
        for (mode, udp, datagram) in
            [(Mode::None, true, false), (Mode::Ports, true, true), (Mode::Ports, false, false)]
        {
            let network = Network { mode, udp, ..Network::default() };
            assert_eq!(network.reach(&BoardAccess::None).datagram, datagram, "{mode:?}");
        }
    }

    #[test]
    fn a_report_of_ports_says_what_stays_open() {
        let tcp = Network { mode: Mode::Ports, connect_tcp: [443].into(), ..Network::default() };
        let udp = Network { mode: Mode::Ports, udp: true, ..Network::default() };
        let (any, listen, datagram) = ("any port is open", "listen() without bind()", "UDP is not limited");
        let unfiltered = "UDP, MPTCP and TCP fast open need";
        for (network, abi, filtered, gaps) in [
            (&tcp, 3, Filtered::Yes, &[any][..]),
            (&tcp, 4, Filtered::Yes, &[listen]),
            (&udp, 3, Filtered::Yes, &[any, datagram]),
            (&udp, 4, Filtered::Yes, &[datagram]),
            (&tcp, 4, Filtered::No, &[unfiltered, listen]),
        ] {
            let report = network.report(&network.reach(&BoardAccess::None), abi, filtered);
            let why = report.why.unwrap();
            let reasons: Vec<&str> = why.split("; ").collect();
            assert_eq!((report.state, reasons.len()), (State::Partial, gaps.len()), "{why}");
            assert!(gaps.iter().all(|gap| why.contains(gap)), "{abi} {filtered:?}: {why}");
        }
    }
}
