//! `supervisor __request`: worker of the lane `http`. Posts its task to a service, and reports the response to the
//! board.
//!
//! The process runs confined, like every worker. The response is hostile: it is written to the log as it arrives, a
//! limited part of it is kept, and the verdict goes through a verb of this run, with the checks of every worker. The
//! lane reads any other result from the exit code.
//!
//! The daemon does not ask the service itself: a service that says nothing would hold one of its tasks, and an answer
//! would be read by the process that owns the board. No redirection is followed, which could lead the key and the
//! task to a host that no file names. A verdict is read only from the response, never from standard output.

mod a2a;
mod connection;
mod request;
mod response;
mod verdict;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use self::request::ServiceRequest;
use self::response::ResponseMeaning;
use crate::client::Client;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::complain;
use setup::lanes::Service;

pub(crate) use self::a2a::main as a2a_main;

pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    ended(asked(arguments), async |service: Service| work(&service).await)
}

/// Runs the work for a service. Returns the exit code of the worker.
fn ended(
    asked: Result<Service, Failure>,
    work: impl AsyncFnOnce(Service) -> Result<(), Failure>,
) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::failed(format!("failed to start: {e}")));
    let ended = asked.and_then(|service| runtime?.block_on(work(service)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&format!("error: {}", failure.message));
            if let Some(hint) = &failure.hint {
                complain(&format!("hint: {hint}"));
            }
            ExitCode::from(failure.code.exit())
        }
    }
}

fn asked(mut arguments: impl Iterator<Item = OsString>) -> Result<Service, Failure> {
    let text = arguments.next().and_then(|text| text.into_string().ok());
    let service = text.and_then(|text| serde_json::from_str(&text).ok());
    service.ok_or_else(|| {
        Failure::failed("its argument is not the service of a lane").hint(
            "the lane `http` starts it, with {service} as its argument: `supervisor help docs/lanes/http.md`",
        )
    })
}

/// Sends the request, and reports the verdict in the response.
async fn work(service: &Service) -> Result<(), Failure> {
    let client = Client::of_this_run()?;
    let order = ServiceRequest::of_this_run(service)?;
    let answer = connection::send(&order).await?;
    match ResponseMeaning::read(answer).await? {
        ResponseMeaning::Verdict(verdict) => verdict.tell(&client).await,
        ResponseMeaning::Words => Ok(()),
        ResponseMeaning::Later { why, pause } => {
            hold(&client, &why, pause).await;
            Err(Failure::new(Code::Throttled, why))
        }
    }
}

/// Records how long the service refuses the account. The exit code already reports the refusal, so an error here only
/// loses the time.
async fn hold(client: &Client, why: &str, pause: Duration) {
    let until = format!("{}s", pause.as_secs().max(1));
    let hold = serde_json::from_value::<verbs::Hold>(serde_json::json!({ "reason": why, "until": until }));
    let Ok(hold) = hold else { return };
    if let Err(failure) = client.call(&hold).await {
        complain(&format!("warning: the board does not know for how long: {failure}"));
    }
}
