//! The window: made when it is first asked for, hidden rather than closed.

use tauri::{
    AppHandle, Manager as _, Url, WebviewUrl, WebviewWindow, WebviewWindowBuilder, WindowEvent,
    webview::{NewWindowResponse, PageLoadEvent},
};

use crate::door;

pub(crate) const LABEL: &str = "main";

/// Shows the window, at a route of its page if one is named.
pub(crate) fn show(app: &AppHandle, route: Option<&str>) {
    if let Err(error) = try_show(app, route) {
        tracing::error!(%error, "the window cannot be shown");
    }
}

/// Hides the window; what its page asked for goes on.
pub(crate) fn hide(app: &AppHandle) {
    let hidden = app
        .get_webview_window(LABEL)
        .map_or(Ok(()), |window| window.hide());
    if let Err(error) = hidden {
        tracing::warn!(%error, "the window cannot be hidden");
    }
    #[cfg(target_os = "macos")]
    set_policy(app, tauri::ActivationPolicy::Accessory);
}

fn try_show(app: &AppHandle, route: Option<&str>) -> tauri::Result<()> {
    // In the Dock and among the windows to switch between, for as long as there is one.
    #[cfg(target_os = "macos")]
    set_policy(app, tauri::ActivationPolicy::Regular);
    let window = match app.get_webview_window(LABEL) {
        Some(window) => {
            if let Some(route) = route {
                let route = serde_json::Value::from(route);
                window.eval(format!("location.hash = {route}"))?;
            }
            window
        }
        None => build(app, route)?,
    };
    window.show()?;
    window.unminimize()?;
    window.set_focus()
}

fn build(app: &AppHandle, route: Option<&str>) -> tauri::Result<WebviewWindow> {
    let page = format!("index.html{}", route.unwrap_or_default());
    let builder = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::App(page.into()))
        .title("macMLX")
        .inner_size(1120.0, 760.0)
        .min_inner_size(420.0, 480.0)
        .center()
        .on_navigation(is_our_page)
        .on_new_window(|url, _features| {
            open_outside(&url);
            NewWindowResponse::Deny
        })
        .on_page_load(|window, load| {
            if load.event() == PageLoadEvent::Started {
                // The page before this one hears nothing any more.
                window.state::<door::Requests>().cancel_all(window.label());
            }
        });
    #[cfg(target_os = "macos")]
    let builder = builder
        .title_bar_style(tauri::TitleBarStyle::Overlay)
        .hidden_title(true);
    let window = builder.build()?;
    window.on_window_event({
        let app = app.clone();
        move |event| match event {
            WindowEvent::CloseRequested { api, .. } => {
                api.prevent_close();
                hide(&app);
            }
            WindowEvent::Destroyed => app.state::<door::Requests>().cancel_all(LABEL),
            _ => {}
        }
    });
    Ok(window)
}

/// Whether the window may go there; links to elsewhere open in the browser.
fn is_our_page(url: &Url) -> bool {
    let is_ours = url.scheme() == "tauri"
        || (matches!(url.scheme(), "http" | "https") && url.host_str() == Some("tauri.localhost"));
    if !is_ours {
        open_outside(url);
    }
    is_ours
}

/// Opens what belongs into a browser or a mail program; a page has no say over other programs.
fn open_outside(url: &Url) {
    if !matches!(url.scheme(), "http" | "https" | "mailto") {
        return;
    }
    if let Err(error) = tauri_plugin_opener::open_url(url.as_str(), None::<&str>) {
        tracing::warn!(%error, %url, "a link cannot be opened");
    }
}

#[cfg(target_os = "macos")]
fn set_policy(app: &AppHandle, policy: tauri::ActivationPolicy) {
    if let Err(error) = app.set_activation_policy(policy) {
        tracing::warn!(%error, "the app's place in the Dock cannot be changed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_apps_own_pages_are_shown() {
        let is_ours = |url: &str| is_our_page(&url.parse().unwrap());
        assert!(is_ours("tauri://localhost/index.html#/chat"));
        assert!(is_ours("http://tauri.localhost/index.html"));
        // Neither is opened elsewhere: programs are not started by links.
        assert!(!is_ours("file:///etc/passwd"));
        assert!(!is_ours("javascript:alert(1)"));
    }
}
