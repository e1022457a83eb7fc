//! How much a download does at once, and how patient it is.

use std::{fs::File, io, os::unix::fs::FileExt, path::PathBuf, time::Duration};

use crate::hub::Patience;

/// Where downloads come from and go to on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Folder of all models.
    pub models: PathBuf,
    /// Folder of unfinished downloads.
    pub downloads: PathBuf,
}

/// Writes all bytes at an offset of a file.
pub type WriteAt = fn(&File, &[u8], u64) -> io::Result<()>;

/// Limits and intervals; the default is meant for people.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections of all downloads together.
    pub connections: usize,
    /// Downloads at once; others are queued.
    pub jobs: usize,
    /// Finished downloads in the list, the newest.
    pub remembered: usize,
    /// Large files are fetched in ranges of this size at most.
    pub range_bytes: u64,
    /// A connection that says nothing for this long is lost.
    pub stall: Duration,
    /// How often bytes are brought onto the disk for certain: what a crash costs.
    pub checkpoint: Duration,
    /// How often progress is told.
    pub tick: Duration,
    /// Left free on the disk, whatever is downloaded.
    pub spare_bytes: u64,
    /// How long connections for files may fail. The list of files has to come at the first try.
    pub patience: Patience,
    /// How bytes get into a file; tests of full disks write elsewhere.
    pub write_at: WriteAt,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 4,
            jobs: 3,
            remembered: 100,
            range_bytes: 64 << 20,
            stall: Duration::from_secs(30),
            checkpoint: Duration::from_secs(2),
            tick: Duration::from_millis(250),
            spare_bytes: 256 << 20,
            patience: Patience {
                attempts: 6,
                first_pause: Duration::from_millis(500),
                longest_wait: Duration::from_mins(5),
            },
            write_at: |file, bytes, offset| file.write_all_at(bytes, offset),
        }
    }
}
