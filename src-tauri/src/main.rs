//! macMLX in the menu bar: mounts plug-ins, tray, window and the in-process door. What the app can
//! do is done by the router of `host`.

#[cfg(target_os = "macos")]
mod app_menu;
mod door;
mod end;
mod router;
mod start;
mod strings;
mod tray;
mod window;

#[cfg(target_os = "macos")]
use tauri::RunEvent;
use tauri_plugin_autostart::MacosLauncher;
use tauri_plugin_window_state::StateFlags;

/// Given by the login item: the menu bar only.
const HIDDEN: &str = "--hidden";

fn main() -> anyhow::Result<()> {
    let is_hidden = std::env::args().any(|argument| argument == HIDDEN);
    let builder = tauri::Builder::default()
        // First, so that a second launch ends before it does anything.
        .plugin(tauri_plugin_single_instance::init(|app, _, _| {
            start::show_window(app);
        }))
        .plugin(tauri_plugin_autostart::init(
            MacosLauncher::LaunchAgent,
            Some(vec![HIDDEN]),
        ))
        .plugin(tauri_plugin_dialog::init())
        .plugin(
            tauri_plugin_window_state::Builder::new()
                .with_state_flags(StateFlags::SIZE | StateFlags::POSITION | StateFlags::MAXIMIZED)
                .build(),
        )
        .manage(door::Requests::default())
        .manage(end::Progress::default())
        .invoke_handler(tauri::generate_handler![
            door::door_request,
            door::door_cancel
        ])
        .on_menu_event(|app, event| tray::handle(app, event.id()));
    #[cfg(target_os = "macos")]
    let builder = builder.menu(app_menu::build);
    let app = builder
        .setup(move |app| {
            #[cfg(target_os = "macos")]
            app.set_activation_policy(tauri::ActivationPolicy::Accessory);
            tray::build(app.handle())?;
            end::on_signals(app.handle())?;
            start::begin(app.handle(), is_hidden);
            Ok(())
        })
        .build(tauri::generate_context!())?;
    app.run(|app, event| {
        #[cfg(target_os = "macos")]
        if let RunEvent::Reopen { .. } = event {
            start::show_window(app);
        }
        end::handle(app, &event);
    });
    Ok(())
}
