//! Tests of forks in lane files.

use std::path::Path;

use super::lane::Lane;
use super::template::Values;
use super::template::tests::values;

fn parse(text: &str) -> Result<Lane, String> {
    Lane::parse("l", text, Path::new("/etc/l.toml")).map_err(|defect| defect.to_string())
}

#[test]
fn the_words_of_a_fork_stand_where_a_session_goes_on() {
    let lane = parse("argv = [\"x\", [\"-r\", \"{session}\"], \"-\"]\nstate = \".x\"\nfork = [\"-r\", \"{session}\", \"-f\"]").unwrap();
    let of_a_session = Values { session: Some("s"), ..values() };
    assert!(lane.forks());
    assert_eq!(lane.command(&of_a_session), ["x", "-r", "s", "-"]);
    let forking = lane.forking();
    assert_eq!(forking.command(&of_a_session), ["x", "-r", "s", "-f", "-"]);
    assert_eq!(forking.command(&values()), ["x", "-"], "the session is gone");
    for (text, why) in [
        ("argv = [\"x\"]\nfork = [\"{session}\"]", "(fork): it replaces the words of `argv`"),
        (
            "argv = [\"x\", \"{session}\"]\nstate = \".x\"\nfork = [\"-f\"]",
            "(fork): it replaces the words of `argv`",
        ),
        (
            "argv = [\"x\", \"{session}\"]\nstate = \".x\"\nprojects = \".x/p\"",
            "(projects): it must lie below `state`",
        ),
    ] {
        let defect = parse(text).unwrap_err();
        assert!(defect.contains(why), "{defect}");
    }
}
