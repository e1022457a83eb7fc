//! A log's files: `macmlx-<date>.jsonl`, an entry a line.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
};

use jiff::{SignedDuration, civil::Date, tz::TimeZone};

use super::{Entry, Message, NewEntry, Retention};

const PREFIX: &str = "macmlx-";
const SUFFIX: &str = ".jsonl";
/// How versions before the app named their files.
const OLD_PREFIX: &str = "macmlx.";
const OLD_SUFFIX: &str = ".log";

/// Read from the end of each file, at most.
const TAIL_BYTES: u64 = 4 << 20;

/// The newest entries that files hold, oldest first. Damaged lines are left out.
pub(super) fn last_entries(folder: &Path, limit: usize) -> Vec<NewEntry> {
    let mut dated = dated_files(folder);
    dated.retain(|(_, path)| {
        path.extension()
            .is_some_and(|extension| extension == "jsonl")
    });
    dated.sort();
    let mut entries = Vec::new();
    for (_, path) in dated.into_iter().rev() {
        let Ok(text) = tail(&path) else {
            continue;
        };
        let lines = text.lines().rev();
        let before = lines.filter_map(|line| serde_json::from_str(line).ok());
        entries.extend(before.take(limit - entries.len()));
        if entries.len() == limit {
            break;
        }
    }
    entries.reverse();
    entries
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let size_bytes = file.metadata()?.len();
    file.seek(SeekFrom::Start(size_bytes.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes what comes until no sender is left.
pub(super) fn write(folder: &Path, retention: &Retention, messages: &mpsc::Receiver<Message>) {
    let mut day = None;
    while let Ok(message) = messages.recv() {
        let mut next = Some(message);
        // What has piled up is written in one go.
        while let Some(message) = next {
            match message {
                Message::Entry(entry) => append(folder, retention, &mut day, &entry),
                Message::Clear(done) => {
                    day = None;
                    let _ = done.send(remove(folder, |_| true));
                }
            }
            next = messages.try_recv().ok();
        }
        if let Some(Day { file, .. }) = &mut day {
            // A full disk costs the log, not the application.
            let _ = file.flush();
        }
    }
}

/// The file of one day.
struct Day {
    date: Date,
    file: BufWriter<File>,
}

fn append(folder: &Path, retention: &Retention, day: &mut Option<Day>, entry: &Arc<Entry>) {
    let date = TimeZone::UTC.to_datetime(entry.time).date();
    if day.as_ref().is_none_or(|day| day.date != date) {
        let days = i64::from(retention().max(1));
        let oldest = date.saturating_sub(SignedDuration::from_hours(24 * (days - 1)));
        let _ = remove(folder, |date| date < oldest);
        *day = open(folder, date).ok().map(|file| Day { date, file });
    }
    let (Some(day), Ok(mut line)) = (day, serde_json::to_vec(&**entry)) else {
        return;
    };
    line.push(b'\n');
    let _ = day.file.write_all(&line);
}

fn open(folder: &Path, date: Date) -> io::Result<BufWriter<File>> {
    let path = folder.join(format!("{PREFIX}{date}{SUFFIX}"));
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok(BufWriter::new(options.open(path)?))
}

/// Removes the files of the days that are chosen; others in the folder are not ours.
fn remove(folder: &Path, is_chosen: impl Fn(Date) -> bool) -> io::Result<()> {
    for (date, path) in dated_files(folder) {
        if is_chosen(date) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn dated_files(folder: &Path) -> Vec<(Date, PathBuf)> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?;
            let date = name
                .strip_prefix(PREFIX)
                .and_then(|rest| rest.strip_suffix(SUFFIX))
                .or_else(|| name.strip_prefix(OLD_PREFIX)?.strip_suffix(OLD_SUFFIX))?;
            Some((Date::strptime("%Y-%m-%d", date).ok()?, path))
        })
        .collect()
}
