//! The programs of agents: where they are installed, and how each is pointed at a provider on loopback, as an operator would do it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

use crate::brokers::provider::written;
use crate::harness::{Fleet, skip};

/// The program of a built-in lane.
#[expect(clippy::struct_excessive_bools, reason = "each says something else of a program")]
#[derive(Debug)]
pub(super) struct Program {
    /// The lane, and the program.
    pub(super) lane: &'static str,
    model: &'static str,
    /// The variable that has its key.
    key: &'static str,
    /// A variable that says where its provider is, with `{port}` in its value.
    env: Option<(&'static str, &'static str)>,
    /// A file in its home that says where its provider is.
    home: Option<(&'static str, &'static str)>,
    /// A setting in its command that says where its provider is, and the file of the built-in lane whose command that is.
    words: Option<(&'static str, &'static str)>,
    /// Addition to the file of a lane so that it takes messages during work; none for the built-in lane.
    session: Option<&'static str>,
    /// True if it reads a message in the middle of a turn; otherwise it reads messages at the end of a turn.
    pub(super) hears_at_once: bool,
    /// True if its output shows that its login is refused.
    pub(super) tells_login: bool,
    /// True if its output shows that its service refuses it until a time.
    pub(super) tells_limits: bool,
    /// True if its output shows a failure of the service.
    pub(super) tells_outages: bool,
    /// True if its output shows a refusal without a time.
    pub(super) tells_refusals: bool,
    /// True if its output shows its use of tokens.
    pub(super) tells_usage: bool,
}

pub(super) const CLAUDE: Program = Program {
    lane: "claude",
    model: "claude-sonnet-4-5",
    key: "ANTHROPIC_API_KEY",
    env: Some(("ANTHROPIC_BASE_URL", "http://127.0.0.1:{port}")),
    home: None,
    words: None,
    session: None,
    hears_at_once: true,
    tells_login: true,
    tells_limits: true,
    tells_outages: true,
    tells_refusals: true,
    tells_usage: true,
};

pub(super) const CODEX: Program = Program {
    lane: "codex",
    model: "gpt-5.1",
    key: "CODEX_API_KEY",
    env: None,
    home: None,
    words: Some((
        "openai_base_url=\"http://127.0.0.1:{port}/v1\"",
        include_str!("../../supervisor/setup/src/lanes/builtin/codex.toml"),
    )),
    session: None,
    hears_at_once: true,
    tells_login: true,
    tells_limits: true,
    tells_outages: true,
    tells_refusals: true,
    tells_usage: true,
};

/// Codex as `docs/lanes/codex.md` has it for messages while it works.
pub(super) const CODEX_SESSION: Program = Program {
    words: Some(("openai_base_url=\"http://127.0.0.1:{port}/v1\"", SESSION_OF_CODEX)),
    session: Some(SESSION_OF_CODEX),
    ..CODEX
};

const SESSION_OF_CODEX: &str = r#"
argv = [
    "codex", "app-server", "-c", "sandbox_mode=\"danger-full-access\"", "-c", "approval_policy=\"never\"",
    "-c", "{tools}", ["-c", "model={model}"],
]
session = "app-server"
stdout = "codex-app-server"
"#;

pub(super) const GEMINI: Program = Program {
    lane: "gemini",
    model: "gemini-2.5-flash",
    key: "GEMINI_API_KEY",
    env: Some(("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:{port}")),
    home: None,
    words: None,
    session: None,
    hears_at_once: true,
    tells_login: true,
    tells_limits: true,
    tells_outages: true,
    tells_refusals: true,
    tells_usage: true,
};

/// Gemini CLI as `docs/lanes/gemini.md` has it for messages while it works.
pub(super) const GEMINI_SESSION: Program = Program {
    session: Some(
        r#"
argv = ["gemini", "--experimental-acp", "--approval-mode", "yolo", "--skip-trust", ["-m", "{model}"]]
session = "acp"
stdout = "acp"
"#,
    ),
    hears_at_once: false,
    tells_usage: false,
    ..GEMINI
};

pub(super) const OPENCODE: Program = Program {
    lane: "opencode",
    model: "anthropic/claude-sonnet-4-5",
    key: "ANTHROPIC_API_KEY",
    env: None,
    home: Some((
        ".config/opencode/opencode.json",
        r#"{"provider": {"anthropic": {"options": {"baseURL": "http://127.0.0.1:{port}/v1"}}}}"#,
    )),
    words: None,
    session: None,
    hears_at_once: true,
    // It asks again and again, and writes nothing.
    tells_login: true,
    tells_limits: false,
    tells_outages: false,
    tells_refusals: false,
    tells_usage: true,
};

pub(super) const HERMES: Program = Program {
    lane: "hermes",
    model: "scripted",
    key: "OPENAI_API_KEY",
    env: None,
    home: Some((
        ".hermes/config.yaml",
        "mcp_servers: {tools}\nmodel:\n  default: scripted\n  provider: custom\n  base_url: http://127.0.0.1:{port}/v1\n",
    )),
    words: None,
    session: None,
    hears_at_once: true,
    tells_login: true,
    // It waits until the time that the service names, and writes nothing.
    tells_limits: false,
    tells_outages: true,
    tells_refusals: true,
    tells_usage: true,
};

/// The value of every key. It is none.
const KEY: &str = "sk-dummy-of-a-test-0000";

/// Directory into which `tests/agents/install` puts programs.
fn installed() -> PathBuf {
    let named = std::env::var_os("SUPERVISOR_TEST_AGENTS").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/agents"))
}

impl Program {
    /// Returns true if it calls a hook of its configuration at the end of a turn.
    pub(super) fn has_hook(&self) -> bool {
        // The app server of Codex has no option to trust it.
        let is_app_server = self.lane == CODEX.lane && self.session.is_some();
        [CLAUDE.lane, CODEX.lane, GEMINI.lane].contains(&self.lane) && !is_app_server
    }

