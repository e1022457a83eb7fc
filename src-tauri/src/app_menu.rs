//! The application menu of macOS, without which a window there has neither copy and paste nor ⌘Q.

use tauri::{
    AppHandle,
    menu::{AboutMetadata, Menu, MenuBuilder, MenuItem, SubmenuBuilder},
};

use crate::{strings, tray::quit};

/// Items of our own use the ids of the menu bar's, which handles them.
pub(crate) fn build(app: &AppHandle) -> tauri::Result<Menu<tauri::Wry>> {
    let strings = strings::of(None);
    let settings = MenuItem::with_id(app, "settings", strings.settings, true, Some("Cmd+,"))?;
    // The system's own item would end the process without asking about running answers.
    let quit = MenuItem::with_id(app, quit::ID, strings.quit, true, Some("Cmd+Q"))?;
    let about = AboutMetadata {
        license: Some("Apache-2.0".to_owned()),
        ..AboutMetadata::default()
    };
    let this_app = SubmenuBuilder::new(app, "macMLX")
        .about(Some(about))
        .separator()
        .item(&settings)
        .separator()
        .hide()
        .hide_others()
        .show_all()
        .separator()
        .item(&quit)
        .build()?;
    let edit = SubmenuBuilder::new(app, strings.edit_menu)
        .undo()
        .redo()
        .separator()
        .cut()
        .copy()
        .paste()
        .select_all()
        .build()?;
    let window = SubmenuBuilder::new(app, strings.window_menu)
        .minimize()
        .fullscreen()
        .close_window()
        .build()?;
    MenuBuilder::new(app)
        .items(&[&this_app, &edit, &window])
        .build()
}
