//! English.

use super::Strings;

pub(super) const STRINGS: Strings = Strings {
    starting: "Starting…",
    idle: "Ready",
    loading: "Loading {model}…",
    load_failed: "{model} could not be loaded",
    generating: "{model}: {rate} tok/s",
    server_on: "Server at {url}",
    server_off: "Server is off",
    server_failed: "Server failed: {error}",
    copy_url: "Copy Server URL",
    models: "Loaded Models",
    unload: "Unload {model} ({size})",
    downloads: "Downloads",
    pause: "Pause {model} ({done})",
    resume: "Resume {model} ({done})",
    open: "Open macMLX",
    settings: "Settings…",
    logs: "Logs",
    start_at_login: "Start at Login",
    quit: "Quit macMLX",
    quit_while_answering: "Quit macMLX (answers running: {count})",
    quit_question: "Answers that are being generated: {count}. Quitting ends them and stops the server.",
    quit_anyway: "Quit",
    cancel: "Cancel",
    cannot_start: "macMLX cannot start",
    already_running: "A macMLX server already runs here: {owner}, process {pid}, port {port}. Use it in the browser, or stop it with “macmlx stop” and try again.",
    owner_app: "app",
    owner_command_line: "command line",
    open_in_browser: "Open in Browser",
    try_again: "Try Again",
    #[cfg(target_os = "macos")]
    edit_menu: "Edit",
    #[cfg(target_os = "macos")]
    window_menu: "Window",
};
