//! A mission at a limit asks: on the board, in `status` and in `top`, where a number answers it.

use serde_json::Value;

use super::id_of;
use crate::harness::{Fleet, Screen};
use crate::listeners::operator;

/// The cards of a board by the ids of their tasks.
fn card(board: &Value, id: &str) -> Value {
    let columns = board["columns"].as_array().unwrap().iter();
    let mut cards = columns.flat_map(|column| column["tasks"].as_array().unwrap());
    cards.find(|card| card["id"] == id).unwrap().clone()
}

#[test]
fn a_mission_at_a_limit_is_listed_where_a_person_is_needed_and_answered_in_top() {
    let fleet = Fleet::boot();
    let mission = id_of(&fleet, &["mission", "create", "the website", "--max-tasks", "2"]);
    let part = id_of(&fleet, &["create", "part", "--mission", &mission]);
    fleet.cli(["create", "one more", "--mission", &mission]).refused(77, "missions.tasks");

    let status = fleet.cli(["status"]).stdout;
    assert!(status.contains("Missions at a limit\n"), "{status}");
    assert!(status.contains(&format!("supervisor answer {mission} 1  raise the limit")), "{status}");
    assert_eq!(fleet.json(["status"])["asking"][0]["id"], mission.as_str());
    let board = operator(&fleet).get("/api/v1/board").json(200);
    let (first, other) = (card(&board, &mission), card(&board, &part));
    assert_eq!((&first["needs_person"], &other["needs_person"]), (&true.into(), &false.into()));
    assert_eq!(first["question"]["choices"][1], "stop the mission");

    let mut screen = Screen::run(&mut fleet.command(["top"]), 110, 30);
    screen.shows("NEEDS A PERSON (1)");
    screen.shows("READY (2)");
    // The task stands below, too, and the mark comes past both.
    screen.press("j");
    screen.press("g");
    screen.press("a");
    screen.shows("> 1. raise the limit");
    screen.press("1");
    screen.shows(&format!("answered {mission}"));
    screen.loses("NEEDS A PERSON");
    screen.press("q");
    assert!(screen.end().success());
    fleet.cli(["create", "one more", "--mission", &mission]).ok();
}
