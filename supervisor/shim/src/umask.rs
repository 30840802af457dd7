//! File mode creation mask of this program (`umask(2)`).

use rustix::fs::Mode;
use rustix::process::umask;

/// Takes the right to write to new files from group and others, if the mask that this process inherited leaves it to
/// others. A mask that shares files with a group alone stays: it is a choice of the user. Workers get a mask of their
/// own.
pub fn narrow() {
    // The mask cannot be read without being set. No other thread exists yet.
    let inherited = umask(Mode::from_raw_mode(0o077));
    umask(narrowed(inherited));
}

fn narrowed(inherited: Mode) -> Mode {
    if inherited.contains(Mode::WOTH) { inherited } else { inherited | Mode::WGRP | Mode::WOTH }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_that_lets_others_write_is_narrowed_and_another_one_stays() {
        for (inherited, narrow) in
            [(0o000, 0o022), (0o020, 0o022), (0o005, 0o027), (0o002, 0o002), (0o022, 0o022), (0o077, 0o077)]
        {
            let mode = Mode::from_raw_mode;
            assert_eq!(narrowed(mode(inherited)), mode(narrow), "{inherited:03o}");
        }
    }
}
