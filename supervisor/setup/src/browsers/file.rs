//! Stores the browser sessions of a root: digests of their secrets, in a file that only the daemon's user reads.

use std::path::Path;
use std::sync::Arc;

use kernel::Timestamp;
use serde::{Deserialize, Serialize};

use super::secret;
use super::session::{Digests, Owner, Session, SessionId, Stored};
use base::failure::Failure;
use base::paths::private_file;

/// Version of the format. A file of another version is ignored, and all sessions are lost.
const VERSION: u32 = 1;

#[derive(Debug)]
pub(super) struct StoredSessions {
    pub(super) cookie_name: String,
    pub(super) sessions: Vec<Arc<Session>>,
}

/// Format of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Form {
    version: u32,
    cookie_name: String,
    sessions: Vec<SessionRecord>,
}

/// Form of a browser's session in the file of sessions.
#[derive(Debug, Serialize, Deserialize)]
struct SessionRecord {
    id: SessionId,
    owner: Owner,
    browser: u32,
    cookie: String,
    key: String,
    began: Timestamp,
    used: Timestamp,
}

impl SessionRecord {
    fn from_session(session: &Session) -> Self {
        SessionRecord {
            id: session.id.clone(),
            owner: session.owner.clone(),
            browser: session.browser,
            cookie: hex::encode(session.cookie),
            key: hex::encode(session.key),
            began: session.began,
            used: session.used(),
        }
    }

    fn session(self) -> Option<Arc<Session>> {
        let digest = |text: &str| <[u8; 32]>::try_from(hex::decode(text).ok()?).ok();
        Some(Arc::new(Session::kept(Stored {
            digests: Digests { cookie: digest(&self.cookie)?, key: digest(&self.key)? },
            id: self.id,
            owner: self.owner,
            browser: self.browser,
            began: self.began,
            used: self.used,
        })))
    }
}

impl Default for StoredSessions {
    fn default() -> Self {
        let cookie_name = format!("supervisor-{}", &secret()[..8]);
        StoredSessions { cookie_name, sessions: Vec::new() }
    }
}

impl StoredSessions {
    /// Returns the text of the file.
    pub(super) fn text(&self) -> Vec<u8> {
        let sessions = self.sessions.iter().map(|session| SessionRecord::from_session(session)).collect();
        let form = Form { version: VERSION, cookie_name: self.cookie_name.clone(), sessions };
        // The form has neither maps nor numbers that JSON cannot represent.
        serde_json::to_vec(&form).unwrap_or_default()
    }

    /// Ends expired sessions. Returns true if there were any.
    pub(super) fn expire(&mut self, now: Timestamp) -> bool {
        !self.end(|session| session.is_over(now)).is_empty()
    }

    pub(super) fn end(&mut self, which: impl Fn(&Session) -> bool) -> Vec<SessionId> {
        let ended: Vec<Arc<Session>> = self.sessions.extract_if(.., |session| which(session)).collect();
        for session in &ended {
            session.end();
        }
        ended.iter().map(|session| session.id.clone()).collect()
    }

    /// Ends the least recently used sessions of an owner until it has fewer than `most`.
    pub(super) fn make_room(&mut self, owner: &Owner, most: usize) {
        while self.sessions.iter().filter(|session| session.owner == *owner).count() >= most {
            self.end_last(|own| own == owner);
        }
    }

    /// Ends the least recently used session among the owners that match.
    pub(super) fn end_last(&mut self, is_of_owner: impl Fn(&Owner) -> bool) {
        let of_owner = self.sessions.iter().filter(|session| is_of_owner(&session.owner));
        if let Some(last) = of_owner.min_by_key(|session| session.used()).map(|session| session.id.clone()) {
            self.end(|session| session.id == last);
        }
    }
}

/// Reads the file; a missing file has no sessions.
pub(super) fn read(path: &Path) -> Result<StoredSessions, Failure> {
    let fail = |e: std::io::Error| Failure::file("read", path, &e);
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(StoredSessions::default()),
        Err(e) => return Err(fail(e)),
    };
    let form: Form = serde_json::from_slice(&text).map_err(|e| fail(e.into()))?;
    if form.version != VERSION || !is_name(&form.cookie_name) {
        return Err(Failure::failed(format!("{} is of another release", path.display())));
    }
    let sessions = form.sessions.into_iter().filter_map(SessionRecord::session).collect();
    Ok(StoredSessions { cookie_name: form.cookie_name, sessions })
}

/// Returns true if a text is a valid cookie name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

pub(super) fn write(path: &Path, text: &[u8]) -> Result<(), Failure> {
    private_file::write(path, text).map_err(|e| Failure::file("write", path, &e))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn session(name: &str, used: i64) -> Arc<Session> {
        let owner = Owner { name: name.to_owned(), uid: Some(7), tenant: None, is_member: false };
        let at = Timestamp::from_secs;
        Arc::new(Session::kept(Stored {
            id: format!("{name}{used}"),
            owner,
            browser: 7,
            digests: Digests { cookie: [1; 32], key: [2; 32] },
            began: at(5),
            used: at(used),
        }))
    }

    #[test]
    fn sessions_are_read_as_they_were_written_and_by_their_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions");
        let empty = read(&path).unwrap();
        assert!(empty.sessions.is_empty() && is_name(&empty.cookie_name));
        let kept =
            StoredSessions { cookie_name: "supervisor-1".to_owned(), sessions: vec![session("ada", 9)] };
        write(&path, &kept.text()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = read(&path).unwrap();
        assert_eq!(again.text(), kept.text());
        for damaged in [
            "",
            "{}",
            r#"{"version":2,"cookie_name":"a","sessions":[]}"#,
            r#"{"version":1,"cookie_name":"a=b;","sessions":[]}"#,
        ] {
            std::fs::write(&path, damaged).unwrap();
            assert!(read(&path).is_err(), "{damaged}");
        }
    }

    #[test]
    fn the_session_that_was_used_least_lately_makes_room() {
        let sessions =
            [("ada", 3), ("ada", 2), ("bea", 1), ("ada", 4)].map(|(name, used)| session(name, used));
        let mut kept = StoredSessions { cookie_name: "c".to_owned(), sessions: sessions.to_vec() };
        kept.make_room(&sessions[0].owner, 2);
        let left: Vec<&str> = kept.sessions.iter().map(|session| session.id.as_str()).collect();
        assert_eq!(left, ["bea1", "ada4"]);
        assert!(sessions[0].ended().is_cancelled() && !sessions[3].ended().is_cancelled());
    }
}
