//! Tests of callers that disconnect after each step of a verb: nothing stays acquired, and started work is completed.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper::{Request, StatusCode};
use kernel::{Actor, BoardName, ClaimTerms, EventFilter, NewTask, RunId, TaskId};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::resources::surface;
use api::{Call, Effect, Peer, REQUEST_HEADER, Verb, api_router, blocking, hash_token};
use base::exit::Code;
use base::failure::Failure;
use base::paths::RootChoice;
use service::{BoardHandle, Listener, Mode, Service};
use setup::config::Config;
use verbs::{RemoveBoard, Type};

const TOKEN: &str = "the token of the run";

/// A daemon that ignores notifications.
#[derive(Debug)]
struct Deaf;

impl Listener for Deaf {
    fn board_changed(&self, _: &BoardName) {}

    fn board_damaged(&self, board: BoardName, failure: Failure) {
        panic!("{board}: {failure}");
    }
}

/// A daemon with a board, and a task whose worker runs at a terminal.
struct Lab {
    _dir: tempfile::TempDir,
    service: Arc<Service>,
    board: Arc<BoardHandle>,
    task: TaskId,
    run: RunId,
    /// The worker's end of its terminal.
    keys: OwnedFd,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let choice = RootChoice { root: Some(dir.path().into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        root.create().unwrap();
        let config = Config::load(&root).unwrap();
        let service = Arc::new(Service::new(root, config, Mode::Daemon(Arc::new(Deaf))));
        let board = service.board(&BoardName::default()).unwrap();
        let claimed = board.writer().unwrap().call(|board| {
            let new = NewTask { title: "work".to_owned(), ..NewTask::default() };
            let task = board.create(new, &Actor::person("ann"))?.task.id;
            let hash = hash_token(TOKEN);
            let terms = ClaimTerms { ttl: Duration::from_hours(1), token_hash: Some(&hash) };
            board.open_claim(&task, &terms, &Actor::person("ann"))
        });
        let claimed = claimed.unwrap();
        let place = service.root().run_dir(board.name(), claimed.run);
        std::fs::create_dir_all(&place).unwrap();
        let keys = place.join("keys");
        nix::unistd::mkfifo(&keys, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
        let keys = rustix::fs::open(&keys, flags, rustix::fs::Mode::empty()).unwrap();
        Lab { _dir: dir, service, board, task: claimed.task, run: claimed.run, keys }
    }

    fn call(&self, id: &str) -> Call {
        let (service, board) = (Arc::clone(&self.service), Arc::clone(&self.board));
        let actor = Actor { uid: Some(0), ..Actor::person("ann") };
        Call::new(service, board.name().clone(), Some(board), actor, Some(id.parse().unwrap()))
    }

    fn typing(&self, text: &str) -> Type {
        let attached = Type::attached(&self.task, "");
        Type { text: text.to_owned(), holder: None, ..attached }
    }

    /// Waits until all started work has ended, including work abandoned on a thread.
    async fn rest(&self) {
        let begun = self.service.started_verbs();
        begun.close();
        begun.wait().await;
        begun.reopen();
        blocking("nothing was waited for", || ()).await.unwrap();
    }

    fn is_at_work(&self) -> bool {
        let (task, ann) = (&self.task, Actor::person("ann"));
        self.board.readers().with(|view| view.run_to_type_at(task, &ann)).is_ok()
    }

    fn keyboard_is_free(&self) -> bool {
        self.board.take_terminal_once(self.run, &Actor::person("bob")).is_ok()
    }

    /// The worker reads all typed input.
    fn read_all(&self) {
        while rustix::io::read(&self.keys, &mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {}
    }

    /// Number of logged inputs.
    fn typed(&self) -> usize {
        let filter = EventFilter { task: Some(self.task.clone()), ..EventFilter::default() };
        let events = self.board.readers().with(|view| view.events(&filter)).unwrap();
        events.iter().filter(|event| event.kind == "terminal_typed").count()
    }
}

/// Polls a future whenever it is woken, and drops it after this many polls. Returns its output, if any.
async fn given_up_after<F: Future>(polls: usize, work: F) -> Option<F::Output> {
    let (mut work, mut left) = (Box::pin(work), polls);
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(cx).map(Some)
    })
    .await
}

/// A single blocking thread: blocking work runs in order.
fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.max_blocking_threads(1).enable_all().build().unwrap().block_on(test);
}

#[test]
fn who_hangs_up_while_it_types_leaves_no_keyboard_taken_and_has_typed_once_or_not_at_all() {
    run(async {
        let lab = Lab::new();
        for polls in 1.. {
            let id = format!("request-{polls}");
            let before = lab.typed();
            let done = given_up_after(polls, lab.call(&id).make(lab.typing("x"))).await;
            lab.rest().await;
            assert!(lab.keyboard_is_free(), "after {polls} polls");
            let typed = lab.typed() - before;
            assert_eq!(typed, 1, "what has begun comes to its end, after {polls} polls");
            // A repeat of the request: the input is not typed twice.
            let again = lab.call(&id).make(lab.typing("x")).await.unwrap();
            assert_eq!((again.bytes, lab.typed() - before), (1, 1));
            if done.is_some() {
                break;
            }
        }
    });
}

