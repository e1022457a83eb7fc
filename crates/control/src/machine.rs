//! This process and the machine it runs on.

use parking_lot::Mutex;
use serde::Serialize;
use sysinfo::{CpuRefreshKind, ProcessRefreshKind, ProcessesToUpdate, RefreshKind, System};
use utoipa::ToSchema;

/// What kind of machine this is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Platform {
    /// `macos`, `linux`.
    os: String,
    /// `aarch64`, `x86_64`.
    arch: String,
    /// The name that the chip's maker gives it.
    #[schema(required)]
    chip: Option<String>,
}

/// Asks the system, and remembers what does not change.
#[derive(Debug)]
pub struct Machine {
    system: Mutex<System>,
    chip: Option<String>,
}

/// Bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// Resident, of this process.
    pub(crate) used: u64,
    /// Memory of the machine, in bytes.
    pub(crate) total: u64,
}

impl Default for Machine {
    fn default() -> Self {
        let refresh = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
        let mut system = System::new_with_specifics(refresh);
        system.refresh_memory();
        let chip = system
            .cpus()
            .first()
            .map(|cpu| cpu.brand().trim().to_owned())
            .filter(|brand| !brand.is_empty());
        Self {
            system: Mutex::new(system),
            chip,
        }
    }
}

impl Machine {
    /// Returns the memory of the whole machine.
    pub fn memory_total_bytes(&self) -> u64 {
        self.system.lock().total_memory()
    }

    pub(crate) fn platform(&self) -> Platform {
        Platform {
            os: std::env::consts::OS.into(),
            arch: std::env::consts::ARCH.into(),
            chip: self.chip.clone(),
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        let mut system = self.system.lock();
        let used = sysinfo::get_current_pid().ok().and_then(|pid| {
            system.refresh_processes_specifics(
                ProcessesToUpdate::Some(&[pid]),
                true,
                ProcessRefreshKind::nothing().with_memory(),
            );
            system.process(pid).map(sysinfo::Process::memory)
        });
        Memory {
            used: used.unwrap_or_default(),
            total: system.total_memory(),
        }
    }
}
