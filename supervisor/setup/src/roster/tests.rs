//! Tests of resolving assignees, and of the reasons why they cannot run.

use kernel::{LimitSource, Pool};

use super::*;
use crate::config::definitions::{Effect, Subject};
use base::exit::Code;
use base::failure::Failure;
use base::paths::RootChoice;

const GOOD: &str = "argv = [\"agent\"]\n";

struct Bench {
    dir: tempfile::TempDir,
    root: Root,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let choice = RootChoice { root: Some(dir.path().into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        for name in ["lanes.d", "policies.d", "profiles.d"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Bench { dir, root }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).unwrap();
    }
}

fn obstacle(roster: &Roster, assignee: &str, policy: Option<&str>) -> Option<String> {
    let resolved = roster.resolve(&assignee.parse().unwrap(), policy, &Config::default());
    resolved.err().map(|why| why.waiting().text)
}

#[test]
fn a_bad_file_disables_what_it_defines_and_nothing_else() {
    let bench = Bench::new();
    bench.write("lanes.d/bad.toml", "argv = [\"x\"]\nargs = 1\n");
    bench.write("lanes.d/good.toml", GOOD);
    bench.write("policies.d/odd.toml", "version = 1\nfrobnicate = 1\n");
    let roster = Roster::load(&bench.root);
    assert_eq!(obstacle(&roster, "good", None), None);
    assert_eq!(obstacle(&roster, "shell", None), None);
    let why = obstacle(&roster, "bad", None).unwrap();
    assert!(why.contains("lanes.d/bad.toml:2 (args): unknown field"), "{why}");
    let why = obstacle(&roster, "good", Some("odd")).unwrap();
    assert!(why.contains("policies.d/odd.toml:2 (frobnicate): unknown field"), "{why}");
    assert_eq!(roster.defects().count(), 2);
    assert!(roster.knows(&"bad".parse().unwrap()));
}

#[test]
fn a_reload_keeps_what_was_good_and_says_so() {
    let bench = Bench::new();
    bench.write("lanes.d/mine.toml", GOOD);
    bench.write("policies.d/default.toml", "version = 1\nextends = 'strict'\n");
    let before = Roster::load(&bench.root);
    bench.write("lanes.d/mine.toml", "argv = [\"{prompt}\"]\n");
    bench.write("lanes.d/new.toml", "argv = []\n");
    bench.write("policies.d/default.toml", "version = 1\nextends = 'nothing'\n");
    let after = Roster::reload(&bench.root, &before);
    assert_eq!(obstacle(&after, "mine", None), None);
    assert!(obstacle(&after, "new", None).is_some());
    let effects: Vec<_> = after.defects().map(|defect| (defect.subject.clone(), defect.effect)).collect();
    let lane = |name: &str| Subject::Lane(name.to_owned());
    assert_eq!(
        effects,
        [
            (lane("mine"), Effect::KeptLast),
            (lane("new"), Effect::Disabled),
            (Subject::Policy("default".to_owned()), Effect::KeptLast)
        ]
    );
    std::fs::remove_file(bench.dir.path().join("lanes.d/mine.toml")).unwrap();
    let gone = Roster::reload(&bench.root, &after);
    assert!(!gone.knows(&"mine".parse().unwrap()), "a file that is removed takes its lane away");
}

#[test]
fn a_file_that_says_something_else_than_what_was_read_is_known_by_its_lane() {
    let bench = Bench::new();
    bench.write("lanes.d/mine.toml", GOOD);
    bench.write("lanes.d/gone.toml", GOOD);
    bench.write("policies.d/own.toml", "version = 1\nextends = 'strict'\n");
    let used = Roster::load(&bench.root).on(&policies::Support::detect());
    let changed = |lane: &str| {
        let now = used.on_disk(&bench.root);
        let paths = used.changed_files(&now, &bench.root, &lane.parse().unwrap());
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        paths.iter().map(name).collect::<Vec<_>>()
    };
    assert!(changed("mine").is_empty());
    bench.write("lanes.d/mine.toml", "argv = [\"other\"]\n");
    bench.write("lanes.d/new.toml", GOOD);
    std::fs::remove_file(bench.dir.path().join("lanes.d/gone.toml")).unwrap();
    assert_eq!(
        [changed("mine"), changed("new"), changed("gone")],
        [["mine.toml"], ["new.toml"], ["gone.toml"]]
    );
    bench.write("policies.d/own.toml", "version = 1\nextends = 'default'\n");
    assert_eq!(changed("shell"), ["own.toml"]);
    assert!(used.on_disk(&bench.root).policies.host().is_some(), "the host stays the same");
}

#[test]
fn a_file_that_is_no_regular_one_or_has_no_end_is_a_defect_and_keeps_nobody_waiting() {
    let bench = Bench::new();
    for name in ["lanes.d/pipe.toml", "policies.d/pipe.toml"] {
        nix::unistd::mkfifo(&bench.dir.path().join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    std::os::unix::fs::symlink("/dev/zero", bench.dir.path().join("lanes.d/endless.toml")).unwrap();
    bench.write("lanes.d/long.toml", &"#".repeat(2 << 20));
    bench.write("lanes.d/good.toml", GOOD);

    let roster = Roster::load(&bench.root);

    assert_eq!(obstacle(&roster, "good", None), None);
    assert_eq!(roster.defects().count(), 4);
    for (lane, what) in [("pipe", "not a regular file"), ("endless", "not a regular file"), ("long", "1 MiB")]
    {
        let why = obstacle(&roster, lane, None).unwrap();
        assert!(why.contains(what), "{why}");
    }
}

#[test]
fn a_bad_policy_of_a_built_in_name_does_not_fall_back_to_the_built_in_one() {
    let bench = Bench::new();
    bench.write("policies.d/default.toml", "version = 1\nname = 3\n");
    assert!(obstacle(&Roster::load(&bench.root), "shell", None).is_some());
}

#[test]
fn a_policy_that_this_host_cannot_hold_is_named_with_what_it_lacks() {
    let bench = Bench::new();
    let host = policies::Support::detect().with_abi(2);
    let roster = Roster::load(&bench.root).on(&host);
    let why = obstacle(&roster, "shell", None).unwrap();
    assert!(why.contains("the policy default") && why.contains("Landlock ABI"), "{why}");
    assert_eq!(obstacle(&roster, "shell", Some("unconfined")), None);
    assert!(
        roster.policies().unenforceable().contains_key("strict"),
        "{:?}",
        roster.policies().unenforceable()
    );
}

#[test]
fn an_assignee_resolves_to_its_lane_policy_account_and_limits() {
    let bench = Bench::new();
    bench.write("lanes.d/mine.toml", "argv = [\"agent\"]\naccount = \"main\"\npolicy = \"strict\"\n");
    let roster = Roster::load(&bench.root);
    let mine = "mine".parse().unwrap();
    let config = Config::default();
    let resolved = roster.resolve(&mine, None, &config).unwrap();
    assert_eq!((resolved.profile.clone(), resolved.policy_name.as_str()), (mine.clone(), "strict"));
    assert_eq!(resolved.account, Some("main"));
    let described = |found: &Resolved<'_>| {
        (found.limits.max_runtime.limit.as_secs() / 3600, found.limits.max_runtime.from)
    };
    assert_eq!(described(&resolved), (4, LimitSource::Configuration));
    bench.write("lanes.d/slow.toml", "argv = [\"agent\"]\nmax_runtime = \"9h\"\n");
    let roster = Roster::load(&bench.root);
    let slow = roster.resolve(&"slow".parse().unwrap(), None, &config).unwrap();
    assert_eq!(described(&slow), (9, LimitSource::Lane));
    let asked = roster.resolve(&mine, Some("network"), &config).unwrap();
    assert_eq!(asked.policy_name, "network", "what a task asks for goes before what its lane says");
}

#[test]
fn a_profile_resolves_to_its_lane_and_what_it_says_goes_before_what_the_lane_says() {
    let bench = Bench::new();
    let lane = "argv = [\"agent\", [\"-m\", \"{model}\"]]\nmodel = \"small\"\naccount = \"main\"\npolicy = \"strict\"\n";
    bench.write(
        "lanes.d/agent.toml",
        &format!("max_runtime = \"9h\"\nmax_running = 5\npools = [\"gpu\"]\n{lane}"),
    );
    bench.write("profiles.d/least.md", "---\nlane: agent\n---\n");
    bench.write(
        "profiles.d/ann.md",
        "---\nlane: agent\nmodel: big\npolicy: network\naccount: hers\npools: [licence, gpu]\nlimits: {max_runtime: 2h, max_running: 3}\n---\nYou \
         are Ann.\n",
    );
    bench.write("profiles.d/free.md", "---\ndescription: on the configured lane\n---\n");
    let roster = Roster::load(&bench.root);
    let config: Config = toml::from_str("[worker]\nlane = \"agent\"").unwrap();
    let described = |name: &str| {
        let found = roster.resolve(&name.parse().unwrap(), None, &config).unwrap();
        let texts = (found.model, found.policy_name.clone(), found.account, found.role_prompt);
        (texts, found.limits.max_runtime.limit.as_secs() / 3600, found.limits.max_runtime.from)
    };
    let of_the_lane = ((Some("small"), "strict".to_owned(), Some("main"), None), 9, LimitSource::Lane);
    assert_eq!(described("least"), of_the_lane);
    assert_eq!(described("free"), of_the_lane, "a profile without a lane has the configured one");
    let hers = (Some("big"), "network".to_owned(), Some("hers"), Some("You are Ann."));
    assert_eq!(described("ann"), (hers, 2, LimitSource::Profile));
    let ann = "ann".parse().unwrap();
    let claim = roster.pool_claim(&ann, &config);
    assert_eq!((claim.most_of_profile, claim.most_of_lane), (Some(3), Some(5)));
    assert_eq!(claim.lane, Some("agent".parse().unwrap()));
    assert_eq!(claim.pools.iter().map(Pool::as_str).collect::<Vec<_>>(), ["gpu", "licence"]);
    let claim = roster.pool_claim(&"free".parse().unwrap(), &config);
    assert_eq!(claim.pools.iter().map(Pool::as_str).collect::<Vec<_>>(), ["gpu"]);
    assert_eq!(roster.pool_claim(&"nobody".parse().unwrap(), &config).pools, BTreeSet::new());
    assert_eq!(roster.lane_name(&ann, &config).as_str(), "agent");
    let accounts = roster.accounts(&config);
    let account = |name: &str| accounts.get(&name.parse().unwrap()).map(String::as_str);
    assert_eq!(
        (account("ann"), account("least"), account("agent")),
        (Some("hers"), Some("main"), Some("main"))
    );
}

#[test]
fn a_profile_goes_before_a_lane_of_its_name_and_one_that_is_bad_does_not_fall_back_to_it() {
    let bench = Bench::new();
    bench.write("profiles.d/shell.md", "---\nlane: shell\npolicy: strict\n---\n");
    let roster = Roster::load(&bench.root);
    let shell = "shell".parse().unwrap();
    let resolved = roster.resolve(&shell, None, &Config::default()).unwrap();
    assert_eq!(resolved.policy_name, "strict");
    bench.write("profiles.d/shell.md", "---\nlame: shell\n---\n");
    let why = obstacle(&Roster::load(&bench.root), "shell", None).unwrap();
    assert!(why.contains("profiles.d/shell.md:2 (lame)"), "{why}");
    let kept = Roster::reload(&bench.root, &roster);
    assert_eq!(obstacle(&kept, "shell", None), None, "what was read before stays");
}

#[test]
fn a_profile_that_does_not_fit_its_lane_says_why() {
    let bench = Bench::new();
    bench.write("lanes.d/plain.toml", GOOD);
    bench.write("profiles.d/a.md", "---\nlane: gone\n---\n");
    bench.write("profiles.d/b.md", "---\nlane: plain\nmodel: big\n---\n");
    bench.write("profiles.d/c.md", "---\nlane: shell\n---\nYou are Carl.\n");
    bench.write("profiles.d/d.md", "---\nlane: shell\n---\n");
    let roster = Roster::load(&bench.root);
    let why = |name: &str| obstacle(&roster, name, None).unwrap_or_default();
    assert_eq!(why("a"), "waits for its profile: the profile `a` cannot be used: there is no lane `gone`");
    assert!(why("b").contains("its lane `plain` uses no {model}"), "{}", why("b"));
    assert!(why("c").contains("its lane `shell` runs the body of a task"), "{}", why("c"));
    assert_eq!(why("d"), "");
}

#[test]
fn each_reason_says_what_is_wrong_to_all_who_ask() {
    let bench = Bench::new();
    bench.write("lanes.d/bad.toml", "argv = []\n");
    let roster = Roster::load(&bench.root);
    let why = |assignee: &str, policy: Option<&str>| {
        let resolved = roster.resolve(&assignee.parse().unwrap(), policy, &Config::default());
        let why = resolved.expect_err("it cannot run");
        let failure = Failure::from(why.clone());
        (why.waiting().code, why.warning(), failure.message, failure.hint.unwrap())
    };
    let (code, warning, message, hint) = why("ghost", None);
    assert_eq!(code, kernel::WaitingCode::Nonspawnable);
    assert!(
        warning.contains(
            "so the task waits for a worker that claims it; the assignees are: a2a, analyst, backend-eng, bad, "
        ),
        "{warning}"
    );
    assert_eq!((message.as_str(), hint.contains("shell")), ("no profile or lane `ghost` exists here", true));
    let named = |name: &str| {
        let why = roster.resolve(&name.parse().unwrap(), None, &Config::default()).unwrap_err();
        why.of_what_was_named().code
    };
    assert_eq!((named("ghost"), named("bad")), (Code::NotFound, Code::Conflict));
    let (code, warning, message, hint) = why("bad", None);
    assert_eq!(code, kernel::WaitingCode::Environment);
    assert!(warning.starts_with("nothing runs it for now: it waits for the lane bad"), "{warning}");
    assert!(
        message.contains("bad.toml:1 (argv): it is empty") && hint.contains("docs/lanes.md"),
        "{message}"
    );
    let (_, warning, message, hint) = why("shell", Some("odd"));
    assert!(warning.contains("it waits for its policy: there is no policy `odd`"), "{warning}");
    assert!(message == "there is no policy `odd`" && hint.contains("strict"), "{hint}");
}

#[test]
fn pools_without_places_and_names_of_nobody_are_found_each_with_what_to_do() {
    let bench = Bench::new();
    bench.write("lanes.d/mine.toml", "argv = [\"agent\"]\npools = [\"gpu\", \"licence\"]\n");
    bench.write("profiles.d/critic.md", "---\nlane: mine\npools: [disk]\n---\nRead it.\n");
    let roster = Roster::load(&bench.root);
    let config = "[pools]\nlicence = 2\n[limits]\nprofiles = { critc = 1, mine = 2 }\nlanes = { ghost = 1, mine = 3 }\n\
        [triage]\nspecifier = \"critic\"\nrouter = \"ruoter\"\n[a2a]\nprofiles = [\"critic\", \"gone\"]\n";
    let config: Config = toml::from_str(config).unwrap();
    let loose: Vec<String> = roster.loose_names(&config).iter().map(kernel::Finding::sentence).collect();
    assert_eq!(loose.len(), 6, "{loose:#?}");
    for (text, named) in loose.iter().zip([
        "the profile critic takes places of the pool disk",
        "the lane mine takes places of the pool gpu",
        "limits.profiles caps critc, and no profile or lane has that name; critic is like it",
        "limits.lanes caps ghost, and no lane has that name",
        "triage.router asks ruoter, and no profile or lane has that name; router is like it",
        "a2a.profiles offers gone, and no profile or lane has that name",
    ]) {
        assert!(text.starts_with(named), "{text}");
    }
    assert!(loose[1].ends_with("write gpu = 1 into [pools] of supervisor.toml, and reload"), "{loose:#?}");
    let config: Config = toml::from_str("[pools]\ngpu = 0\nlicence = 1\ndisk = 1\n").unwrap();
    assert_eq!(roster.loose_names(&config), [], "a pool without places is closed on purpose");
}