#[test]
fn whatever_ends_a_verb_that_types_leaves_the_keyboard_free_and_a_repeat_claims_nothing() {
    run(async {
        let lab = Lab::new();
        for polls in 1.. {
            let id = format!("request-{polls}");
            // As after a panic or the end of the daemon: no task continues.
            let call = lab.call(&id).repeatable(&lab.typing("x")).unwrap();
            let done = given_up_after(polls, lab.typing("x").run(call)).await;
            lab.rest().await;
            assert!(lab.keyboard_is_free(), "after {polls} polls");
            let typed = lab.typed();
            match lab.call(&id).make(lab.typing("x")).await {
                Ok(reply) => assert_eq!(reply.bytes, 1),
                Err(failure) => {
                    assert_eq!(failure.code, Code::Conflict, "{failure}");
                    assert!(failure.message.contains("not known"), "{failure}");
                    assert_eq!(lab.typed(), typed);
                }
            }
            if done.is_some() {
                break;
            }
        }
    });
}

#[test]
fn who_is_refused_at_a_terminal_is_refused_again_by_the_same_request_and_types_with_another() {
    run(async {
        let lab = Lab::new();
        let long = "x".repeat(4000);
        let mut tries = 0..1000;
        let (id, refused) = loop {
            let id =
                format!("request-{}", tries.next().expect("a terminal that nobody reads is full at last"));
            if let Err(failure) = lab.call(&id).make(lab.typing(&long)).await {
                break (id, failure);
            }
        };
        assert_eq!(refused.code, Code::TryAgain, "{refused}");
        let typed = lab.typed();
        let again = lab.call(&id).make(lab.typing(&long)).await.unwrap_err();
        assert_eq!((again, lab.typed()), (refused, typed), "nothing was typed, and nothing else is said");
        lab.read_all();
        let again = lab.call(&id).make(lab.typing(&long)).await.unwrap_err();
        assert_eq!(
            (again.code, lab.typed()),
            (Code::TryAgain, typed),
            "a repeat is one, also when there is room"
        );
        assert_eq!(lab.call("another").make(lab.typing(&long)).await.unwrap().bytes, 4000);
    });
}

#[test]
fn who_hangs_up_while_a_board_is_removed_leaves_it_removed_or_served() {
    run(async {
        let lab = Lab::new();
        let slug: BoardName = "old".parse().unwrap();
        for polls in 1.. {
            drop(lab.service.create_board(&slug).unwrap());
            let verb = RemoveBoard { slug: slug.clone(), delete: true };
            let done = given_up_after(polls, lab.call("x").make(verb.clone())).await;
            lab.rest().await;
            assert!(lab.service.opened(&slug).unwrap().is_none(), "after {polls} polls");
            assert!(!lab.service.root().board_names().unwrap().contains(&slug), "it is removed to the end");

            drop(lab.service.create_board(&slug).unwrap());
            // As after a panic or the end of the daemon: no task continues.
            given_up_after(polls, verb.run(lab.call("y"))).await;
            lab.rest().await;
            lab.service.opened(&slug).unwrap_or_else(|failure| panic!("after {polls} polls: {failure}"));
            if done.is_some() {
                break;
            }
        }
    });
}

#[test]
fn a_board_that_is_not_there_is_not_taken_out_of_service_and_one_that_stays_refused_stays_so() {
    run(async {
        let lab = Lab::new();
        let slug: BoardName = "none".parse().unwrap();
        let verb = RemoveBoard { slug: slug.clone(), delete: false };
        let failure = lab.call("x").make(verb.clone()).await.unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (Code::NotFound, "there is no board `none`"));
        drop(lab.service.create_board(&slug).unwrap());
        // A reader keeps the board from being removed; another reader is refused meanwhile.
        let held = lab.service.board(&slug).unwrap();
        let being = Failure::failed("taken out");
        let out = lab.service.take_out(&slug, being.clone()).unwrap();
        let twice = lab.call("y").make(verb.clone()).await.unwrap_err();
        assert!(twice.message.contains("is being removed already"), "{twice}");
        assert_eq!(lab.service.opened(&slug).unwrap_err(), being);
        drop(out);
        assert!(Arc::ptr_eq(&lab.service.opened(&slug).unwrap().unwrap(), &held), "it is served as before");
        // A board found damaged meanwhile stays out of service.
        let out = lab.service.take_out(&slug, being).unwrap();
        lab.service.withdraw(&slug, Failure::failed("damaged"));
        drop(out);
        assert_eq!(lab.service.opened(&slug).unwrap_err().message, "damaged");
        // Requests are refused before the removal, not after it.
        drop(held);
        lab.service.take_out(&slug, Failure::failed("taken out")).unwrap();
        assert_eq!(lab.service.opened(&slug).unwrap_err().message, "damaged");
        lab.call("z").make(verb).await.unwrap();
        assert!(lab.service.opened(&slug).unwrap().is_none());
    });
}