    /// The directories that its lane names as `install`: none, with a word about it, where it is not installed.
    fn install(&self) -> Option<Vec<PathBuf>> {
        let wanted = std::env::var("SUPERVISOR_TEST_LANES");
        if wanted.is_ok_and(|lanes| !lanes.split(' ').any(|lane| lane == self.lane)) {
            skip(&format!("{} itself: tests/run --lanes {} plays it", self.lane, self.lane));
            return None;
        }
        let mut dirs = Vec::new();
        if let Ok(text) = fs::read_to_string(installed().join(self.lane).join("install")) {
            dirs.extend(text.lines().map(PathBuf::from));
        }
        if dirs.is_empty() {
            skip(&format!("{} itself: tests/run --lanes {} installs it", self.lane, self.lane));
            return None;
        }
        Some(dirs)
    }

    /// A root with the lane of this program, whose provider is at a port, without a daemon. None where this host lacks something.
    pub(super) fn fleet(&self, port: u16, idle_limit: &str) -> Option<Fleet> {
        let install = self.install()?;
        let fleet = Fleet::offline();
        let key = fleet.home().join("key");
        fs::write(&key, KEY).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        fleet.give(&key);
        // The lane of an operator whose provider is somewhere else: the rest is as it is built in, with its policy and its proxy.
        let texts = |list: &[String]| Value::from(list.iter().cloned().map(Value::from).collect::<Vec<_>>());
        let port = port.to_string();
        let install: Vec<String> = install.iter().map(|dir| dir.display().to_string()).collect();
        let mut lane = Table::from_iter([
            ("extends".to_owned(), self.lane.into()),
            ("model".to_owned(), self.model.into()),
            ("idle_limit".to_owned(), idle_limit.into()),
            ("install".to_owned(), texts(&install)),
            ("hosts".to_owned(), texts(&[format!("127.0.0.1:{port}")])),
        ]);
        if let Some(text) = self.session {
            lane.extend(toml::from_str::<Table>(text).unwrap());
        }
        let mut add = |table: &str, name: &str, value: Value| {
            let table = lane.entry(table).or_insert_with(|| Table::new().into());
            table.as_table_mut().unwrap().insert(name.to_owned(), value);
        };
        add(
            "secrets",
            self.key,
            Table::from_iter([("file".to_owned(), key.display().to_string().into())]).into(),
        );
        let text = |value: &str| Value::from(value.replace("{port}", &port));
        if let Some((name, value)) = self.env {
            add("env", name, text(value));
        }
        if let Some((name, value)) = self.home {
            add("files", name, text(value));
        }
        if let Some((setting, built_in)) = self.words {
            let mut argv = toml::from_str::<Table>(built_in).unwrap()["argv"].as_array().unwrap().clone();
            // Behind the program and its command.
            argv.splice(2..2, [Value::from("-c"), text(setting)]);
            lane.insert("argv".to_owned(), argv.into());
        }
        fleet.lane(self.lane, &lane.to_string());
        Some(fleet)
    }
}

/// The key of a broker. It is nowhere by chance.
pub(super) const KEY_OF_BROKER: &str = "sk-9b3e72a4-Never-Of-An-Agent";

impl Program {
    /// A root with the built-in lane of this program, whose broker asks a provider with a key, as a newcomer writes it: nothing else is said of it
    /// but where the program is, and which authority the provider of the test has.
    pub(super) fn fleet_by_broker(&self, port: u16, ca: &str) -> Option<Fleet> {
        let install = self.install()?;
        let fleet = Fleet::offline();
        let ca = written(ca, &fleet.home());
        fs::set_permissions(&ca, fs::Permissions::from_mode(0o644)).unwrap();
        fleet.configure(&format!("[proxy]\nca = {:?}", ca.to_str().unwrap()));
        fleet.write_config("secrets/the-key", KEY_OF_BROKER);
        let key = fleet.root().join("secrets/the-key");
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
        let built_in = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("setup/src/lanes/builtin")
            .join(format!("{}.toml", self.lane));
        let built_in: Table = toml::from_str(&fs::read_to_string(built_in).unwrap()).unwrap();
        let mut broker = built_in["broker"][0].as_table().unwrap().clone();
        broker.insert("host".to_owned(), format!("127.0.0.1:{port}").into());
        broker.insert("secret".to_owned(), "the-key".into());
        let install: Vec<Value> = install.iter().map(|dir| dir.display().to_string().into()).collect();
        let lane = Table::from_iter([
            ("extends".to_owned(), self.lane.into()),
            ("model".to_owned(), self.model.into()),
            ("install".to_owned(), install.into()),
            ("broker".to_owned(), Value::Array(vec![broker.into()])),
        ]);
        fleet.lane(self.lane, &lane.to_string());
        Some(fleet)
    }
}

/// Gives this thread, and all that it starts from now on, a network of its own with a loopback interface alone, unless it has no
/// other already. Whether that is so: a program with a key never runs where it could reach anything else.
pub(super) fn leave_the_network() -> bool {
    if interfaces() == ["lo"] {
        return true;
    }
    if nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).is_err() {
        skip("programs of agents: a network of their own needs root");
        return false;
    }
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
    if !up.is_ok_and(|status| status.success()) {
        skip("programs of agents: no `ip` to bring a loopback interface up");
        return false;
    }
    assert_eq!(interfaces(), ["lo"]);
    true
}

/// The network interfaces of this thread.
fn interfaces() -> Vec<String> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let names = text.lines().skip(2).filter_map(|line| line.split(':').next());
    let mut names: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
    names.sort_unstable();
    names
}
