//! Requirements of a lane beside its program: egress to its service, and its secrets.

use std::time::Duration;

use kernel::{Finding, FindingCode, Profile};
use policies::{Broker, Host, Mode, Policy, SecretStores};

use base::paths::Root;
use host::retained::RetainedHome;
use net::proxy::unnamed_address;
use setup::lanes::Lane;

/// Checks that the policy of a lane permits its hosts.
pub(super) async fn network(lane: &Lane, name: &str, policy: &Policy, stores: &SecretStores) -> Finding {
    let named = |hosts: &mut dyn Iterator<Item = String>| hosts.collect::<Vec<_>>().join(", ");
    let lane_hosts = named(&mut lane.additions.hosts.iter().map(ToString::to_string));
    match policy.network.mode {
        Mode::None | Mode::Loopback => {
            let check = Finding::warning(
                FindingCode::Network,
                format!("the policy {name} has no way to other hosts"),
            );
            check.advice("an agent that asks a service needs a policy such as `agent`")
        }
        Mode::Proxy => {
            let policy = policy.with(&lane.additions, stores);
            let hosts = &policy.network.hosts;
            if hosts.is_empty() && policy.broker.is_empty() {
                let detail =
                    format!("neither the lane nor the policy {name} names a host, so none is reached");
                return Finding::warning(FindingCode::Network, detail).advice(
                    "add those of its service: hosts = [\"api.example.org:443\"] in the file of the lane",
                );
            }
            if let Some(check) = private_service(lane, &policy).await {
                return check;
            }
            let hosts = named(&mut hosts.iter().map(ToString::to_string));
            Finding::ok(FindingCode::Network, format!("through the proxy to {hosts}"))
        }
        mode @ (Mode::Ports | Mode::Host) => {
            let word = format!("{mode:?}").to_lowercase();
            let check = Finding::ok(FindingCode::Network, format!("{word}, to every host"));
            if lane_hosts.is_empty() {
                return check;
            }
            check.advice(format!(
                "under a policy with a proxy, such as `agent`, it reaches {lane_hosts} alone"
            ))
        }
    }
}

/// Time limit of the look-up of a service's name.
const LOOKUP: Duration = Duration::from_secs(5);

/// Warns of a service whose name resolves to a private address, to which the proxy connects only if the policy names
/// it.
async fn private_service(lane: &Lane, policy: &Policy) -> Option<Finding> {
    let target = lane.service_target()?;
    let Host::Name(name) = &target.host else { return None };
    let found = tokio::time::timeout(LOOKUP, tokio::net::lookup_host((name.as_str(), target.port))).await;
    let found = found.ok()?.ok()?;
    let named = unnamed_address(policy, &target, found.map(|address| address.ip()))?;
    let detail =
        format!("{target} is {}, which is not an address of the internet: the proxy refuses it", named.host);
    if named.is_own_proxy() {
        let hint =
            format!("let the service listen at another port: in each run {named} is the proxy of the run");
        return Some(Finding::warning(FindingCode::Network, detail).advice(hint));
    }
    let others =
        lane.additions.hosts.iter().map(ToString::to_string).filter(|host| *host != target.to_string());
    let all: Vec<String> = others.chain([named.to_string()]).collect();
    let hint = format!("add the address to the file of the lane, before its tables: hosts = {all:?}");
    Some(Finding::warning(FindingCode::Network, detail).advice(hint))
}

/// Checks that its secrets can be read, one check each.
pub(super) fn secrets(lane: &Lane, stores: &SecretStores) -> Vec<Finding> {
    let read = |(variable, secret): (&String, &policies::Secret)| {
        let place = secret.source_name(stores);
        match secret.fetch(variable, stores) {
            Ok(_) => Finding::ok(FindingCode::Secret, format!("{variable}, from {place}")),
            Err(error) => Finding::error(FindingCode::Secret, error.to_string()).advice(format!(
                "write the value into {place}: a file of root or the daemon's user, with mode 0600"
            )),
        }
    };
    lane.additions.secrets.iter().map(read).collect()
}

/// Checks that its brokers have their secrets, one check each.
pub(super) fn brokers(lane: &Lane, name: &str, policy: &Policy, stores: &SecretStores) -> Vec<Finding> {
    let hint = |broker: &Broker| {
        let place = broker.secret.source_name(stores);
        format!("write the value into {place}: a file of root or the daemon's user, with mode 0600")
    };
    let look = |broker: &Broker| {
        let (what, place) =
            (format!("{} of {}", broker.header, broker.host), broker.secret.source_name(stores));
        if !policy.has_proxy() {
            let detail = format!("none for {what}: the policy {name} has no proxy");
            return Finding::warning(FindingCode::Broker, detail).advice("the policy `agent` has one");
        }
        if broker.optional && !broker.secret.is_there(stores) {
            let detail =
                format!("none for {what}: {place} is missing, so the program needs a login of its own");
            return Finding::warning(FindingCode::Broker, detail).advice(hint(broker));
        }
        match broker.secret.fetch(&format!("the broker of {}", broker.host), stores) {
            Ok(_) => Finding::ok(FindingCode::Broker, format!("{what}, from {place}, at {}", broker.url())),
            Err(error) => Finding::error(FindingCode::Broker, error.to_string()).advice(hint(broker)),
        }
    };
    lane.additions.brokers.iter().map(look).collect()
}

/// Checks that a login is stored for the lane, if its program has one and uses no key.
pub(super) fn login(lane: &Lane, name: &Profile, root: &Root) -> Option<Finding> {
    let stores = root.secret_stores();
    let has_key = lane.additions.brokers.iter().any(|broker| broker.secret.is_there(&stores))
        || !lane.additions.secrets.is_empty();
    let kept: Vec<String> = RetainedHome::all_of(root, name)
        .into_iter()
        .filter(|home| !home.modification_times(lane.kept_files()).is_empty())
        .map(|home| home.dir().display().to_string())
        .collect();
    if !kept.is_empty() {
        return Some(Finding::ok(FindingCode::Login, format!("kept in {}", kept.join(", "))));
    }
    (lane.has_login() && !has_key).then(|| {
        let check = Finding::warning(FindingCode::Login, "the lane has neither a stored login nor a key");
        check.advice(format!("supervisor login {name}; a profile of the lane may have a login of its own"))
    })
}
