//! Writing state so that a crash leaves the old file or the new one, never half of either.

use std::{
    fs::{self, File},
    io,
    io::Write,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value};

/// Replaces `path` atomically: temporary file beside it, fsync, rename. New files are readable by
/// their owner only, existing ones keep their mode.
pub fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // A link is followed, so that settings kept elsewhere stay there.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = target.parent().unwrap_or(folder);
    let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
    temporary.write_all(contents)?;
    if let Ok(metadata) = fs::metadata(&target) {
        temporary
            .as_file()
            .set_permissions(metadata.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|error| error.error)?;
    // The rename itself is durable only once the folder is.
    File::open(folder)?.sync_all()
}

/// Keeps other writers out, of this process and others, until the result is dropped; blocks while
/// there is one. A writer that reads a file and writes it anew holds this lock for both.
pub fn lock(path: &Path) -> io::Result<File> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    // The file itself is replaced at each write, so another one is locked.
    let beside = path.with_file_name(name);
    if let Some(folder) = beside.parent() {
        fs::create_dir_all(folder)?;
    }
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(beside)?;
    lock.lock()?;
    Ok(lock)
}

/// Moves a file that cannot be read out of the way, keeping its contents; returns where it is now.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let aside = free_name(path, "unreadable");
    fs::rename(path, &aside)?;
    Ok(aside)
}

/// Replaces a file that people edit. Comments in it would be lost, so a file that has some is copied
/// first.
pub(crate) fn write_edited(path: &Path, document: Map<String, Value>) -> io::Result<()> {
    if fs::read(path).is_ok_and(|before| macmlx_json::has_comments(&before)) {
        let copy = free_name(path, "commented");
        fs::copy(path, &copy)?;
    }
    write(path, format!("{:#}\n", Value::Object(document)).as_bytes())
}

/// A name beside a file that nothing has yet.
fn free_name(path: &Path, word: &str) -> PathBuf {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{word}-{seconds}"));
    let mut aside = path.with_file_name(&name);
    let mut attempt = 1;
    while aside.exists() {
        let mut other = name.clone();
        other.push(format!("-{attempt}"));
        aside = path.with_file_name(other);
        attempt += 1;
    }
    aside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_leaves_nothing_else_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/settings.json");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn follows_links_and_keeps_the_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real.json");
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o644)).unwrap();
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(link.is_symlink());
        let mode = fs::metadata(&real).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
    }

    #[test]
    fn writers_come_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        let add = || {
            for _ in 0..20 {
                let _alone = lock(&path).unwrap();
                let number: u32 = fs::read_to_string(&path).map_or(0, |text| text.parse().unwrap());
                write(&path, (number + 1).to_string().as_bytes()).unwrap();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(add);
            scope.spawn(add);
        });
        assert_eq!(fs::read_to_string(&path).unwrap(), "40");
    }

    #[test]
    fn files_set_aside_do_not_replace_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        for contents in ["first", "second"] {
            fs::write(&path, contents).unwrap();
            let aside = set_aside(&path).unwrap();
            assert_eq!(fs::read_to_string(aside).unwrap(), contents);
        }
        assert!(!path.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