/// Request bodies; each verb accepts one or none.
fn bodies(lab: &Lab) -> [Value; 7] {
    let task = lab.task.as_str();
    [
        json!({}),
        json!({ "task_id": task }),
        json!({ "task_ids": [task] }),
        json!({ "task_id": task, "body": "text" }),
        json!({ "task_id": task, "enter": true }),
        json!({ "title": "text" }),
        json!({ "slug": "old" }),
    ]
}

fn router(lab: &Lab) -> axum::Router {
    api_router(Arc::clone(&lab.service), None, surface(), tokio_util::sync::CancellationToken::new()).router
}

fn request(peer: Peer, (verb, body): (&str, &Value)) -> Request<Body> {
    let mut request = Request::post(format!("/api/v1/verbs/{verb}"))
        .header("content-type", "application/json")
        .header(REQUEST_HEADER, uuid::Uuid::new_v4().to_string());
    if let Peer::Worker = peer {
        request = request.header("authorization", format!("Bearer {TOKEN}"));
    }
    let mut request = request.body(Body::from(body.to_string())).unwrap();
    request.extensions_mut().insert(peer);
    request
}

/// Sends a request, and disconnects after some polls. Returns the status of a response before that.
async fn asked(router: axum::Router, request: Request<Body>, polls: usize) -> Option<StatusCode> {
    let answer = async {
        let response = router.oneshot(request).await.unwrap();
        let status = response.status();
        response.into_body().collect().await.unwrap();
        status
    };
    given_up_after(polls, answer).await
}

/// Verbs that are tested elsewhere: they need a listener or an owner loop.
const APART: [&str; 2] = ["dashboard", "stop"];

#[test]
fn whichever_verb_is_given_up_after_whichever_of_its_steps_nothing_stays_taken() {
    run(async {
        let mut lab = Lab::new();
        let verbs = surface().verbs.into_iter().filter(|verb| verb.effect != Effect::Read);
        let old: BoardName = "old".parse().unwrap();
        let mut done = BTreeSet::new();
        for verb in verbs.filter(|verb| !APART.contains(&verb.name)) {
            if !lab.is_at_work() {
                lab = Lab::new();
            }
            let router = router(&lab);
            for body in bodies(&lab) {
                for polls in 1.. {
                    drop(lab.service.create_board(&old).unwrap());
                    let request = request(Peer::InProcess(0), (verb.name, &body));
                    let answered = asked(router.clone(), request, polls).await;
                    lab.rest().await;
                    assert!(lab.keyboard_is_free(), "{} {body} after {polls} polls", verb.name);
                    let served = lab.service.opened(lab.board.name()).unwrap();
                    assert!(served.is_some() && !lab.board.is_closing(), "{} after {polls} polls", verb.name);
                    let others = lab.service.opened(&old);
                    assert!(others.is_ok(), "{} {body} after {polls} polls: {others:?}", verb.name);
                    if let Some(status) = answered {
                        done.extend(status.is_success().then_some(verb.name));
                        break;
                    }
                }
            }
        }
        // The others were refused: their bodies lack a prerequisite.
        assert!(done.len() > 12 && done.contains("type") && done.contains("remove-board"), "{done:?}");
    });
}

#[test]
fn a_worker_that_hangs_up_keeps_its_turns_as_long_as_what_it_has_begun_and_no_longer() {
    run(async {
        let lab = Lab::new();
        let (router, begun) = (router(&lab), lab.service.started_verbs());
        let body = json!({ "task_id": lab.task.as_str(), "body": "said" });
        let send = || asked(router.clone(), request(Peer::Worker, ("comment", &body)), usize::MAX);
        // No write happens until this ends.
        let (go, gone) = std::sync::mpsc::channel::<()>();
        lab.board.writer().unwrap().submit(
            move |_| {
                gone.recv().unwrap();
                Ok(())
            },
            drop,
        );
        for at_once in 1..=2 {
            let client = tokio::spawn(send());
            let has_begun = async {
                while begun.len() < at_once {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_mins(1), has_begun).await.expect("it has begun");
            client.abort();
            client.await.unwrap_err();
        }
        let third = tokio::spawn(send());
        // The token is looked up, then the request gets its permit.
        for _ in 0..3 {
            tokio::task::yield_now().await;
            blocking("nothing was waited for", || ()).await.unwrap();
        }
        assert_eq!(begun.len(), 2, "a run has two turns, whether its clients wait or not");
        go.send(()).unwrap();
        assert_eq!(third.await.unwrap(), Some(StatusCode::OK));
        lab.rest().await;
        for _ in 0..3 {
            assert_eq!(send().await, Some(StatusCode::OK), "all turns are given back");
        }
    });
}
