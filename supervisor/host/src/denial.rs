//! Explains, as well as possible after the end, which access the sandbox denied to a failed run.
//!
//! The kernel refuses with an error number and keeps no record. The evidence is the command of the run and the end of
//! its log: programs and paths named there are checked against the policy, and a denial is reported.
//!
//! A line of a policy is named only if the same act works with it: the user of the worker could do it without the
//! sandbox, and the path is not made for the run. Otherwise the sentence says that no policy allows it.

mod calls;

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use policies::{Denial, Homes, Mode, Policy, RunContext, Toolchain, Want};
use serde::{Deserialize, Serialize};
use shim::rundir::RunSpec;

use super::home::home_of;
use base::executable::{self, is_program};

/// Number of bytes at the end of a log that are read.
const TAIL: u64 = 16 << 10;
/// Number of last lines that are examined.
const LINES: usize = 200;
/// Number of lines before a complaint that may name its subject, such as a program's trace.
const CONTEXT: usize = 8;
/// Longest path, in bytes, that is checked: the worker's text is bounded.
const LONGEST: usize = 1024;

/// Phrases of programs that could not create a file.
const CREATES: [&str; 6] = [
    "cannot create",
    "can't create",
    "cannot touch",
    "unable to create",
    "could not create",
    "failed to create",
];

/// Facts about a failed run. The log may name any path, and the worker can read the result. So a process under the
/// worker's user examines the paths, and reveals nothing that this user cannot find out.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failed {
    policy: Policy,
    context: RunContext,
    command: Option<String>,
    cwd: PathBuf,
    /// `PATH` of the run.
    search: Option<String>,
    homes: Homes,
    /// End of the log.
    tail: String,
}

impl Failed {
    pub(super) fn from_spec(spec: &RunSpec) -> Self {
        let named = spec.policy.filesystem.toolchain_home.clone();
        let home = named.or_else(|| home_of(spec.run_context.identity));
        Failed {
            policy: spec.policy.clone(),
            context: spec.run_context.clone(),
            command: spec.argv.first().cloned(),
            cwd: spec.cwd.clone(),
            search: spec.env.get("PATH").cloned(),
            homes: Homes { own: home, others: home_of(None).into_iter().collect() },
            tail: tail(&spec.log).unwrap_or_default(),
        }
    }

    /// Examines the paths and programs that the run names, as the user of this process.
    pub fn find_denial(&self) -> Option<kernel::Denied> {
        let search = DenialSearch::new(self);
        let command = self.command.as_deref().and_then(|command| search.program(command));
        let denial = command.or_else(|| search.log(&self.tail))?;
        Some(kernel::Denied {
            policy: self.policy.name().to_owned(),
            text: self.policy.describe(&denial),
            act: denial.act,
            line: denial.line,
        })
    }
}

fn tail(log: &Path) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Policy of a run, and the search paths with it and without it.
struct DenialSearch<'a> {
    policy: &'a Policy,
    context: &'a RunContext,
    cwd: &'a Path,
    /// `PATH` of the run.
    search: Vec<PathBuf>,
    /// Other directories in which people have programs.
    elsewhere: Vec<PathBuf>,
    homes: &'a Homes,
}

impl<'a> DenialSearch<'a> {
    fn new(failed: &'a Failed) -> Self {
        let homes = &failed.homes;
        let tools = homes.own.iter().chain(&homes.others).flat_map(|home| {
            let known = Toolchain::ALL.into_iter().flat_map(|toolchain| toolchain.environment(home).path);
            known.chain([".local/bin", "bin", "go/bin"].map(|name| home.join(name)))
        });
        let shared = ["/usr/local/go/bin", "/snap/bin"].map(PathBuf::from);
        let elsewhere = tools.chain(shared).collect();
        let search =
            failed.search.as_ref().map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
        DenialSearch {
            policy: &failed.policy,
            context: &failed.context,
            cwd: &failed.cwd,
            search,
            elsewhere,
            homes,
        }
    }

