//! Paths of boards as a whole, and of the root.

use std::fs::File;
use std::io::{BufWriter, Seek as _};

use axum::body::Body;
use axum::extract::Extension;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, patch};
use kernel::{BoardName, Tenant};
use tokio_util::io::ReaderStream;

use api::{Ask, Id, JsonBody, Routes, Streamed, blocking, written};
use base::failure::Failure;
use service::details::Details;
use upkeep::transfer;

/// Size of a read of an export, in bytes.
const READ: usize = 64 << 10;

pub(super) fn mount(router: Routes) -> Routes {
    router
        .route("/api/v1/boards", get(list).post(create))
        .route("/api/v1/boards/{slug}", patch(edit).delete(remove))
        .route("/api/v1/doctor", get(doctor))
        .route("/api/v1/export", get(export))
}

type Reply = Result<Response, Failure>;

async fn list(ask: Ask<verbs::ListBoards>) -> Reply {
    let (ask, list) = ask.split();
    ask.answer(list).await
}

async fn create(ask: Ask, JsonBody(create): JsonBody<verbs::CreateBoard>) -> Reply {
    written(StatusCode::CREATED, ask.dispatch(create).await?).await
}

async fn edit(ask: Ask, Id(slug): Id<BoardName>, JsonBody(details): JsonBody<Details>) -> Reply {
    ask.answer(verbs::EditBoard { slug, details }).await
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemovalQuery {
    #[serde(default)]
    delete: bool,
}

async fn remove(ask: Ask<RemovalQuery>, Id(slug): Id<BoardName>) -> Reply {
    let (ask, RemovalQuery { delete }) = ask.split();
    ask.answer(verbs::RemoveBoard { slug, delete }).await
}

async fn doctor(ask: Ask<verbs::Doctor>) -> Reply {
    let (ask, doctor) = ask.split();
    ask.answer(doctor).await
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportQuery {
    tenant: Option<Tenant>,
}

/// Sends the board as JSON Lines. The export goes to an unnamed file first, so that a slow client does not keep a
/// snapshot open.
async fn export(ask: Ask<ExportQuery>) -> Reply {
    let (ask, ExportQuery { tenant }) = ask.split();
    let call = ask.admit::<verbs::Export>().await?;
    let board = call.board()?.name().clone();
    let (file, length) = blocking("the export did not finish", move || {
        let root = call.service.root();
        let fail = |e: std::io::Error| Failure::file("write a file in", root.dir(), &e);
        let mut file = tempfile::tempfile_in(root.dir()).map_err(fail)?;
        let mut out = BufWriter::new(&mut file);
        transfer::to_stream(root, &board, tenant.as_ref(), &mut out)?;
        std::io::Write::flush(&mut out).map_err(fail)?;
        drop(out);
        let length = file.stream_position().map_err(fail)?;
        file.rewind().map_err(fail)?;
        Ok::<(File, u64), Failure>((file, length))
    })
    .await??;
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
    ];
    let body = Body::from_stream(ReaderStream::with_capacity(tokio::fs::File::from_std(file), READ));
    Ok((headers, Extension(Streamed), body).into_response())
}
