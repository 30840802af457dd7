//! Access that a grant gives to a run.

/// Permitted use of a granted path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Read files and list directories.
    Read,
    /// Read and execute.
    Execute,
    /// Read and write.
    Write,
    /// Read, write and execute.
    WriteExecute,
    /// Read, write and control a device.
    Device,
    /// Connect to the Unix sockets in a directory.
    Socket,
}

impl Access {
    pub(crate) fn writes(self) -> bool {
        match self {
            Self::Write | Self::WriteExecute | Self::Device => true,
            Self::Read | Self::Execute | Self::Socket => false,
        }
    }
}
