//! `attach-get` at the command line: copies the file and never replaces one. Only `--output -` means standard output:
//! an attachment named `-` is written to a file.

use std::fs::File;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use crate::client::Client;
use crate::output::Output;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::printable;
use verbs::AttachGet;

pub(super) async fn run(client: &Client, get: AttachGet, output: Output) -> Result<u8, Failure> {
    let kept = client.call(&get).await?;
    let stored = kept.stored_path.as_ref().map(PathBuf::from).ok_or_else(|| {
        Failure::failed("the file cannot be read from here")
            .hint("get it over the API: `supervisor help docs/api.md`")
    })?;
    let mut from = File::open(&stored).map_err(|e| Failure::file("read", &stored, &e))?;
    if get.output.as_deref() == Some(Path::new("-")) {
        if std::io::stdout().is_terminal() {
            let why = "standard output is a terminal, which the control characters of a file would reach";
            return Err(Failure::usage(why)
                .hint("name a file with --output, or use a pipe, as in: --output - | less"));
        }
        return match std::io::copy(&mut from, &mut std::io::stdout().lock()) {
            // A reader such as `head` may close the pipe before the end, which is no failure.
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failure::failed(format!("standard output cannot be written: {e}")))
            }
            Ok(_) | Err(_) => Ok(0),
        };
    }
    let to = match get.output {
        Some(to) => to,
        None => own_name(&kept.file.filename)?,
    };
    let mut file = File::create_new(&to).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::new(Code::Conflict, format!("{} exists already", to.display()))
                .hint("name another file with --output")
        }
        _ => Failure::named_file("write", &to, &e, "a file with --output, in a directory that exists"),
    })?;
    std::io::copy(&mut from, &mut file).map_err(|e| Failure::file("write", &to, &e))?;
    if output.json() {
        output.value(&kept)?;
    } else {
        output.text(&format!(
            "Wrote {} ({} bytes)\n",
            printable(&to.display().to_string()),
            kept.file.size
        ))?;
    }
    Ok(0)
}

/// Returns the name of a file that is written under its own name. A worker chooses it, so only its last component counts,
/// and a hidden file, which a shell or git would read by itself, needs `--output`.
fn own_name(filename: &str) -> Result<PathBuf, Failure> {
    let name = Path::new(filename).file_name().map_or_else(|| PathBuf::from("attachment"), PathBuf::from);
    if name.as_os_str().as_encoded_bytes().starts_with(b".") {
        let why = format!(
            "its name {} begins with a dot, and programs read such files by themselves",
            printable(filename)
        );
        return Err(Failure::usage(why).hint("name the file to write with --output"));
    }
    Ok(name)
}
