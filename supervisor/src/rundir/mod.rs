//! The run directory: the versioned contract between the daemon and one run's shim.
