//! Warnings about a new tenant that could not work.

use crate::harness::{Fleet, User};

#[test]
fn what_keeps_a_new_tenant_from_being_of_use_is_said_when_it_is_created() {
    let fleet = Fleet::offline_as(User::ordinary());
    let place = |name: &str| fleet.home().join(name).display().to_string();
    let created = |words: &[&str]| fleet.cli([&["tenant", "create"], words].concat()).ok().stderr;
    assert_eq!(created(&["one", "--dir", &place("one"), "--assignee", "shell"]), "");
    let said = created(&["two", "--dir", &place("one/two")]);
    assert!(said.contains("the directory of the tenant one"), "{said}");
    let said = created(&["three", "--member", "4001"]);
    assert!(said.contains("a service that runs as root alone"), "{said}");
    let said = created(&["four", "--assignee", "nosuch"]);
    assert!(said.contains("nosuch"), "{said}");
    if User::current() == User::Root {
        let fleet = Fleet::offline();
        let place = fleet.home().join("own").display().to_string();
        let said = fleet.cli(["tenant", "create", "own", "--dir", &place]).ok().stderr;
        assert!(said.contains("no worker runs as root"), "{said}");
    }
}
