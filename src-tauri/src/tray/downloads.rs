//! The downloads under way, each paused or resumed by a click.

use http::Method;
use tauri::{AppHandle, Wry, menu::IsMenuItem};

use super::{
    Item, View,
    rows::Rows,
    state::{Download, DownloadState},
};
use crate::{
    router,
    strings::{self, Strings, fill},
};

const ID: &str = "downloads";

struct Downloads(Rows);

pub(super) fn build(app: &AppHandle) -> tauri::Result<Box<dyn Item>> {
    Ok(Box::new(Downloads(Rows::new(
        app,
        ID,
        strings::of(None).downloads,
    )?)))
}

impl Item for Downloads {
    fn id(&self) -> &'static str {
        ID
    }

    fn entry(&self) -> &dyn IsMenuItem<Wry> {
        &self.0.submenu
    }

    fn refresh(&self, app: &AppHandle, View { state, strings }: View<'_>) -> tauri::Result<()> {
        let rows: Vec<_> = state
            .downloads
            .iter()
            .filter_map(|download| row(download, strings))
            .collect();
        self.0.submenu.set_text(strings.downloads)?;
        self.0.show(app, &rows)
    }

    /// The argument is the end of the route: `<id>/pause` or `<id>/resume`.
    fn handle(&self, app: &AppHandle, argument: &str) {
        let path = format!("/x/downloads/{argument}");
        router::act(app, Method::POST, path, None);
    }
}

/// Nothing can be done here about downloads that are over.
fn row(download: &Download, strings: &Strings) -> Option<(String, String)> {
    let (action, text) = match download.state {
        DownloadState::Queued
        | DownloadState::Listing
        | DownloadState::Downloading
        | DownloadState::Verifying => ("pause", strings.pause),
        DownloadState::Paused => ("resume", strings.resume),
        DownloadState::Done | DownloadState::Failed => return None,
    };
    let values = [
        ("model", download.model.as_str()),
        ("done", &progress(download)),
    ];
    Some((
        format!("{ID}:{}/{action}", download.id),
        fill(text, &values),
    ))
}

fn progress(download: &Download) -> String {
    match download.total_bytes {
        Some(total) if total > 0 => {
            format!("{:.0}%", 100.0 * download.done_bytes as f64 / total as f64)
        }
        _ => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_does_what_can_be_done() {
        let strings = strings::of(Some("en"));
        let shown = |state, total_bytes| {
            let download = Download {
                id: "7".into(),
                model: "a/b".into(),
                state,
                total_bytes,
                done_bytes: 50,
            };
            row(&download, strings)
        };
        assert_eq!(
            shown(DownloadState::Downloading, Some(200)),
            Some(("downloads:7/pause".into(), "Pause a/b (25%)".into()))
        );
        assert_eq!(
            shown(DownloadState::Paused, None),
            Some(("downloads:7/resume".into(), "Resume a/b (…)".into()))
        );
        assert_eq!(shown(DownloadState::Done, Some(50)), None);
        assert_eq!(shown(DownloadState::Failed, Some(50)), None);
    }
}
