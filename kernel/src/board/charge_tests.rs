//! Charges of workers' writes, and their refusal.

use crate::testing::{Bench, alice, digest, titled};
use crate::{
    Actor, Bound, EndCause, Error, ErrorCode, Handoff, NewAttachment, NewTask, Quotas, SharedQuotas,
    StopReason, TaskId, Tenant, WriterOptions,
};

fn bench(quotas: Quotas) -> Bench {
    Bench::with(|options| WriterOptions { quotas: SharedQuotas::new(quotas), ..options })
}

fn worker(bench: &Bench, tenant: &str) -> Actor {
    let tenant: Tenant = tenant.parse().unwrap();
    let task = bench.create(NewTask { tenant: Some(tenant.clone()), ..titled("own") }).id;
    Actor::worker("bob", bench.start(&task), task, Some(tenant))
}

fn own(actor: &Actor) -> TaskId {
    actor.run.clone().unwrap().task
}

fn file(name: &str, size: u64) -> NewAttachment {
    NewAttachment { filename: name.to_owned(), content_type: None, sha256: digest(), size, author: None }
}

/// Uses the resource of a bound once.
fn once(bench: &Bench, bound: Bound, actor: &Actor) -> Result<(), Error> {
    let actor = actor.clone();
    let until = crate::Clock::now(&*bench.clock).after(std::time::Duration::from_mins(1));
    bench.call(move |board| {
        let id = actor.run.as_ref().map_or_else(|| "t_00000000".parse().unwrap(), |own| own.task.clone());
        match bound {
            Bound::Creates => board.create(titled("more"), &actor).map(drop),
            Bound::Comments
            | Bound::TextBytes
            | Bound::TenantEntries
            | Bound::TenantBytes
            | Bound::TenantEvents => board.comment(&id, "twelve bytes", None, &actor).map(drop),
            Bound::Attachments | Bound::AttachmentBytes => {
                board.attach(&id, &file("a", 100), &actor).map(drop)
            }
            Bound::Links => {
                let parent = board.create(titled("parent"), &actor)?.task.id;
                board
                    .link(&parent, &id, crate::AtWork::TakeBackWithin(std::time::Duration::ZERO), &actor)
                    .map(drop)
            }
            Bound::Holds => board.hold_own("", until, &actor).map(drop),
            Bound::Notes => board.heartbeat(&id, Some("n"), &actor).map(drop),
        }
    })
}

#[test]
fn every_bound_refuses_what_goes_beyond_it_and_says_which_how_much_and_what_to_do() {
    for bound in Bound::ALL.iter().copied() {
        let limit = match bound {
            Bound::AttachmentBytes => 250,
            // The task of the worker counts for its tenant, with the three bytes of its title.
            Bound::TenantEntries => 3,
            Bound::TextBytes | Bound::TenantBytes => 30,
            // The task of the worker was created and claimed.
            Bound::TenantEvents => 4,
            Bound::Creates
            | Bound::Comments
            | Bound::Attachments
            | Bound::Links
            | Bound::Holds
            | Bound::Notes => 2,
        };
        let bench = bench(Quotas::default().with(bound, limit));
        let actor = worker(&bench, "acme");
        for _ in 0..2 {
            once(&bench, bound, &actor).unwrap_or_else(|error| panic!("{bound}: {error}"));
        }

        let refused = once(&bench, bound, &actor).unwrap_err();

        assert_eq!(refused.code(), ErrorCode::Exhausted, "{bound}: {refused}");
        let message = refused.to_string();
        assert!(message.starts_with(bound.as_str()) && message.ends_with(&limit.to_string()), "{message}");
        assert!(refused.hint().unwrap().contains("supervisor.toml"), "{refused:?}");
        let neighbour = worker(&bench, "rival");
        once(&bench, bound, &neighbour).unwrap_or_else(|error| panic!("{bound} of a neighbour: {error}"));
        bench.check();
    }
}

#[test]
fn a_run_that_has_used_up_everything_still_says_how_it_went() {
    let mut quotas = Quotas::default();
    for bound in Bound::ALL {
        quotas = quotas.with(*bound, 0);
    }
    let bench = bench(quotas);
    let actor = worker(&bench, "acme");
    let (id, by) = (own(&actor), actor.clone());
    let run = actor.run.clone().unwrap().run;

    bench
        .call(move |board| {
            board.heartbeat(&id, None, &by)?;
            let handoff = Handoff { summary: Some("all good".to_owned()), ..Handoff::default() };
            board.complete(&id, handoff, None, &by)
        })
        .unwrap();

    bench.finish(run, EndCause::Stopped(StopReason::Verdict));
    assert_eq!(bench.task(&own(&actor)).status, crate::Status::Done);
}

#[test]
fn an_operator_is_bound_by_no_run_and_what_is_refused_is_not_counted() {
    let bench = bench(Quotas::default().with(Bound::Comments, 0).with(Bound::TenantEntries, 0));
    let actor = worker(&bench, "acme");
    let id = own(&actor);
    for _ in 0..2 {
        assert!(once(&bench, Bound::Comments, &actor).is_err());
    }
    bench.call(move |board| board.comment(&id, "by hand", None, &alice())).unwrap();
    bench.check();
}

#[test]
fn limits_change_without_a_restart_and_a_new_run_counts_anew() {
    let shared = SharedQuotas::new(Quotas::default().with(Bound::Comments, 1));
    let bench = Bench::with(|options| WriterOptions { quotas: shared.clone(), ..options });
    let actor = worker(&bench, "acme");
    once(&bench, Bound::Comments, &actor).unwrap();
    assert!(once(&bench, Bound::Comments, &actor).is_err());

    shared.set(Quotas::default().with(Bound::Comments, 2));
    once(&bench, Bound::Comments, &actor).unwrap();
    assert!(once(&bench, Bound::Comments, &actor).is_err());

    bench.finish(actor.run.clone().unwrap().run, EndCause::Stopped(StopReason::Preempted));
    let again = Actor::worker("bob", bench.start(&own(&actor)), own(&actor), actor.tenant.clone());
    once(&bench, Bound::Comments, &again).unwrap();
}

