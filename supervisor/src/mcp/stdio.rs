//! MCP server over standard input and output: one message per line, limited in size and number.

use std::sync::Arc;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetExtensions as _, JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::service::ServerInitializeError;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServiceExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::board::ToolBoard;
use super::script::Scripts;
use super::server::McpServer;
use crate::client::Client;
use base::failure::{Failure, with_causes};

/// Size limit of a message, in bytes. A longer one is skipped, and logged. Requests have tighter limits with an error
/// reply.
const MESSAGE: usize = 16 << 20;
/// Limit on the requests being handled; further ones wait in the pipe.
const UNDER_WAY: usize = 32;

/// Serves a client until it closes standard input. Calls in progress then have a few seconds to complete.
///
/// # Errors
/// The first messages do not follow the protocol.
pub(crate) async fn serve(client: Client) -> Result<(), Failure> {
    let (client, closing) = (Arc::new(client), CancellationToken::new());
    let scripts = client.worker().map(|_| Arc::new(Scripts::new(Arc::clone(&client), closing.clone())));
    let server = McpServer::new(Arc::new(ToolBoard::Client(client)), scripts.clone());
    let transport = BoundedTransport::new(tokio::io::stdin(), tokio::io::stdout(), closing.clone());
    let end = match server.serve(transport).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|e| e.to_string()),
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(with_causes(&error)),
    };
    closing.cancel();
    if let Some(scripts) = scripts {
        scripts.over().await;
    }
    end.map_err(|error| Failure::failed(format!("the server ended: {error}")))
}

/// Transport with a limit on the requests being handled.
struct BoundedTransport<R: AsyncRead, W: AsyncWrite> {
    lines: AsyncRwTransport<RoleServer, R, W>,
    room: Arc<Semaphore>,
    /// Permit for the next request. Stored, because `receive` may be cancelled and called again.
    next: Option<OwnedSemaphorePermit>,
    /// True once a request has opened the conversation. Earlier notifications are skipped, because they cannot refer to
    /// anything.
    is_open: bool,
    /// Cancelled at the end of the input.
    closing: CancellationToken,
}

impl<R, W> BoundedTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn new(input: R, output: W, closing: CancellationToken) -> Self {
        let lines = AsyncRwTransport::new_server(input, output).with_max_line_length(MESSAGE);
        BoundedTransport {
            lines,
            room: Arc::new(Semaphore::new(UNDER_WAY)),
            next: None,
            is_open: false,
            closing,
        }
    }
}

impl<R, W> Transport<RoleServer> for BoundedTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.lines.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        if self.next.is_none() {
            // The semaphore is never closed.
            self.next = Arc::clone(&self.room).acquire_owned().await.ok();
        }
        loop {
            let Some(mut message) = self.lines.receive().await else {
                self.closing.cancel();
                return None;
            };
            if let JsonRpcMessage::Request(request) = &mut message {
                let asks_first = matches!(
                    request.request,
                    ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_)
                );
                self.is_open |= !asks_first;
                // The permit is released when the call drops its context.
                if let Some(room) = self.next.take() {
                    request.request.extensions_mut().insert(Arc::new(room));
                }
                return Some(message);
            }
            if self.is_open {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.lines.close().await
    }
}
