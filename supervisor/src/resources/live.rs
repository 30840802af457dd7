//! `GET /api/v1/runs/live`: the live workers, each as one flat record. `status` has the same facts among others.

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use kernel::{BoardName, Profile, Purpose, RunId, TaskId, Tenant, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::{Ask, Routes, written};
use base::failure::Failure;
use verbs::{WorkerHealth, WorkerLine};

pub(super) fn mount(router: Routes) -> Routes {
    router.route("/api/v1/runs/live", get(live))
}

/// The live workers of a board, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LiveRuns {
    runs: Vec<LiveWorker>,
    now: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LiveWorker {
    #[schemars(with = "String")]
    board: BoardName,
    task: TaskId,
    title: String,
    run: RunId,
    purpose: Purpose,
    profile: Option<Profile>,
    /// Lane of the profile; none if the lane no longer exists.
    lane: Option<String>,
    tenant: Option<Tenant>,
    /// Pid of the worker, once it runs.
    pid: Option<i32>,
    started_at: Timestamp,
    age_seconds: u64,
    /// Time until it is ended, in seconds; none without a limit.
    left_seconds: Option<u64>,
    /// Time at which it is ended.
    deadline: Option<Timestamp>,
    /// CPU time of its processes, in microseconds. The use is the difference of two readings.
    cpu_us: Option<u64>,
    memory_bytes: Option<u64>,
    processes: Option<usize>,
    /// Tokens used, as reported by its agent.
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost_usd_micros: Option<u64>,
    /// Note that it sent with its last heartbeat.
    last_note: Option<String>,
    last_progress_at: Option<Timestamp>,
    health: WorkerHealth,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveQuery {
    tenant: Option<Tenant>,
    assignee: Option<Profile>,
}

async fn live(ask: Ask<LiveQuery>) -> Result<Response, Failure> {
    let (ask, LiveQuery { tenant, assignee }) = ask.split();
    let report = ask.dispatch(verbs::Status { tenant, assignee, ..verbs::Status::default() }).await?;
    let call = ask.admit::<verbs::Status>().await?;
    let (roster, config) = (call.service.roster(), call.service.config());
    let lane = |profile: &Profile| {
        roster.resolve(profile, None, &config).ok().map(|resolved| resolved.lane_name.to_string())
    };
    let now = report.now;
    let of = |worker: WorkerLine| {
        let lane = worker.run.profile.as_ref().and_then(lane);
        LiveWorker::from_worker(worker, lane, now)
    };
    let board = report.board;
    let runs = report.workers.into_iter().filter(|worker| worker.run.board == board).map(of).collect();
    written(StatusCode::OK, LiveRuns { runs, now }).await
}

impl LiveWorker {
    fn from_worker(worker: WorkerLine, lane: Option<String>, now: Timestamp) -> Self {
        let WorkerLine { run, age_seconds, left_seconds, usage, is_stopped: _, health, last_note, tree: _ } =
            worker;
        let spent = run.spent.as_ref();
        LiveWorker {
            board: run.board,
            task: run.task,
            title: run.title,
            run: run.run,
            purpose: run.purpose,
            profile: run.profile,
            lane,
            tenant: run.tenant,
            pid: run.pid,
            started_at: run.started_at,
            age_seconds,
            left_seconds,
            deadline: left_seconds.map(|left| now.after(std::time::Duration::from_secs(left))),
            cpu_us: usage.map(|usage| usage.cpu_us),
            memory_bytes: usage.map(|usage| usage.memory_bytes),
            processes: usage.map(|usage| usage.processes),
            input_tokens: spent.map(|spent| spent.input_tokens),
            output_tokens: spent.map(|spent| spent.output_tokens),
            cost_usd_micros: spent.and_then(|spent| spent.cost_micros),
            last_note,
            last_progress_at: run.last_heartbeat_at,
            health,
        }
    }
}
