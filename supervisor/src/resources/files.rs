//! Upload and download of attachments.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::Extension;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get};
use http_body_util::BodyExt as _;
use kernel::limits::ATTACHMENT;
use kernel::{Attachment, AttachmentId, BlobError, Draft, Sealed, TaskId};
use tokio_util::io::ReaderStream;

use api::{Ask, Call, Id, RequestPermit, Routes, Streamed, blocking, written};
use base::exit::Code;
use base::failure::Failure;
use service::BoardHandle;

/// Size of a write of an upload, in bytes. Further data waits in the socket.
const PIECE: usize = 256 << 10;
/// Size of a read of a download, in bytes.
const READ: usize = 64 << 10;

pub(super) fn mount(router: Routes) -> Routes {
    router
        .route("/api/v1/tasks/{id}/attachments", get(list).post(upload))
        .route("/api/v1/attachments/{id}", delete(remove).get(download))
}

async fn list(ask: Ask, Id(id): Id<TaskId>) -> Result<Response, Failure> {
    ask.answer(verbs::Attachments { task_id: Some(id) }).await
}

async fn remove(ask: Ask, Id(id): Id<AttachmentId>) -> Result<Response, Failure> {
    ask.answer(verbs::AttachRm { attachment_id: id }).await
}

async fn upload(ask: Ask<verbs::Attach>, id: Id<TaskId>, body: Body) -> Result<Response, Failure> {
    let (ask, attach) = ask.split();
    let id = id.unless_other(attach.task_id.as_ref())?;
    let attach = attach.to(id);
    let call = ask.admit::<verbs::Attach>().await?;
    attach.permit(&call).await?;
    if let Some(length) = ask.length().filter(|length| *length > ATTACHMENT) {
        let name = attach.filename.as_deref().unwrap_or("the file");
        return Err(verbs::too_large(name, length));
    }
    let slot = ask.request_permit().map(RequestPermit::upload).transpose()?;
    let sealed = receive(call.board()?, body).await?;
    let kept = call.make(attach.with(sealed)).await?;
    drop(slot);
    written(StatusCode::CREATED, kept).await
}

/// Stores a body as it arrives. Takes a blocking thread only for data that has arrived.
async fn receive(board: &Arc<BoardHandle>, mut body: Body) -> Result<Sealed, Failure> {
    let blobs = board.blobs().clone();
    let mut draft = stored(move || blobs.draft()).await?;
    let (mut pieces, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Failure::usage(format!("the body of the request was cut off: {error}")))?;
        let Ok(piece) = frame.into_data() else { continue };
        length += piece.len();
        pieces.push(piece);
        if length >= PIECE {
            draft = append(draft, std::mem::take(&mut pieces)).await?;
            length = 0;
        }
    }
    let draft = append(draft, pieces).await?;
    stored(move || draft.seal()).await
}

async fn append(mut draft: Draft, pieces: Vec<Bytes>) -> Result<Draft, Failure> {
    stored(move || {
        for piece in pieces {
            draft.write(&piece)?;
        }
        Ok(draft)
    })
    .await
}

/// Runs a step on the file of a body. The file is removed if the step fails.
async fn stored<T: Send + 'static>(
    step: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, Failure> {
    blocking("the file was not stored", step).await?.map_err(|error| match error {
        BlobError::TooLarge => Failure::new(Code::TooLarge, format!("the file was not taken: {error}"))
            .hint("compress or split it"),
        BlobError::Source(_) | BlobError::Io { .. } => Failure::from(kernel::Error::from(error)),
    })
}

async fn download(ask: Ask, Id(id): Id<AttachmentId>) -> Result<Response, Failure> {
    let call = ask.admit::<verbs::Attachments>().await?;
    let actor = call.actor.clone();
    let none = move || {
        Failure::new(Code::NotFound, format!("no such attachment: {id}"))
            .hint("see `supervisor attachments <task>`")
    };
    let found = call
        .read(move |view| {
            let Some(file) = view.attachment(id)? else { return Ok(None) };
            // A file of a task that the caller may not see is reported as missing.
            match view.task_for(&file.task_id, &actor) {
                Err(kernel::Error::NotFound { .. }) => Ok(None),
                seen => seen.map(|_| Some(file)),
            }
        })
        .await?;
    let file = found.ok_or_else(none)?;
    let bytes = open(&call, &file).await?;
    let headers = [
        (header::CONTENT_TYPE, media_type(&file)),
        (header::CONTENT_LENGTH, file.size.to_string()),
        // A browser saves the file and runs nothing of it, whatever its media type.
        (header::CONTENT_DISPOSITION, "attachment".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CONTENT_SECURITY_POLICY, "sandbox".to_owned()),
        (header::ETAG, format!("\"{}\"", file.sha256)),
    ];
    let body = Body::from_stream(ReaderStream::with_capacity(bytes, READ));
    Ok((headers, Extension(Streamed), body).into_response())
}

async fn open(call: &Call, file: &Attachment) -> Result<tokio::fs::File, Failure> {
    let board = Arc::clone(call.board()?);
    let digest = file.sha256.clone();
    let opened = blocking("the file was not read", move || {
        let file = board.blobs().open(&digest)?;
        let length = file.metadata().map_or(0, |meta| meta.len());
        Ok::<_, BlobError>((file, length))
    })
    .await?;
    let (bytes, length) = opened.map_err(|error| Failure::from(kernel::Error::from(error)))?;
    if length != file.size {
        return Err(Failure::failed(format!(
            "attachment {} is damaged: it has {length} bytes instead of {}",
            file.id, file.size
        ))
        .hint("supervisor doctor shows other damage"));
    }
    Ok(tokio::fs::File::from_std(bytes))
}

/// Returns the media type of a file as given at upload, if it is valid in a header.
fn media_type(file: &Attachment) -> String {
    let content_type = file
        .content_type
        .as_deref()
        .filter(|content_type| header::HeaderValue::from_str(content_type).is_ok());
    content_type.unwrap_or("application/octet-stream").to_owned()
}