#[test]
fn what_a_tenant_keeps_is_counted_through_edits_moves_and_deletions() {
    let bench = bench(Quotas::default());
    let tenant: Tenant = "acme".parse().unwrap();
    let kept = |bench: &Bench| {
        let kept = bench.readers.with(|view| view.tx.kept_by_tenant(Some(&tenant))).unwrap();
        (kept.entries, kept.bytes)
    };
    let id = bench.create(NewTask { tenant: Some(tenant.clone()), ..titled("four") }).id;
    let task = id.clone();
    let number = bench
        .call(move |board| {
            board.comment(&task, "twelve bytes", None, &alice())?;
            board.attach(&task, &file("b", 50), &alice())?;
            board.attach(&task, &file("a", 100), &alice())
        })
        .unwrap()
        .id;
    assert_eq!(kept(&bench), (4, 4 + 12 + 150));
    bench.call(move |board| board.detach_file(number, &alice())).unwrap();
    assert_eq!(kept(&bench), (3, 4 + 12 + 50));
    bench
        .call(move |board| {
            board.archive(&id, crate::Detach::Refuse, &alice())?;
            board.delete(&id, &alice())
        })
        .unwrap();
    assert_eq!(kept(&bench), (0, 0));
    bench.check();
}

#[test]
fn a_reply_to_a_worker_has_the_newest_texts_whole_and_says_what_it_leaves_out() {
    let bench = bench(Quotas::default());
    let actor = worker(&bench, "acme");
    let id = own(&actor);
    let long = "x".repeat(crate::model::limits::COMMENT);
    bench
        .call(move |board| {
            board.comment(&id, "short and old", None, &alice())?;
            (0..6).try_for_each(|_| board.comment(&id, &long, None, &alice()).map(drop))
        })
        .unwrap();
    let thread = bench.readers.with(|view| view.thread(&own(&actor), None, &actor)).unwrap().rows;
    let sizes: Vec<usize> = thread.iter().map(|comment| comment.body.len()).collect();
    assert_eq!(sizes[3..], [crate::model::limits::COMMENT; 4]);
    for left_out in &thread[..3] {
        assert!(left_out.body.starts_with("[left out: "), "{}", left_out.body);
    }
    let all = bench.readers.with(|view| view.thread(&own(&actor), None, &alice())).unwrap().rows;
    assert_eq!(all[0].body, "short and old");
}

#[test]
fn a_task_has_no_more_children_than_are_promoted_at_once_and_parents_given_at_its_birth_are_charged() {
    let bench = bench(Quotas::default().with(Bound::Links, 2));
    let actor = worker(&bench, "acme");
    let id = own(&actor);
    let with_parent = NewTask { parents: vec![id.clone()], ..titled("child") };
    for _ in 0..2 {
        let (new, actor) = (with_parent.clone(), actor.clone());
        bench.call(move |board| board.create(new, &actor)).unwrap();
    }
    let (new, by) = (with_parent.clone(), actor.clone());
    let refused = bench.call(move |board| board.create(new, &by)).unwrap_err();
    assert!(refused.to_string().starts_with("links: "), "{refused}");

    crate::store::links::fill(&bench.path, &id, crate::model::limits::CHILDREN - 2);
    let refused = bench.call(move |board| board.create(with_parent, &alice())).unwrap_err();
    assert!(refused.to_string().contains("10000 children"), "{refused}");
    assert!(refused.hint().is_some());
    let other = bench.create(NewTask { tenant: actor.tenant.clone(), ..titled("other") }).id;
    let refused = bench
        .call(move |board| board.link(&id, &other, crate::AtWork::TakeBack, &alice()).map(drop))
        .unwrap_err();
    assert!(refused.to_string().contains("10000 children"), "{refused}");
}

#[test]
fn the_stored_replies_of_a_run_are_bounded_and_the_latest_are_kept() {
    let bench = bench(Quotas::default());
    let actor = worker(&bench, "acme");
    let caller = crate::Caller::for_actor(&actor);
    let request = |at: usize| {
        crate::Request::new(caller.clone(), "heartbeat", format!("id-{at}").parse().unwrap(), b"{}")
    };
    for at in 0..1100 {
        bench.writer.submit_once(request(at), move |_| Ok(at), |_| {});
    }
    bench.call(|_| Ok(())).unwrap();
    let stored = |at: usize| bench.readers.with(|view| view.stored_reply(&request(at))).unwrap().is_some();
    let kept: Vec<usize> = (0..1100).filter(|at| stored(*at)).collect();
    assert_eq!(kept, (100..1100).collect::<Vec<_>>());
}

#[test]
fn what_runs_have_used_is_no_part_of_what_the_log_says() {
    let bench = bench(Quotas::default());
    let actor = worker(&bench, "acme");
    once(&bench, Bound::Comments, &actor).unwrap();
    let rows = || crate::store::usage::counted(&bench.path);
    assert_ne!(rows(), 0);
    bench.check();
    crate::store::usage::lose(&bench.path);
    bench.check();
    once(&bench, Bound::Comments, &actor).unwrap();
    bench.finish(actor.run.clone().unwrap().run, EndCause::Stopped(StopReason::Preempted));
    assert_eq!(rows(), 0, "they go with the run");
    bench.check();
}
