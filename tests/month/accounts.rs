//! Fifty accounts work for thirty days as their schedule says, one of them meets a captcha, and the daemon is killed meanwhile.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::{Calendar, DAY, FROM, HOUR};
use crate::crash::Chance;
use crate::fleet::give;
use crate::harness::Fleet;
use crate::invariants::{in_lines, of_board};

const ACCOUNTS: usize = 50;
const DAYS: i64 = 30;
/// The days between which account 17 meets a captcha that nobody has solved.
const CAPTCHA: std::ops::Range<i64> = 8..15;

/// Script of an account: it records its task, and asks if it meets a captcha without a known solution.
const ENGAGE: &str = "if [ -e captcha ] && ! supervisor context | grep -q 'a traffic light'; then \
     supervisor block 'captcha: what does the picture show?' --kind needs_input; exit 0; fi; \
     echo \"$HERMES_TENANT $SUPERVISOR_TASK\" >> logs/engaged";

/// The directories of the accounts, which belong to an ordinary user.
fn accounts(fleet: &Fleet) -> PathBuf {
    let root = fleet.home().join("insta");
    fs::create_dir(&root).unwrap();
    for number in 1..=ACCOUNTS {
        fs::create_dir_all(root.join(format!("acct-{number}/logs"))).unwrap();
        give(&root.join(format!("acct-{number}")));
        give(&root.join(format!("acct-{number}/logs")));
    }
    give(&root);
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    root
}

/// Imports the schedule as the established program has it, of which a tick each day is enough here.
fn import(fleet: &Fleet) {
    fleet.lane("engage", &format!("argv = ['/bin/sh', '-c', '''{ENGAGE}''']\non_clean_exit = 'complete'\n"));
    fleet.cli(["profile", "create", "insta-manager", "--lane", "engage"]).ok();
    let yaml = "schedule: \"0 8 * * *\"\ncommand: hermes kanban dispatch-fleet insta-manager ~/insta\ntime_zone: UTC\n";
    fs::write(fleet.home().join("insta-fleet.yaml"), yaml).unwrap();
    fleet.cli(["schedules", "import", "insta-fleet.yaml"]).ok();
}

/// Returns the numbers of done and of asking tasks.
fn counted(fleet: &Fleet) -> (u64, u64) {
    let stats = fleet.json(["stats"]);
    let count = |status: &str| stats["by_status"][status].as_u64().unwrap_or(0);
    (count("done"), count("blocked"))
}

/// The tasks of account 17 that ask.
fn asking(fleet: &Fleet) -> Vec<String> {
    let listed = fleet.json(["list", "--tenant", "acct-17", "--status", "blocked"]);
    let ids = listed.as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// Lets a daemon work at the tick of a day and be killed, perhaps several times, until that day's work is over.
fn work(calendar: &mut Calendar, day: i64, expected: (u64, u64), chance: &mut Chance) -> usize {
    // A minute after the tick and more, so that a host that was asleep at eight has missed it.
    calendar.ahead = FROM + day * DAY + 8 * HOUR + i64::try_from(chance.below(7000)).unwrap() - super::host();
    let mut kills = 0;
    while chance.below(3) == 0 {
        calendar.launch();
        std::thread::sleep(Duration::from_millis(20 + chance.below(700)));
        calendar.fleet.kill_daemon();
        kills += 1;
    }
    calendar.catch_up();
    let fleet = &calendar.fleet;
    // Fifty workers take long on a busy host, and a look is a process beside them.
    fleet.eventually_within(Duration::from_mins(10), &format!("the work of day {day} is over"), || {
        (counted(fleet) == expected).then_some(())
    });
    kills
}

/// Compares each account's record with the board: one task a day, which ran once.
fn check(fleet: &Fleet, root: &Path) {
    let days = usize::try_from(DAYS).unwrap();
    for number in 1..=ACCOUNTS {
        let account = format!("acct-{number}");
        let noted = fs::read_to_string(root.join(&account).join("logs/engaged")).unwrap();
        let lines: BTreeSet<&str> = noted.lines().collect();
        assert_eq!((noted.lines().count(), lines.len()), (days, days), "{account}: {noted}");
        let listed = fleet.json(["list", "--tenant", &account]);
        let is_its_own = |task: &Value| {
            let line = format!("{account} {}", task["id"].as_str().unwrap());
            task["title"] == format!("engage {account}") && lines.contains(line.as_str())
        };
        assert!(listed.as_array().unwrap().iter().all(is_its_own), "{account}: {listed:#}");
    }
}

#[test]
fn fifty_accounts_work_for_thirty_days_by_their_schedule_while_one_meets_a_captcha_and_daemons_are_killed() {
    let Some(mut calendar) = Calendar::new() else { return };
    let root = accounts(&calendar.fleet);
    calendar.fleet.configure("[limits]\nmax_running = 16\n");
    calendar.fleet.start_by(&mut calendar.daemon());
    import(&calendar.fleet);
    calendar.fleet.kill_daemon();
    let captcha = root.join("acct-17/captcha");
    let (mut chance, mut kills, mut asked) = (Chance::new(), 0, 0);

    for day in 0..DAYS {
        if day == CAPTCHA.start {
            fs::write(&captcha, "").unwrap();
        }
        asked = if CAPTCHA.contains(&day) { asked + 1 } else { asked };
        let all = u64::try_from(day + 1).unwrap() * u64::try_from(ACCOUNTS).unwrap();
        kills += work(&mut calendar, day, (all - asked, asked), &mut chance);
        if day == CAPTCHA.end - 1 {
            let waiting = asking(&calendar.fleet);
            assert_eq!(waiting.len(), usize::try_from(CAPTCHA.end - CAPTCHA.start).unwrap());
            for id in &waiting {
                calendar.fleet.cli(["unblock", id, "--reason", "a traffic light"]).ok();
            }
            calendar.fleet.eventually("all that asked is done", || {
                (counted(&calendar.fleet) == (all, 0)).then_some(())
            });
            fs::remove_file(&captcha).unwrap();
            asked = 0;
        }
        calendar.fleet.kill_daemon();
        kills += 1;
    }

    println!("{kills} kills");
    calendar.fleet.start_by(&mut calendar.daemon());
    check(&calendar.fleet, &root);
    calendar.fleet.eventually("each tick is noted as made, once", || {
        let told = calendar.fleet.json(["events", "--kind", "ticked", "--limit", "1000"]);
        let told = told["events"].as_array().unwrap().clone();
        let made = told.iter().filter(|event| event["payload"]["outcome"] == "made").count();
        (made == usize::try_from(DAYS).unwrap()).then_some(())
    });
    let faults = of_board(&calendar.fleet);
    assert!(faults.is_empty(), "{}", in_lines(&faults));
}
