//! Tests of lane files.

use super::super::template::Values;
use super::super::template::tests::values;
use super::*;

fn parse(text: &str) -> Result<Lane, Defect> {
    Lane::parse("l", text, Path::new("/etc/l.toml"))
}

#[test]
fn a_group_of_words_is_left_out_where_a_place_in_it_has_no_value() {
    let lane = parse(r#"argv = ["x", ["-m", "{model}"], "{task}"]"#).unwrap();
    assert_eq!(lane.command(&values()), ["x", "t_1"]);
    assert_eq!(lane.on_clean_exit, CleanExit::ProtocolViolation);
    let lane = parse("model = \"m\"\nargv = [\"x\", [\"-m\", \"{model}\"]]").unwrap();
    let values = Values { model: lane.model.as_deref(), ..values() };
    assert_eq!(lane.command(&values), ["x", "-m", "m"]);
}

#[test]
fn the_files_of_a_lane_are_in_its_workers_home() {
    let lane = parse("argv = [\"x\"]\n[files]\n\".x/s.json\" = '{\"dir\": \"{workspace}\"}'").unwrap();
    let files = lane.files(&values());
    assert_eq!(files, [(PathBuf::from(".x/s.json"), "{\"dir\": \"/w{task}\"}".to_owned())]);
}

#[test]
fn each_defect_is_named_with_its_line_and_its_key() {
    let table = [
        ("prompt = \"file\"\nargv = []", "/etc/l.toml:2 (argv): it is empty"),
        ("pull = true\nargv = [\"x\"]", "/etc/l.toml:2 (argv): it changes nothing beside `pull = true`"),
        ("argv = [[\"x\"]]", "/etc/l.toml:1 (argv): its first word may be left out"),
        ("argv = [\"\"]", "/etc/l.toml:1 (argv): its first word is empty"),
        ("argv = [\"x\"]\nargs = 1", "/etc/l.toml:2 (args): unknown field `args`"),
        ("argv = [\n  \"x\",\n  \"{prompt}\"]", "/etc/l.toml:3 (argv): `{prompt}` is not a placeholder"),
        ("argv = [\"x\", \"{prompt_text}\"]", "/etc/l.toml:1 (argv): `{prompt_text}` needs prompt"),
        ("argv = [\"x\"]\nprompt = \"argument\"", "/etc/l.toml:1 (argv): no word of it has {prompt_text}"),
        ("argv = [\"x\"]\nstdout = \"yaml\"", "/etc/l.toml:2 (stdout): there is no format `yaml`"),
        ("argv = [\"x\"]\nsession = \"stream-json\"", "/etc/l.toml:2 (session): its program answers"),
        (
            "argv = [\"x\"]\nsession = \"stream-json\"\nprompt = \"file\"",
            "/etc/l.toml:2 (session): its prompt is the first message",
        ),
        ("argv = [\"x\"]\nsession = \"pty\"", "/etc/l.toml:2 (session): unknown variant `pty`"),
        ("argv = [\"x\"]\nterminal = true", "/etc/l.toml:2 (terminal): its standard input is the terminal"),
        (
            "argv = [\"x\"]\nprompt = \"file\"\nterminal = \"9\"",
            "/etc/l.toml:3 (terminal): `9` is not a size",
        ),
        ("argv = [\"x\"]\nidle_limit = 0", "/etc/l.toml:2 (idle_limit): it is 0"),
        ("argv = [\"x\"]\nmax_running = 0", "/etc/l.toml:2 (max_running): "),
        ("argv = [\"x\"]\npools = [\"a b\"]", "/etc/l.toml:2 (pools): "),
        ("argv = [\"x\"]\nmodel = \"m\"", "/etc/l.toml:2 (model): nothing uses it"),
        (
            "argv = [\"x\"]\norchestrator_outside = true",
            "/etc/l.toml:2 (orchestrator_outside): the lane has no orchestrators",
        ),
        ("argv = [\"x\"]\ntools = \"claude\"", "/etc/l.toml:2 (tools): nothing uses it"),
        ("argv = [\"x\", \"{tools}\"]", "/etc/l.toml:1 (tools): `{tools}` needs a form"),
        ("argv = [\"x\", \"{base_url}\"]", "/etc/l.toml:1 (broker): `{base_url}` is the address"),
        ("argv = [\"x\", \"{session}\"]", "/etc/l.toml:1 (argv): `{session}` needs the directory"),
        ("argv = [\"x\"]\nstate = \".x\"", "/etc/l.toml:2 (state): nothing uses it"),
        ("argv = [\"x\", \"{session}\"]\nstate = \"../x\"", "/etc/l.toml:2 (state): `../x` is not a path"),
        (
            "argv = [\"x\", \"{session}\"]\nstate = \".x\"\n[files]\n\".x/y\" = \"\"",
            "/etc/l.toml:2 (state): the file .x/y is written anew",
        ),
        (
            "argv = [\"x\", \"{session}\"]\nstate = \".x\"\nskills = \".x/skills\"",
            "/etc/l.toml:2 (state): the file .x/skills is written anew",
        ),
        ("argv = [\"x\"]\nsession_gone = [\" \"]", "/etc/l.toml:2 (session_gone): one of its texts is empty"),
        ("argv = [\"x\"]\nlogin = [\"x\"]", "/etc/l.toml:2 (login): nothing of it would be kept"),
        (
            "argv = [\"x\"]\nlogin = [\"x\", \"{task}\"]\nkeep = [\"a\"]",
            "/etc/l.toml:2 (login): a login has no task",
        ),
        ("argv = [\"x\"]\nkeep = [\"a\", \"../b\"]", "/etc/l.toml:2 (keep): `../b` is not a path"),
        (
            "argv = [\"x\"]\nkeep = [\".x/y\"]\n[files]\n\".x/y\" = \"\"",
            "/etc/l.toml:2 (keep): `.x/y` is written anew",
        ),
        ("argv = [\"x\"]\ninstall = [\"bin\"]", "/etc/l.toml:2 (install): bin is not an absolute path"),
        ("argv = [\"x\"]\n[env]\nPATH = \"/x\"", "/etc/l.toml:3 (env): `PATH` is set for every run"),
        ("argv = [\"x\"]\n[env]\nSUPERVISOR_TOKEN = \"\"", "/etc/l.toml:3 (env): `SUPERVISOR_TOKEN` is set"),
        ("argv = [\"x\"]\n[env]\nA = \"{b}\"", "/etc/l.toml:3 (env): `{b}` is not a placeholder"),
        ("argv = [\"x\"]\n[secrets]\nHOME = \"k\"", "/etc/l.toml:3 (secrets): `HOME` is set for every run"),
        ("argv = [\"x\"]\n[secrets]\nK = \"sk-Value\"", "/etc/l.toml:3 (K): a secret is \"NAME\""),
        (
            "argv = [\"x\"]\n[[broker]]\nhost = \"a\"\nheader = \"b\"\nsecret = \"c\"\nkey_env = \"HOME\"",
            "/etc/l.toml:2 (broker): `HOME` is set by the supervisor",
        ),
        ("argv = [\"x\"]\n[service]\nurl = \"https://a\"", "/etc/l.toml:2 (service): nothing uses it"),
        ("extends = \"http\"\n[service]\nurl = \"a\"", "/etc/l.toml:3 (url): `a` does not begin with"),
        ("argv = [\"x\"]\nhosts = [\"*\"]", "/etc/l.toml:2 (hosts): `*` is not a host of a policy"),
        ("argv = [\"x\"]\nunset = [\"HOME\"]", "/etc/l.toml:2 (unset): `HOME` is set for every run"),
        ("argv = [\"x\"]\n[files]\n\"../x\" = \"\"", "/etc/l.toml:3 (files): `../x` is not a path inside"),
        ("argv = [\"x\"]\n[files]\n\"/x\" = \"\"", "/etc/l.toml:3 (files): `/x` is not a path inside"),
        ("argv = [\"x\"]\n[exit_codes]\nlogin = [0]", "/etc/l.toml:3 (login): 0 is not a failure"),
        ("\nextends = \"l\"", "/etc/l.toml:2 (extends): no lane `l` is built in"),
        ("extends = \"claude\"\n\nargs = 1", "/etc/l.toml:3 (args): unknown field `args`"),
        ("extends = \"claude\"\nargv = 1", "/etc/l.toml:2 (argv): invalid type"),
    ];
    for (text, expected) in table {
        let defect = parse(text).unwrap_err().to_string();
        assert!(defect.starts_with(expected), "{defect}\n{text}");
    }
}
