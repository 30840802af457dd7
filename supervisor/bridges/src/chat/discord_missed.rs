//! Reads the Discord messages that were missed while no connection could be resumed: in each channel with a known
//! sender, the messages after the last known one.
//!
//! The numbers of messages grow, so a message whose number is not greater than the last known one was read before. The
//! numbers are not stored on the board, because this would cost a write for each message of a channel.

use std::time::Duration;

use kernel::{Clock as _, SystemClock};
use tokio::time::Instant;

use super::bridge::Bridge;
use super::conversation::Conversation;
use super::discord_message::take;
use delivery::notify::{Undelivered, message_number};
use setup::automation::chat::{Chatroom, Remembered};

/// Time limit for reading all channels. It is short, because the gateway expects a heartbeat after 41 s.
const LIMIT: Duration = Duration::from_secs(20);
/// Number of messages per page.
const PAGE: usize = 100;
/// Longest pause between two pages that the service may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Start of the time in Discord's ids, in milliseconds since 1970, and the number of bits below that time
/// (discord.com/developers, "Snowflakes").
const FIRST: u64 = 1_420_070_400_000;
const SHIFT: u32 = 22;

/// Reads and handles the missed messages of all known channels. The messages of a channel that cannot be read in time
/// are skipped, with a warning in the log.
pub(super) async fn catch_up(bridge: &Bridge, conversation: &mut Conversation, bot_id: &str) {
    let until = Instant::now() + LIMIT;
    for (channel, room) in bridge.service.chats().rooms(&bridge.name) {
        if let Err(error) = read_on(bridge, conversation, bot_id, &channel, room, until).await {
            tracing::warn!(chat = %bridge.name, channel, %error, "chat_messages_missed");
        }
    }
    begin(bridge);
}

/// Adds the configured default channel to the known channels, with the current time as its last message.
fn begin(bridge: &Bridge) {
    let (chats, name) = (bridge.service.chats(), &bridge.name);
    let Some(to) = bridge.channel.to.as_ref().filter(|to| is_number(to)) else { return };
    if chats.rooms(name).iter().any(|(channel, _)| channel == to) {
        return;
    }
    let now = u64::try_from(SystemClock.now().as_micros() / 1000).unwrap_or(0);
    let room = Chatroom { last: now.saturating_sub(FIRST) << SHIFT, is_direct: false };
    chats.received_in(name, to, room, Remembered::Yes);
}

async fn read_on(
    bridge: &Bridge,
    conversation: &mut Conversation,
    bot_id: &str,
    channel: &str,
    room: Chatroom,
    until: Instant,
) -> Result<(), Undelivered> {
    if !is_number(channel) {
        return Ok(());
    }
    let mut after = room.last;
    loop {
        if Instant::now() >= until {
            return Err(Undelivered::later("there was no time to read on"));
        }
        let messages = match bridge.api().discord_messages(channel, after).await {
            Ok(messages) => messages,
            Err(Undelivered::Later { after: Some(pause), .. }) if pause <= LONGEST_PAUSE => {
                tokio::time::sleep(pause).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        for message in &messages {
            take(bridge, conversation, bot_id, message, room.is_direct).await;
        }
        match messages.last().map(message_number) {
            Some(last) if messages.len() >= PAGE && last > after => after = last,
            Some(_) | None => return Ok(()),
        }
    }
}

fn is_number(channel: &str) -> bool {
    !channel.is_empty() && channel.bytes().all(|byte| byte.is_ascii_digit())
}
