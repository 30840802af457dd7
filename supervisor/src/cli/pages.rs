//! Fetches the pages of a list for the command line, up to the requested number of rows.

use crate::client::Client;
use crate::output::Output;
use base::failure::Failure;
use verbs::{Listed, Pages};

/// Calls a verb with pages and prints the requested number of rows. The text for a person mentions further rows. JSON is an
/// array, or a page with its cursor if the command requests one.
pub(super) async fn run<V: Pages + Clone>(
    client: &Client,
    mut verb: V,
    output: Output,
) -> Result<u8, Failure> {
    verb.localize(client.here())?;
    if verb.asks_for_pages() && output.json() {
        return output.reply::<V>(&client.call(&verb).await?);
    }
    let (rows, next) = all(client, &verb).await?;
    output.reply::<V>(&if output.json() { Listed::Rows(rows) } else { Listed::Page { rows, next } })
}

/// Fetches the requested number of rows page by page. Returns them with the cursor of the next row; none at the end.
pub(super) async fn all<V: Pages + Clone>(
    client: &Client,
    verb: &V,
) -> Result<(Vec<V::Row>, Option<String>), Failure> {
    let mut rows = Vec::new();
    let mut next = None;
    loop {
        let read = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let left = verb.limit().map(|limit| limit.saturating_sub(read));
        if left == Some(0) && read > 0 {
            return Ok((rows, next));
        }
        let (more, cursor) = client.call(&verb.clone().part(left, next)).await?.split();
        rows.extend(more);
        next = cursor;
        if next.is_none() {
            return Ok((rows, None));
        }
    }
}
