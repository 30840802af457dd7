//! What a host may lack for a while: space, descriptors, memory, processes, or a working disk. No task is to blame for it.

use std::error::Error;
use std::io;

use nix::errno::Errno;

/// The code of a helper's failure that is the host's.
pub(super) const CODE: &str = "host_shortage";

/// Whether an error, or what stands behind it, comes from such a lack.
pub(super) fn is_shortage(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let number = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        let number = number.or_else(|| error.downcast_ref::<Errno>().map(|errno| *errno as i32));
        if number.is_some_and(|number| passes(Errno::from_raw(number))) {
            return true;
        }
        next = error.source();
    }
    false
}

fn passes(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::ENOSPC
            | Errno::EDQUOT
            | Errno::EMFILE
            | Errno::ENFILE
            | Errno::EAGAIN
            | Errno::ENOMEM
            | Errno::EIO
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_is_seen_through_the_errors_around_it() {
        let full = crate::rundir::RunDirError::Write {
            path: "/x".into(),
            source: io::Error::from_raw_os_error(Errno::ENOSPC as i32),
        };
        assert!(is_shortage(&full));
        assert!(is_shortage(&Errno::EMFILE));
        assert!(!is_shortage(&io::Error::from_raw_os_error(Errno::EACCES as i32)));
    }
}