    /// Returns the policy's denial of a path. The denial suggests no line if the user lacks the right
    /// anyway, because no policy would help.
    fn denial(&self, path: &Path, want: Want) -> Option<Denial> {
        let denial = self.policy.denial(path, want, self.context, self.homes)?;
        let flags = match want {
            Want::Read => AccessFlags::R_OK,
            Want::Write => AccessFlags::W_OK,
            Want::Execute => AccessFlags::X_OK,
        };
        let is_there = path.symlink_metadata().is_ok();
        let asked = if want == Want::Write && !is_there { path.parent().unwrap_or(path) } else { path };
        // The policy can provide paths that the host lacks, such as a private /dev/shm.
        let may = access(asked, flags).is_ok() || path.starts_with("/proc") || path.starts_with("/dev");
        Some(if may { denial } else { Denial { line: None, ..denial } })
    }

    /// Returns the absolute paths in a line, except paths that the supervisor made for the run, whose protection is
    /// intended.
    fn paths<'l>(&'l self, line: &'l str) -> impl Iterator<Item = PathBuf> + 'l {
        let is_own = |path: &PathBuf| self.context.closed.own.iter().any(|own| path.starts_with(own));
        // For bash(1) these are connections and not files.
        let is_file = |path: &PathBuf| !path.starts_with("/dev/tcp") && !path.starts_with("/dev/udp");
        paths(line).filter(move |path| is_file(path) && !is_own(path))
    }

    /// Returns the denial of a program: of the program itself, or of its script's interpreter.
    fn program(&self, name: &str) -> Option<Denial> {
        if name.is_empty() || name.len() > LONGEST {
            return None;
        }
        let program = if name.contains('/') {
            Some(self.cwd.join(name)).filter(|path| is_program(path))
        } else {
            let all = self.search.iter().chain(&self.elsewhere);
            all.map(|dir| dir.join(name)).find(|path| is_program(path))
        }?;
        self.denial(&program, Want::Execute).or_else(|| {
            let interpreter = interpreter(&program)?;
            self.denial(&interpreter, Want::Execute)
        })
    }

    /// Returns the denial behind the last complaint in a log that has one.
    fn log(&self, text: &str) -> Option<Denial> {
        let lines: Vec<&str> = text.lines().rev().take(LINES).collect();
        (0..lines.len()).find_map(|at| {
            let (line, before) = lines.get(at..)?.split_first()?;
            let before: Vec<&str> = before.iter().take(CONTEXT).copied().collect();
            self.line(line, &before.join(" "))
        })
    }

    /// Returns the denial behind a complaint in a line of the log. `before` is the text before it.
    fn line(&self, line: &str, before: &str) -> Option<Denial> {
        let lower = line.to_lowercase();
        let complains = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let creates = complains(&CREATES) && complains(&["no such file or directory", "nonexistent"]);
        // Shells use the first phrase for a file and the last for a directory.
        let is_missing = complains(&["no such file", "not found", "can't cd to"]);
        let refused =
            ["permission denied", "eacces", "operation not permitted", "eperm", "must be superuser"];
        if complains(&["mount -t proc", "/proc must be mounted"]) {
            return self.denial(Path::new("/proc/self"), Want::Read);
        }
        if complains(&["must be superuser"]) {
            return calls::call(self.policy, &lower);
        }
        if complains(&["read-only file system"]) {
            return self.paths(line).find_map(|path| self.written(&path, &lower));
        }
        if creates {
            // The directory exists, but the run did not see it.
            let mut seen = self.paths(line).filter(|path| path.parent().is_some_and(Path::is_dir));
            return seen.find_map(|path| self.denial(&path, Want::Write));
        }
        if is_missing {
            // A program with libraries beside itself locates itself in /proc (ld.so(8), `$ORIGIN`).
            if complains(&["error while loading shared libraries"]) {
                return self.denial(Path::new("/proc/self"), Want::Read);
            }
            if let Some(name) = missing_program(line) {
                return self.program(name);
            }
            return self.paths(line).find_map(|path| self.unseen(&path));
        }
        if complains(&refused) {
            let path = self.paths(line).find_map(|path| self.path(&path));
            let call = path.or_else(|| calls::call(self.policy, &lower));
            return call.or_else(|| calls::network(self.policy, &before.to_lowercase()));
        }
        let unreachable = ["could not resolve", "name resolution", "network is unreachable", "eai_again"];
        // An open network may fail by itself.
        let is_closed = matches!(self.policy.network.mode, Mode::None | Mode::Loopback);
        let failed = ["couldn't connect to", "could not connect to", "failed to connect to"];
        let is_unreachable = complains(&unreachable) || is_closed && complains(&failed);
        is_unreachable.then(|| calls::network(self.policy, &lower)).flatten()
    }

