//! Events of missions.

use super::{rendered_events, worker};
use crate::testing::{Bench, alice, titled};
use crate::{MissionCaps, TaskId};

fn mission(bench: &Bench) -> TaskId {
    let caps = MissionCaps { max_tasks: Some(2), ..MissionCaps::default() };
    bench.call(move |board| board.create_mission(titled("site"), &caps, &alice())).unwrap().task.id
}

#[test]
fn mentioned_tells_of_the_comment_the_profile_and_its_task() {
    let rendered = super::done("mentioned", |board, id| {
        let comment = board.comment(id, "@carol please", None, &alice())?;
        board.mention(&comment, |_| true, |_| None, &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"comment":1,"profile":"carol","task":"t_id"}"#);
}

#[test]
fn mission_created_tells_of_its_limits() {
    let bench = Bench::new();
    mission(&bench);
    insta::assert_snapshot!(rendered_events(&bench, "mission_created"), @r#"no run: {"max_tasks":2}"#);
}

#[test]
fn mission_asked_tells_of_the_question_and_its_choices() {
    let bench = Bench::new();
    let id = mission(&bench);
    let bob = worker("bob", bench.start(&id), &id);
    let asks = bob.clone();
    bench.call(move |board| board.create(titled("part"), &bob).map(drop)).unwrap();
    bench.call(move |board| board.ask_for_more_tasks(&asks)).unwrap();
    insta::assert_snapshot!(rendered_events(&bench, "mission_asked"), @r#"no run: {"choices":["raise the limit: as much again","stop the mission"],"question":"The mission `site` has reached a limit: 2 tasks of 2 (missions.tasks). Continue?","reason":"2 tasks of 2 (missions.tasks)"}"#);
}

#[test]
fn mission_cancelled_tells_of_the_reason_and_the_numbers() {
    let bench = Bench::new();
    let id = mission(&bench);
    bench.call(move |board| board.cancel_mission(&id, Some("no need"), &alice()).map(drop)).unwrap();
    insta::assert_snapshot!(rendered_events(&bench, "mission_cancelled"), @r#"no run: {"ending":0,"reason":"no need","tasks":1}"#);
}
