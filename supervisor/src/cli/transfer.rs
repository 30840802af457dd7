//! `export` and `import` at the command line, with the standard streams.

use std::io::{BufWriter, Write as _};

use super::call;
use super::restore::refuse_worker;
use crate::client::Client;
use crate::output::Output;
use api::command::Command as _;
use base::failure::Failure;
use base::terminal::complain;
use upkeep::transfer;
use upkeep::transfer::attached;
use verbs::{Export, Import};

/// Exports in this process, which only reads the board, also beside a daemon.
pub(super) async fn export(client: &Client, verb: Export, output: Output) -> Result<u8, Failure> {
    refuse_worker(client)?;
    if let Some(file) = &verb.file {
        let exported =
            transfer::to_file(client.root(), client.board(), verb.tenant.as_ref(), file, verb.existing())?;
        return output.reply::<Export>(&exported);
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    let exported = transfer::to_stream(client.root(), client.board(), verb.tenant.as_ref(), &mut out)?;
    out.flush().map_err(|e| Failure::failed(format!("standard output cannot be written: {e}")))?;
    if !exported.missing.is_empty() {
        complain(&format!("warning: {}", attached::listed(&exported.missing)));
    }
    Ok(0)
}

/// Imports a board. Standard input is saved to a private file first.
pub(super) async fn import(client: &Client, mut verb: Import, output: Output) -> Result<u8, Failure> {
    refuse_worker(client)?;
    if verb.file.as_ref().is_none_or(|file| file.as_os_str() != "-") {
        return call(client, verb, output).await;
    }
    let dir = client.root().dir();
    client.root().create()?;
    let fail = |e: std::io::Error| Failure::file("write a file in", dir, &e);
    let mut spooled = tempfile::NamedTempFile::new_in(dir).map_err(fail)?;
    std::io::copy(&mut std::io::stdin().lock(), &mut spooled).map_err(fail)?;
    verb.file = Some(spooled.path().to_owned());
    verb.localize(client.here())?;
    output.reply::<Import>(&client.call(&verb).await?)
}