    /// Returns the denial of a path that the run did not see.
    fn unseen(&self, path: &Path) -> Option<Denial> {
        let directory = path.parent()?;
        if let Err(error) = path.symlink_metadata() {
            // The path does not exist. A search in a visible directory, or in a missing one, is not denied. A
            // directory that the user cannot enter yields no answer.
            let is_hidden = error.kind() == ErrorKind::NotFound
                && directory.is_dir()
                && self.denial(directory, Want::Read).is_some();
            let denial = is_hidden.then(|| self.denial(path, Want::Write)).flatten();
            return denial.filter(|denial| denial.line.is_some());
        }
        let program = is_program(path).then(|| self.denial(path, Want::Execute)).flatten();
        program.or_else(|| self.denial(path, Want::Read)).or_else(|| {
            // The link is hidden although its target is visible.
            self.denial(directory, Want::Read).filter(|_| path.is_symlink())?;
            let line = Some(format!("filesystem.add.ro = [\"{}\"]", path.display()));
            Some(Denial { act: format!("reading {}", path.display()), line, place: None })
        })
    }

    /// Returns the denial of a path that was to be written or created.
    fn written(&self, path: &Path, complaint: &str) -> Option<Denial> {
        let denial = self.denial(path, Want::Write)?;
        // `mkdir -p` names the first directory that it did not see, not the directory to create.
        if denial.line.is_some() || !complaint.contains("create directory") || !path.is_dir() {
            return Some(denial);
        }
        let line = Some(format!("filesystem.add.rw = [\"{}/PATH\"]", path.display()));
        Some(Denial { act: format!("making a directory beneath {}", path.display()), line, place: None })
    }

    /// Returns the denial of a path if the kind of access is unknown: reading, executing or writing. None if the
    /// user's own rights stand in the way.
    fn path(&self, path: &Path) -> Option<Denial> {
        let last = if is_program(path) { Want::Execute } else { Want::Write };
        let denied = self.denial(path, Want::Read);
        denied.or_else(|| self.denial(path, last).filter(|denial| denial.line.is_some()))
    }
}

/// Returns the interpreter of a script. For `env`, returns `env` itself: its target is unknown.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let path = PathBuf::from(executable::interpreter(script)?.first()?);
    path.is_absolute().then_some(path)
}

/// Returns a shell's message without the script and its line number: `/x/build: line 3: …`, `/x/build: 3: …`.
fn without_script(line: &str) -> &str {
    let numbered = line.split_once(": ").and_then(|(_, rest)| {
        let (number, complaint_text) = rest.strip_prefix("line ").unwrap_or(rest).split_once(": ")?;
        (!number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())).then_some(complaint_text)
    });
    numbered.unwrap_or(line)
}

/// Returns the absolute paths in a line.
fn paths(line: &str) -> impl Iterator<Item = PathBuf> {
    let is_edge = |c: char| c.is_whitespace() || "'\"`‘’“”(),;=<>[]{}".contains(c);
    let words = without_script(line).split(is_edge).map(|word| word.trim_end_matches([':', '.', '!']));
    // `/bin/sh: 1: cannot open /x` and `cannot open /x:1` name the path before the colon.
    let words = words.flat_map(|word| word.split(':')).filter(|word| word.len() > 1 && word.len() <= LONGEST);
    words.filter(|word| word.starts_with('/')).map(PathBuf::from)
}

