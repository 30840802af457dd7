//! Finds the browser of the person at this terminal, and opens a link in it.
//!
//! A link is never passed as a command line argument, because every user of the host can read the arguments of processes.
//! The browser gets the path of a page that only its user can read, and the page redirects to the link.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use base::environment;
use base::paths::Root;
use setup::browsers::CODE_LIFETIME;

/// Prefix and suffix of the names of pages with a link.
const PAGE: (&str, &str) = ("supervisor-dashboard-", ".html");
/// Characters of a path that must be escaped in a URL.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');

/// Program that opens a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Browser {
    program: String,
    arguments: Vec<String>,
}

impl Browser {
    /// Returns the browser in the variable `BROWSER`, else the browser of the desktop; none without either, as in an SSH
    /// session.
    pub(super) fn find() -> Option<Self> {
        Self::named(environment::text)
    }

    fn named(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        // `BROWSER` is a list, of which the first entry is used. An entry may have arguments, as in `firefox
        // --new-window %s`.
        let named = variable("BROWSER").and_then(|list| {
            let mut words = shlex::split(list.split(':').next()?)?.into_iter();
            Some(Browser { program: words.next()?, arguments: words.collect() })
        });
        if named.is_some() {
            return named;
        }
        let has_display = ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|name| variable(name).is_some());
        has_display.then(|| Browser { program: "xdg-open".to_owned(), arguments: Vec::new() })
    }

    /// Opens a link, and does not wait for the browser to end.
    ///
    /// # Errors
    /// The page that leads to the link cannot be written, or the program cannot be started.
    pub(super) fn open(&self, root: &Root, link: &str) -> Result<(), String> {
        let page = page(&private_dirs(root), link)?;
        let address = format!("file://{}", percent_encode(page.as_os_str().as_bytes(), PLAIN));
        let started = Command::new(&self.program)
            .args(self.words(&address))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C at this terminal must not reach the browser.
            .process_group(0)
            .spawn();
        started.map(drop).map_err(|e| format!("{} was not started: {e}", self.program))
    }

    fn words(&self, url: &str) -> Vec<String> {
        let mut words: Vec<String> = self.arguments.iter().map(|word| word.replace("%s", url)).collect();
        if words == self.arguments {
            words.push(url.to_owned());
        }
        words
    }
}

/// Returns the directories for a page, the most private first. Workers of the same user cannot read the directory in the
/// root, but a user of a tenant cannot write to it; so the directory of the session and the temporary directory follow.
fn private_dirs(root: &Root) -> Vec<PathBuf> {
    let own = |dir: &PathBuf| {
        let user = nix::unistd::geteuid().as_raw();
        dir.symlink_metadata().is_ok_and(|meta| meta.uid() == user && meta.mode().trailing_zeros() >= 6)
    };
    let session = environment::text("XDG_RUNTIME_DIR").map(PathBuf::from).filter(own);
    [Some(root.links()), session, Some(std::env::temp_dir())].into_iter().flatten().collect()
}

/// Writes a page with a link into the first directory that permits it, and removes old pages from the directories that it
/// tries. Returns the path of the page.
fn page(dirs: &[PathBuf], link: &str) -> Result<PathBuf, String> {
    let mut failed = String::new();
    for dir in dirs {
        remove_expired(dir);
        match write(dir, link) {
            Ok(page) => return Ok(page),
            Err(error) => failed = format!("no page was written to {}: {error}", dir.display()),
        }
    }
    Err(failed)
}

fn write(dir: &Path, link: &str) -> std::io::Result<PathBuf> {
    let link = link.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    // `tempfile` creates files with mode 0600, so only this user can read the link.
    let mut page = tempfile::Builder::new().prefix(PAGE.0).suffix(PAGE.1).tempfile_in(dir)?;
    write!(
        page,
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={link}\">\n<title>Supervisor</title>\n\
         <a href=\"{link}\">Open the dashboard</a>\n"
    )?;
    page.keep().map(|(_, path)| path).map_err(|e| e.error)
}

/// Removes the pages of this user whose links have expired.
fn remove_expired(dir: &Path) {
    let user = nix::unistd::geteuid().as_raw();
    for entry in dir.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_page = |name: &str| name.starts_with(PAGE.0) && name.ends_with(PAGE.1);
        let is_old = |meta: &std::fs::Metadata| {
            let age = meta.modified().ok().and_then(|at| at.elapsed().ok());
            meta.is_file() && meta.uid() == user && age.is_some_and(|age| age > CODE_LIFETIME)
        };
        // `DirEntry::metadata` does not follow links.
        if name.to_str().is_some_and(is_page) && entry.metadata().is_ok_and(|meta| is_old(&meta)) {
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_link_is_written_for_its_user_alone_where_that_is_possible_and_goes_with_its_code() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = [dir.path().join("absent"), dir.path().to_owned()];
        let first = page(&dirs, "http://127.0.0.1:8470/open?to=/board?board=a#x\"y").unwrap();
        assert_eq!(first.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&first).unwrap();
        assert!(text.contains("url=http://127.0.0.1:8470/open?to=/board?board=a#x&quot;y\""), "{text}");
        let old = SystemTime::now() - CODE_LIFETIME - Duration::from_secs(1);
        std::fs::File::open(&first).unwrap().set_modified(old).unwrap();
        let other = dir.path().join("other.html");
        std::fs::File::create(&other).unwrap().set_modified(old).unwrap();
        let second = page(&dirs, "l").unwrap();
        assert!(!first.exists() && second.exists() && other.exists());
        assert!(page(&dirs[..1], "l").unwrap_err().contains("absent"));
    }

    #[test]
    fn a_browser_is_the_one_that_is_named_or_that_of_the_display() {
        let found = |pairs: &[(&str, &str)]| {
            Browser::named(|name| {
                pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(found(&[]), None, "neither a display nor a name");
        assert_eq!(found(&[("DISPLAY", ":0")]).unwrap().words("u"), ["u"]);
        let named = found(&[("BROWSER", "firefox --new-window %s:w3m"), ("DISPLAY", ":0")]).unwrap();
        assert_eq!(
            (named.program.as_str(), named.words("u")),
            ("firefox", vec!["--new-window".into(), "u".into()])
        );
        assert_eq!(found(&[("BROWSER", "helper.sh")]).unwrap().words("u#1"), ["u#1"]);
    }
}
