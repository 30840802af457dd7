//! Reads a file to attach: a regular one, within the limit of an attachment.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use kernel::limits::ATTACHMENT;

use base::exit::Code;
use base::failure::Failure;

/// Reads a regular file of up to the limit. It opens the file once, without waiting, and examines the open file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let fail = |e: std::io::Error| Failure::named_file("read", path, &e, "a file");
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let file = File::options()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)
        .map_err(fail)?;
    let meta = file.metadata().map_err(fail)?;
    if !meta.is_file() {
        return Err(Failure::usage(format!("{} is {}, not a file", path.display(), kind(&meta)))
            .hint("attach files; pack a directory first, as with: tar czf files.tgz DIRECTORY"));
    }
    let mut bytes = Vec::new();
    if meta.len() <= ATTACHMENT {
        // The file may grow after `fstat`, so the read has a limit too.
        file.take(ATTACHMENT + 1).read_to_end(&mut bytes).map_err(fail)?;
    }
    let size = meta.len().max(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    if size > ATTACHMENT { Err(too_large(&path.display().to_string(), size)) } else { Ok(bytes) }
}

/// The refusal of a file that is too large.
pub fn too_large(name: &str, size: u64) -> Failure {
    Failure::new(
        Code::TooLarge,
        format!(
            "{name} has {size} bytes; the limit of an attachment is {ATTACHMENT} ({} MiB)",
            ATTACHMENT >> 20
        ),
    )
    .hint("compress or split it, or put it where the worker can read it and name that path in the task")
}

fn kind(meta: &Metadata) -> &'static str {
    let kind = meta.file_type();
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "something else"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_read_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (path, word) in
            [(dir.path(), "a directory"), (&fifo, "a pipe"), (Path::new("/dev/zero"), "a device")]
        {
            let failure = read(path).unwrap_err();
            assert!(failure.message.contains(word), "{failure}");
        }
        let missing = read(&dir.path().join("none")).unwrap_err();
        assert_eq!(missing.code, Code::NotFound, "{missing}");
    }

    #[test]
    fn a_file_over_the_limit_is_refused_with_its_size_and_without_being_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("big");
        // Sparse: reading it all would take long, and it is not.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let failure = read(&path).unwrap_err();
        assert!(failure.message.contains("1099511627776 bytes"), "{failure}");
        assert!(failure.message.contains("26214400 (25 MiB)"), "{failure}");
        File::create(&path).unwrap().set_len(ATTACHMENT).unwrap();
        assert_eq!(read(&path).unwrap().len() as u64, ATTACHMENT);
    }
}
