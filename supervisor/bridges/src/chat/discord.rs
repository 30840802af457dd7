//! Discord bridge, over the gateway. A broken connection is resumed, so that messages sent meanwhile arrive; a repeated
//! message has the same id. If the gateway has forgotten the session, missed messages are read (`discord_missed.rs`).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::bridge::Bridge;
use super::conversation::Conversation;
use super::discord_message::take;
use super::discord_missed::catch_up;
use delivery::notify::Undelivered;

/// Default address of the gateway.
const GATEWAY: &str = "wss://gateway.discord.gg";
/// Messages in servers and direct messages, with their text (discord.com/developers, "Gateway intents").
const INTENTS: u64 = 1 << 9 | 1 << 12 | 1 << 15;
/// Time limit of the first message.
const HELLO: Duration = Duration::from_secs(15);

/// Pause before a new connection.
const PAUSE: Duration = Duration::from_secs(1);

/// State by which a broken connection is resumed.
#[derive(Debug, Default)]
struct GatewaySession {
    id: Option<String>,
    /// Number of the last event.
    number: Option<u64>,
    /// Id of the bot's user, by which its own messages are recognised.
    bot_id: String,
    /// True if the last connection was accepted.
    is_live: bool,
}

/// End of a connection that did not break.
enum ConnectionEnd {
    Stopped,
    /// The service asks for a new connection.
    Again,
}

/// Handles messages until `stop`.
pub(super) async fn run(bridge: &Bridge, stop: &CancellationToken) -> Result<(), Undelivered> {
    let mut conversation = bridge.conversation();
    let mut session = GatewaySession::default();
    loop {
        match connection(bridge, &mut conversation, &mut session, stop).await {
            Ok(ConnectionEnd::Stopped) => return Ok(()),
            Ok(ConnectionEnd::Again) => {}
            // A connection that was accepted is resumed at once, without the pause for a failing bridge.
            Err(_) if session.id.is_some() && session.is_live => {}
            Err(error) => return Err(error),
        }
        session.is_live = false;
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

async fn connection(
    bridge: &Bridge,
    conversation: &mut Conversation,
    session: &mut GatewaySession,
    stop: &CancellationToken,
) -> Result<ConnectionEnd, Undelivered> {
    let talk = bridge.api();
    let base = bridge.chat.gateway.as_deref().unwrap_or(GATEWAY).trim_end_matches('/');
    let mut socket = talk.discord_socket(&format!("{base}/?v=10&encoding=json")).await?;
    let hello = tokio::time::timeout(HELLO, socket.next()).await;
    let hello = hello.map_err(|_| Undelivered::later("the gateway says nothing"))??;
    let beat = hello["d"]["heartbeat_interval"].as_u64().unwrap_or(41_250).clamp(1_000, 120_000);
    let beat = Duration::from_millis(beat);
    let token = talk.token()?;
    socket.send(&opening(session, &token)).await?;
    let (mut next_beat, mut is_answered) = (Instant::now() + beat, true);
    loop {
        // Cancel-safe: an incomplete message stays in the socket.
        let message = tokio::select! {
            () = stop.cancelled() => return Ok(ConnectionEnd::Stopped),
            () = tokio::time::sleep_until(next_beat) => {
                if !is_answered {
                    return Err(Undelivered::later("the gateway gives no sign of life"));
                }
                socket.send(&json!({ "op": 1, "d": session.number })).await?;
                (next_beat, is_answered) = (Instant::now() + beat, false);
                continue;
            }
            message = socket.next() => message?,
        };
        if let Some(number) = message["s"].as_u64() {
            session.number = Some(number);
        }
        match message["op"].as_u64() {
            // Opcodes of the gateway (discord.com/developers, "Opcodes and Status Codes"). 0: an event.
            Some(0) => event(bridge, conversation, session, &message).await,
            // 1: a request for a heartbeat.
            Some(1) => socket.send(&json!({ "op": 1, "d": session.number })).await?,
            // 7: reconnect and resume.
            Some(7) => return Ok(ConnectionEnd::Again),
            // 9: the session is invalid, so nothing can be resumed.
            Some(9) => {
                *session = GatewaySession::default();
                return Err(Undelivered::later("the gateway does not know the session"));
            }
            // 11: acknowledgement of a heartbeat.
            Some(11) => is_answered = true,
            Some(_) | None => {}
        }
    }
}

/// Returns the first message: it resumes a session, or begins one.
fn opening(session: &GatewaySession, token: &str) -> Value {
    match &session.id {
        Some(id) => json!({ "op": 6, "d": { "token": token, "session_id": id, "seq": session.number } }),
        None => json!({ "op": 2, "d": {
            "token": token, "intents": INTENTS,
            "properties": { "os": "linux", "browser": "supervisor", "device": "supervisor" },
        } }),
    }
}

async fn event(
    bridge: &Bridge,
    conversation: &mut Conversation,
    session: &mut GatewaySession,
    message: &Value,
) {
    let data = &message["d"];
    match message["t"].as_str() {
        Some("READY") => {
            session.is_live = true;
            session.id = data["session_id"].as_str().map(str::to_owned);
            data["user"]["id"].as_str().unwrap_or_default().clone_into(&mut session.bot_id);
            bridge.connected(Some(&format!("@{}", data["user"]["username"].as_str().unwrap_or("?"))));
            catch_up(bridge, conversation, &session.bot_id).await;
        }
        Some("RESUMED") => {
            session.is_live = true;
            bridge.connected(None);
        }
        Some("MESSAGE_CREATE") => {
            take(bridge, conversation, &session.bot_id, data, data["guild_id"].is_null()).await;
        }
        Some(_) | None => {}
    }
}
