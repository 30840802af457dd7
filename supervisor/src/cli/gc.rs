//! `gc` at the command line: repeats the call until all is done, and shows its progress on a terminal.

use std::io::IsTerminal as _;

use kernel::Counted;

use crate::client::Client;
use crate::output::Output;
use base::failure::Failure;
use base::terminal::complain;
use verbs::Gc;

pub(super) async fn run(client: &Client, mut verb: Gc, output: Output) -> Result<u8, Failure> {
    let mut all = client.call(&verb).await?;
    while let Some(cursor) = all.cursor.take() {
        if std::io::stderr().is_terminal() && !output.json() {
            let gone: u64 = all.removed.iter().map(|item| item.entries).sum();
            complain(&format!("Working: {} so far …", Counted(gone, "entry")));
        }
        verb.cursor = Some(cursor);
        all.add(client.call(&verb).await?);
    }
    output.reply::<Gc>(&all)
}