/// Returns the name of the missing program in a line: `sh: 1: cargo: not found`, `env: ‘node’: No such file or
/// directory`, `exec: "go": executable file not found in $PATH`, `No such file or directory: 'tox'`.
fn missing_program(line: &str) -> Option<&str> {
    let lower = line.to_ascii_lowercase();
    let bare = |word: &'_ str| -> bool {
        // Programs print the name of the error before its text (errno(3)).
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        !word.is_empty() && word != "ENOENT" && word.chars().all(is_name)
    };
    let trim = |piece| -> &str {
        let piece: &str = piece;
        piece.trim().trim_matches(|c: char| "'\"`‘’“”".contains(c))
    };
    for phrase in
        [": command not found", ": not found", ": executable file not found", ": no such file or directory"]
    {
        let Some(at) = lower.find(phrase) else { continue };
        let before = line.get(..at)?;
        let name = trim(before.rsplit(':').next()?);
        if bare(name) {
            return Some(name);
        }
    }
    let after = lower.find("no such file or directory: ")? + "no such file or directory: ".len();
    Some(trim(line.get(after..)?)).filter(|name| bare(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn programs_and_paths_are_found_in_what_tools_say() {
        for (line, name) in [
            ("/tmp/prompt: 1: cargo: not found", Some("cargo")),
            ("bash: line 3: rustup: command not found", Some("rustup")),
            ("/usr/bin/env: ‘node’: No such file or directory", Some("node")),
            ("exec: \"go\": executable file not found in $PATH", Some("go")),
            ("FileNotFoundError: [Errno 2] No such file or directory: 'tox'", Some("tox")),
            ("module left-pad not found", None),
            ("Error: ENOENT: no such file or directory, open '/a/b'", None),
        ] {
            assert_eq!(missing_program(line), name, "{line}");
        }
        let found = |line: &str| paths(line).collect::<Vec<_>>();
        assert_eq!(found("cat: /srv/x: Permission denied"), [Path::new("/srv/x")]);
        assert_eq!(found("PermissionError: [Errno 13] Permission denied: '/a/b'"), [Path::new("/a/b")]);
        assert_eq!(found("sh: 1: cannot create /x/y: Directory nonexistent"), [Path::new("/x/y")]);
        assert_eq!(found("/srv/build: line 3: /x/y: Permission denied"), [Path::new("/x/y")]);
        assert!(found("/srv/build: 1: eval: cannot create .git: Read-only file system").is_empty());
        assert_eq!(found("/srv/x: 1 of 2: cannot read"), [Path::new("/srv/x")]);
    }

    fn denial_in(policy: &str, env: &[(&str, &str)], line: &str) -> Option<Denial> {
        let policy = Policy::builtin(policy).unwrap();
        let context: RunContext = serde_json::from_str(
            r#"{"workspace":"/no/ws","home":"/no/home","tmp":"/no/tmp","board":"none","parent":1}"#,
        )
        .unwrap();
        let search = env.iter().find(|(name, _)| *name == "PATH").map(|(_, path)| (*path).to_owned());
        let (command, cwd, tail) = (None, PathBuf::from("/no/ws"), String::new());
        let failed = Failed { policy, context, command, cwd, search, homes: Homes::default(), tail };
        DenialSearch::new(&failed).log(line)
    }

    #[test]
    fn a_line_leads_to_what_the_policy_denies() {
        let dir = tempfile::tempdir().unwrap();
        let tool = dir.path().join("tool");
        std::fs::write(&tool, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("/usr/bin:{}", dir.path().display());
        let denial = denial_in("default", &[("PATH", &path)], "x: 1: tool: not found").unwrap();
        assert_eq!(denial.act, format!("executing {}", tool.display()));
        assert_eq!(denial_in("default", &[("PATH", &path)], "x: 1: env: not found"), None, "it is granted");
        let denial = denial_in("strict", &[], "cat: /proc/self/status: No such file or directory").unwrap();
        assert_eq!(denial.line.as_deref(), Some("filesystem.proc = \"host\""));
        let libraries = "java: error while loading shared libraries: libjli.so: cannot open shared object file: No such file or directory";
        assert_eq!(denial_in("strict", &[], libraries).unwrap().act, "reading /proc/self");
        assert_eq!(denial_in("default", &[], libraries), None);
        assert_eq!(denial_in("default", &[], "cat: /no/such/file: No such file or directory"), None);
        let line = |line: &str| denial_in("default", &[], line).and_then(|denial| denial.line);
        assert!(line("OSError: bind 127.0.0.1: Operation not permitted").unwrap().contains("loopback"));
        let trace = "  File \"/usr/lib/python3.11/socket.py\", line 232\n    _socket.socket.__init__(self)\nPermissionError: [Errno 1] Operation not permitted";
        assert!(line(trace).unwrap().contains("loopback"));
        assert!(line("curl: (6) Could not resolve host: example.org").unwrap().contains("ports"));
        assert_eq!(
            line("strace: ptrace(PTRACE_TRACEME): Operation not permitted").as_deref(),
            Some("process.debug = true")
        );
        let place = dir.path().display();
        let write = format!("filesystem.add.rw = [\"{place}\"]");
        let execute = format!("filesystem.add.rox = [\"{place}\"]");
        for (complaint, expected) in [
            (format!("touch: cannot touch '{place}/x': Read-only file system"), &write),
            (format!("sh: 1: cannot create {place}/x: Directory nonexistent"), &write),
            (format!("cp: cannot create regular file '{place}/x': No such file or directory"), &write),
            (format!("FileNotFoundError: [Errno 2] No such file or directory: '{place}/new'"), &write),
            (format!("bash: line 1: {place}/new: No such file or directory"), &write),
            (format!("tar: {place}/x.tar: Cannot open: No such file or directory"), &write),
            (format!("Error: ENOENT: no such file or directory, open '{place}/new'"), &write),
            // A program by its path, as shells print it.
            (format!("sh: 1: {place}/tool: not found"), &execute),
            (format!("bash: line 1: {place}/tool: No such file or directory"), &execute),
        ] {
            assert_eq!(line(&complaint).as_ref(), Some(expected), "{complaint}");
        }
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let read = format!("filesystem.add.ro = [\"{}\"]", file.display());
        for complaint in [
            format!("sh: 1: cannot open {}: No such file", file.display()),
            format!("Error: ENOENT: no such file or directory, open '{}'", file.display()),
        ] {
            assert_eq!(line(&complaint).as_ref(), Some(&read), "{complaint}");
        }
        assert!(line(&format!("sh: 1: cd: can't cd to {place}")).unwrap().contains("ro = "));
        let other_name = dir.path().join("link");
        std::os::unix::fs::symlink("/usr/bin/env", &other_name).unwrap();
        let seen = line(&format!("cat: {}: No such file or directory", other_name.display())).unwrap();
        assert!(seen.contains(&other_name.display().to_string()), "{seen}");
        for complaint in
            ["cat: /usr/lib/none: No such file or directory", "cat: /no/dir/none: No such file or directory"]
        {
            assert_eq!(denial_in("default", &[], complaint), None, "{complaint}");
        }
        assert!(
            line("curl: (7) Failed to connect to 127.0.0.1 port 1: Couldn't connect to server").is_some()
        );
        let mounted = denial_in("strict", &[], "Error, do this: mount -t proc proc /proc").unwrap();
        assert_eq!(mounted.line.as_deref(), Some("filesystem.proc = \"host\""));
        let shared =
            denial_in("strict", &[], "sh: 1: cannot create /dev/shm/x: Directory nonexistent").unwrap();
        assert_eq!(shared.line.as_deref(), Some("filesystem.shm = \"private\""));
        assert_eq!(denial_in("unconfined", &[], "cat: /etc/shadow: Permission denied"), None);
        // No policy gives a user more than the user's own rights.
        let denial = denial_in("default", &[], "touch: cannot touch '/proc/1/x/y': Read-only file system");
        assert_eq!(denial.and_then(|denial| denial.line), None);
    }

    #[test]
    fn the_files_of_a_run_are_not_what_was_denied_to_it() {
        let policy = Policy::builtin("default").unwrap();
        let context: RunContext = serde_json::from_str(
            r#"{"workspace":"/no/ws","home":"/no/home","tmp":"/no/tmp","board":"none","parent":1,
                "closed":{"places":["/no"],"own":["/no/home"],"tasks":[]}}"#,
        )
        .unwrap();
        let (command, cwd, tail) = (None, PathBuf::from("/no/ws"), String::new());
        let failed = Failed { policy, context, command, cwd, search: None, homes: Homes::default(), tail };
        let denial =
            DenialSearch::new(&failed).log("/no/home/prompt: 1: cannot create /usr/x: Read-only file system");
        assert_eq!(denial.unwrap().act, "writing to /usr/x");
    }
}
