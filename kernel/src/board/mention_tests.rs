//! Mentions in comments: tasks for known profiles, once for each, within the limits of missions.

use crate::testing::{Bench, alice, titled};
use crate::{Actor, Comment, Mention, MissionCaps, MissionLimits, NewTask, TaskId};

fn comment(bench: &Bench, id: &TaskId, text: &str, actor: &Actor) -> Comment {
    let (id, text, actor) = (id.clone(), text.to_owned(), actor.clone());
    bench.call(move |board| board.comment(&id, &text, None, &actor)).unwrap()
}

fn mention(bench: &Bench, comment: &Comment, actor: &Actor) -> Vec<Mention> {
    let (comment, actor) = (comment.clone(), actor.clone());
    let known = |profile: &crate::Profile| profile.as_str() != "nobody";
    bench.call(move |board| board.mention(&comment, known, |_| Some("strict".to_owned()), &actor)).unwrap()
}

fn count(bench: &Bench) -> usize {
    bench
        .readers
        .with(|view| view.tasks(&crate::Filter { limit: 100, ..crate::Filter::default() }))
        .unwrap()
        .tasks
        .len()
}

#[test]
fn each_known_profile_gets_one_task_of_the_same_mission_with_the_comment_as_its_text() {
    let bench = Bench::new();
    let id = bench.create(NewTask { tenant: "acme".parse().ok(), ..titled("site") }).id;
    let posted = comment(&bench, &id, "@carol look at this, @nobody and @carol", &alice());

    let made = mention(&bench, &posted, &alice());
    let again = mention(&bench, &posted, &alice());

    assert_eq!((made.len(), &again), (1, &made), "a second time makes nothing");
    let task = bench.task(made[0].task.as_ref().unwrap());
    assert_eq!(task.assignee, "carol".parse().ok());
    assert_eq!((task.body.as_deref(), task.mission()), (Some(posted.body.as_str()), id.as_str()));
    assert_eq!(task.policy.as_deref(), Some("strict"), "the tenant's");
    assert_eq!((task.tenant, count(&bench)), ("acme".parse().ok(), 2));
    let other = comment(&bench, &id, "@carol once more", &alice());
    assert_eq!(mention(&bench, &other, &alice()).len(), 1, "each comment asks anew");
    assert_eq!(count(&bench), 3);
    bench.check();
}

#[test]
fn a_worker_that_mentions_without_end_stops_at_the_limit_of_its_mission_with_a_question() {
    let bench = Bench::new();
    let caps = MissionCaps { max_tasks: Some(4), ..MissionCaps::default() };
    let id = bench.call(move |board| board.create_mission(titled("x"), &caps, &alice())).unwrap().task.id;
    let bob = Actor::worker("bob", bench.start(&id), id.clone(), None);
    let text: String = (0..1000).map(|at| format!("@p{at}")).collect::<Vec<_>>().join(" ");
    let posted = comment(&bench, &id, &text, &bob);

    let made = mention(&bench, &posted, &bob);

    let refused: Vec<&str> = made.iter().filter_map(|one| one.refused.as_deref()).collect();
    let (asked, most) = (made.len() - 24, crate::rules::mention::MENTIONS);
    assert_eq!((asked, refused.len() - 24, count(&bench)), (most, 5, 4));
    assert!(made[most].refused.as_ref().is_some_and(|why| why.contains("at most 8 profiles")), "{made:?}");
    assert!(refused[0].contains("missions.tasks"), "{}", refused[0]);
    let shown = bench.readers.with(|view| view.mission(&id, &MissionLimits::default(), &alice())).unwrap();
    assert!(shown.mission.question.is_some());
    bench.check();
}

#[test]
fn work_is_not_handed_back_by_a_mention() {
    let bench = Bench::new();
    let first = bench.ready();
    let bob = Actor::worker("bob", bench.start(&first), first.clone(), None);
    let made = bench
        .call(move |board| board.create(NewTask { assignee: "carol".parse().ok(), ..titled("x") }, &bob));
    let part = made.unwrap().task.id;
    let start = crate::Start { profile: "carol".parse().ok(), ..crate::testing::start(&*bench.clock) };
    let started = part.clone();
    let run = bench.call(move |board| board.start_run(&started, start)).unwrap().id;
    let carol = Actor::worker("carol", run, part.clone(), None);
    let posted = comment(&bench, &part, "@bob your turn", &carol);
    let refused = mention(&bench, &posted, &carol).remove(0).refused.unwrap();
    assert!(refused.ends_with("bob → carol → bob"), "{refused}");
}
