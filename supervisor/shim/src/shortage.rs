//! Detects errors that come from a resource that the host lacks for a while: space, descriptors, memory, processes, or
//! a working disk. No task is to blame for such an error.
//!
//! Only this module makes the distinction, by the number of the error and never by its text.
//!
//! See decision 0030.

use std::error::Error;
use std::io;

use nix::errno::Errno;

/// Returns true if an error, or one of its causes, comes from such a shortage.
pub fn is_shortage(error: &(dyn Error + 'static)) -> bool {
    number_of(error).is_some_and(is_shortage_number)
}

/// Returns true if the number of an error stands for such a shortage.
pub fn is_shortage_number(number: i32) -> bool {
    matches!(
        Errno::from_raw(number),
        Errno::ENOSPC
            | Errno::EDQUOT
            | Errno::EMFILE
            | Errno::ENFILE
            | Errno::EAGAIN
            | Errno::ENOMEM
            | Errno::EIO
    )
}

/// Returns the value; none if the attempt failed for any other reason than a shortage.
///
/// # Errors
/// Fails if the host lacks a resource for now, so that a later attempt may succeed.
pub fn unless_short<T, E: Error + 'static>(tried: Result<T, E>) -> Result<Option<T>, E> {
    match tried {
        Ok(had) => Ok(Some(had)),
        Err(error) if is_shortage(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Returns the number of the first system error among an error and its causes.
pub(crate) fn number_of(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut next = Some(error);
    while let Some(error) = next {
        let number = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        let number = number.or_else(|| error.downcast_ref::<Errno>().map(|errno| *errno as i32));
        let number =
            number.or_else(|| error.downcast_ref::<rustix::io::Errno>().map(|errno| errno.raw_os_error()));
        if number.is_some() {
            return number;
        }
        next = error.source();
    }
    None
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
        assert!(is_shortage(&rustix::io::Errno::NFILE));
        assert!(!is_shortage(&io::Error::from_raw_os_error(Errno::EACCES as i32)));
    }

    #[test]
    fn a_lack_is_no_absence() {
        let failed = |number: Errno| Err::<(), _>(io::Error::from_raw_os_error(number as i32));
        assert!(unless_short(failed(Errno::EMFILE)).is_err());
        assert_eq!(unless_short(failed(Errno::ENOENT)).unwrap(), None);
        assert_eq!(unless_short(Ok::<_, io::Error>(1)).unwrap(), Some(1));
    }
}
