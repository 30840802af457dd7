//! Environment of a run, built from an allow-list. A run inherits no variable that its policy does not name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::broker::NO_KEY;
use crate::egress::PROXY_PORT;
use crate::environment::{NO_PROXY, Name, PROXY};
use crate::policy::Policy;
use crate::run_context::RunContext;

/// Directories in the `PATH` of a run whose policy does not set it.
pub const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Variables that `LC_*` stands for: the categories of glibc in locale(7), and `LC_ALL`.
const LOCALE: &[&str] = &[
    "LC_ALL",
    "LC_ADDRESS",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
];

/// Names of the loopback interface, which a run with a proxy reaches without the proxy.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl Policy {
    /// Returns the policy's part of `PATH`. In a run, the caller's directories and the toolchains' directories come before
    /// it.
    pub fn path(&self) -> &str {
        self.env.set.get("PATH").map_or(USUAL_PATH, String::as_str)
    }

    /// Returns the environment of a run. Later sources replace earlier ones: `usual`, the variables of the toolchains, the
    /// variables of `from` that the policy passes on, the variables that the policy sets, `set`, and the variables of the
    /// proxy and its brokers. `PATH` has `programs` first, then the directories of the toolchains, then the `PATH` of those
    /// sources or the usual one.
    pub fn environment(
        &self,
        from: impl Fn(&str) -> Option<OsString>,
        context: &RunContext,
        programs: &[PathBuf],
        usual: &BTreeMap<String, String>,
        set: BTreeMap<String, String>,
    ) -> BTreeMap<String, OsString> {
        let tools = self.filesystem.toolchain_environment(context);
        let mut all: BTreeMap<String, OsString> =
            usual.iter().map(|(name, value)| (name.clone(), value.into())).collect();
        all.extend(tools.set);
        for Name(name) in &self.env.pass {
            let names = if name == "LC_*" { LOCALE.to_vec() } else { vec![name.as_str()] };
            all.extend(names.into_iter().filter_map(|name| Some((name.to_owned(), from(name)?))));
        }
        let configured = self.env.set.clone().into_iter().chain(set);
        all.extend(configured.map(|(name, value)| (name, OsString::from(value))));
        all.extend(self.proxy_environment());
        let mut path = OsString::new();
        for part in programs.iter().chain(&tools.path) {
            path.push(part);
            path.push(":");
        }
        path.push(all.remove("PATH").unwrap_or_else(|| USUAL_PATH.into()));
        all.insert("PATH".to_owned(), path);
        all
    }

    /// Returns the variables by which programs find the run's proxy and its brokers; none for a run without a proxy. Programs
    /// differ in the case of the names, so each is set in both.
    fn proxy_environment(&self) -> BTreeMap<String, OsString> {
        if !self.has_proxy() {
            return BTreeMap::new();
        }
        // The run has a loopback interface of its own. A loopback address that the policy names means this host's
        // interface, which only the proxy reaches, so such an address is no exception from the proxy. The proxy's own
        // address always is one; few programs understand an entry with a port.
        let proxy = format!("127.0.0.1:{PROXY_PORT}");
        let mut reserved: Vec<&str> = OWN.into_iter().filter(|own| !self.network.names(own)).collect();
        if !reserved.contains(&"127.0.0.1") {
            reserved.insert(0, &proxy);
        }
        let of_brokers = self.broker_environment().into_iter().map(|(name, value)| (name, value.into()));
        let url = format!("http://{proxy}");
        let all = PROXY.into_iter().map(|name| (name, url.clone())).chain([(NO_PROXY, reserved.join(","))]);
        all.flat_map(|(name, value)| {
            [name.to_owned(), name.to_ascii_lowercase()].map(|name| (name, OsString::from(&value)))
        })
        .chain(of_brokers)
        .collect()
    }

    /// Returns the variables by which programs find the brokers: the address of each, and a placeholder for its key.
    pub(crate) fn broker_environment(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for broker in self.broker.iter().filter(|_| self.has_proxy()) {
            all.extend(broker.base_url_env.iter().map(|name| (name.clone(), broker.base_url())));
            all.extend(broker.key_env.iter().map(|name| (name.clone(), NO_KEY.to_owned())));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn caller(name: &str) -> Option<OsString> {
        matches!(name, "TERM" | "LC_TIME" | "FAKE_API_KEY" | "PATH")
            .then(|| OsString::from(format!("{name}-value")))
    }

    #[test]
    fn only_listed_variables_pass_and_the_run_has_the_last_word() {
        let policy = Policy::builtin("default").unwrap();
        let context = crate::run_context::bare(Path::new("/ws"));
        let set = BTreeMap::from([("LC_TIME".to_owned(), "mine".to_owned())]);
        let usual = BTreeMap::from([("TERM".to_owned(), "dumb".to_owned())]);
        let env = policy.environment(caller, &context, &[PathBuf::from("/bin-of-ours")], &usual, set);
        let names: Vec<&str> = env.keys().map(String::as_str).collect();
        assert_eq!(names, ["LC_TIME", "PATH", "TERM"]);
        assert_eq!((env["LC_TIME"].to_str(), env["TERM"].to_str()), (Some("mine"), Some("TERM-value")));
    }

    /// The variables of a run whose policy has these lines.
    fn of_a_run(lines: &str, context: &RunContext) -> BTreeMap<String, OsString> {
        let text = format!("version = 1\n{lines}");
        let policy = Policy::from_toml(&text, Path::new("p.toml")).unwrap();
        policy.environment(caller, context, &[PathBuf::from("/sv/bin")], &BTreeMap::new(), BTreeMap::new())
    }

    #[test]
    fn the_policys_path_is_kept_behind_our_own_programs_and_the_toolchains() {
        let context = RunContext {
            toolchain_home: Some("/home/ann".into()),
            ..crate::run_context::bare(Path::new("/ws"))
        };
        let path = |text: &str| of_a_run(text, &context)["PATH"].clone();
        assert_eq!(path(""), "/sv/bin:/usr/local/bin:/usr/bin:/bin");
        assert_eq!(path("[env]\nset = { PATH = '/mine' }"), "/sv/bin:/mine");
        assert_eq!(path("[env]\npass = ['PATH']"), "/sv/bin:PATH-value");
        let own =
            |text: &str| Policy::from_toml(&format!("version = 1\n{text}"), Path::new("p.toml")).unwrap();
        assert_eq!(own("").path(), "/usr/local/bin:/usr/bin:/bin");
        assert_eq!(own("[env]\nset = { PATH = '/mine' }").path(), "/mine");
        assert_eq!(
            path("[filesystem]\ntoolchains = ['cargo']\n[env]\nset = { PATH = '/mine' }"),
            "/sv/bin:/home/ann/.cargo/bin:/mine"
        );
    }

    #[test]
    fn a_run_with_a_proxy_has_the_variables_of_both_cases_and_reaches_its_own_loopback_without_it() {
        let context = crate::run_context::bare(Path::new("/ws"));
        let env = |text: &str| of_a_run(text, &context);
        let own = env("[network]\nmode = 'proxy'");
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            for name in [name.to_owned(), name.to_lowercase()] {
                assert_eq!(own[&name], "http://127.0.0.1:3128", "{name}");
            }
        }
        assert_eq!(
            (&own["NO_PROXY"], &own["no_proxy"]),
            (&"localhost,127.0.0.1,::1".into(), &own["NO_PROXY"])
        );
        // The host's loopback interface, where the policy names it.
        let hosts = env("[network]\nmode = 'proxy'\nhosts = ['127.0.0.1:8080', 'localhost:9']");
        assert_eq!(hosts["NO_PROXY"], "127.0.0.1:3128,::1");
        assert!(!env("[network]\nmode = 'host'").contains_key("HTTP_PROXY"));
    }
}
