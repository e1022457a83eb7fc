//! What the shell says outside of the page, by language.

mod en;
mod zh_hans;

/// Texts with `{name}` where something is filled in.
#[derive(Debug)]
pub(crate) struct Strings {
    pub(crate) starting: &'static str,
    pub(crate) idle: &'static str,
    pub(crate) loading: &'static str,
    pub(crate) load_failed: &'static str,
    pub(crate) generating: &'static str,
    pub(crate) server_on: &'static str,
    pub(crate) server_off: &'static str,
    pub(crate) server_failed: &'static str,
    pub(crate) copy_url: &'static str,
    pub(crate) models: &'static str,
    pub(crate) unload: &'static str,
    pub(crate) downloads: &'static str,
    pub(crate) pause: &'static str,
    pub(crate) resume: &'static str,
    pub(crate) open: &'static str,
    pub(crate) settings: &'static str,
    pub(crate) logs: &'static str,
    pub(crate) start_at_login: &'static str,
    pub(crate) quit: &'static str,
    pub(crate) quit_while_answering: &'static str,
    pub(crate) quit_question: &'static str,
    pub(crate) quit_anyway: &'static str,
    pub(crate) cancel: &'static str,
    pub(crate) cannot_start: &'static str,
    pub(crate) already_running: &'static str,
    pub(crate) owner_app: &'static str,
    pub(crate) owner_command_line: &'static str,
    pub(crate) open_in_browser: &'static str,
    pub(crate) try_again: &'static str,
    #[cfg(target_os = "macos")]
    pub(crate) edit_menu: &'static str,
    #[cfg(target_os = "macos")]
    pub(crate) window_menu: &'static str,
}

/// The language of `language` in the settings; `system` and what is not known here follow the
/// system's.
pub(crate) fn of(setting: Option<&str>) -> &'static Strings {
    let locale = setting
        .filter(|setting| *setting != "system")
        .map(str::to_owned)
        .or_else(sys_locale::get_locale);
    by_locale(locale.as_deref().unwrap_or_default())
}

fn by_locale(locale: &str) -> &'static Strings {
    let language = locale.split(['-', '_', '.']).next().unwrap_or_default();
    if language.eq_ignore_ascii_case("zh") {
        &zh_hans::STRINGS
    } else {
        &en::STRINGS
    }
}

/// Fills in the values of a text.
pub(crate) fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            filled.push('{');
            rest = after;
            continue;
        };
        if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
            filled.push_str(value);
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_found_by_any_spelling() {
        for locale in ["zh-Hans", "zh_CN.UTF-8", "zh", "ZH-TW"] {
            assert_eq!(by_locale(locale).quit, zh_hans::STRINGS.quit, "{locale}");
        }
        for locale in ["en", "de-DE", "C", ""] {
            assert_eq!(by_locale(locale).quit, en::STRINGS.quit, "{locale}");
        }
        assert_eq!(of(Some("zh-Hans")).quit, zh_hans::STRINGS.quit);
        assert_eq!(of(Some("en")).quit, en::STRINGS.quit);
    }

    #[test]
    fn values_are_filled_in_once() {
        let values = [("model", "{size}"), ("size", "1 GB")];
        assert_eq!(fill("a {model} b {size}", &values), "a {size} b 1 GB");
        assert_eq!(fill("plain {", &values), "plain {");
    }

    #[test]
    fn languages_fill_in_the_same_values() {
        let names = |text: &str| {
            let mut names: Vec<String> = text
                .split('{')
                .skip(1)
                .filter_map(|part| part.split_once('}').map(|(name, _)| name.to_owned()))
                .collect();
            names.sort();
            names
        };
        let texts = |strings: &Strings| {
            format!("{strings:?}")
                .split("\", ")
                .map(names)
                .collect::<Vec<_>>()
        };
        let english = texts(&en::STRINGS);
        assert!(english.len() > 20);
        assert_eq!(english, texts(&zh_hans::STRINGS));
    }
}
