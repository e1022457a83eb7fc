//! What clients may call a model: the library's ids, a person's aliases, `claude-` before either, and
//! any other name for the default model.

use std::{
    cmp::Reverse,
    sync::{Arc, OnceLock},
};

use macmlx_inference::{
    Catalog, InferenceError, LoadedModel, ModelCard, ModelDescription, ModelTask, read_name,
};
use macmlx_settings::{Aliases, LiveSettings, UnknownModels};
use macmlx_store::models::Library;

use crate::chat_template::has_chat_template;

/// How many local models are named to someone who asked for none of them.
const SUGGESTIONS: usize = 3;

/// Clients that list only Anthropic's models are offered local ones under ids that begin like this.
const CLAUDE: &str = "claude-";

/// Says which models are loaded.
type Loaded = Box<dyn Fn() -> Vec<LoadedModel> + Send + Sync>;

/// Says whether this machine can run a model, as far as its files tell.
type CanRun = Box<dyn Fn(&ModelCard) -> bool + Send + Sync>;

/// What one run decides in place of the settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunNames {
    pub(crate) default_model: Option<String>,
    pub(crate) unknown: Option<UnknownModels>,
}

/// The library under every name it answers to.
pub struct Names {
    library: Arc<Library>,
    aliases: Arc<Aliases>,
    settings: Arc<LiveSettings>,
    run: RunNames,
    can_run: CanRun,
    /// The backend knows, and asks for names itself, so this comes later.
    loaded: OnceLock<Loaded>,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Names")
            .field("library", &self.library)
            .field("aliases", &self.aliases)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl Names {
    pub(crate) fn new(
        library: Arc<Library>,
        aliases: Arc<Aliases>,
        settings: Arc<LiveSettings>,
        run: RunNames,
        can_run: impl Fn(&ModelCard) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            library,
            aliases,
            settings,
            run,
            can_run: Box::new(can_run),
            loaded: OnceLock::new(),
        }
    }

    /// What the default model is called.
    pub(crate) fn default_model(&self) -> Option<String> {
        let run = self.run.default_model.clone();
        run.or_else(|| self.settings.get().default_model.clone())
    }

    fn unknown(&self) -> UnknownModels {
        self.run
            .unknown
            .unwrap_or_else(|| self.settings.get().unknown_models)
    }

    /// Sends unknown names to the model that is loaded. Only the first function given is used.
    pub(crate) fn ask(&self, loaded: impl Fn() -> Vec<LoadedModel> + Send + Sync + 'static) {
        let _ = self.loaded.set(Box::new(loaded));
    }

    /// The model a name stands for, without a guess: its id, an alias, the library's abbreviations.
    fn resolve(&self, reference: &str) -> Result<ModelCard, InferenceError> {
        let reference = read_name(reference)?;
        // A person's word comes before an abbreviation, but hides no model.
        if let Some(target) = self.aliases.target(reference)
            && !self.is_id(reference)
        {
            return self.resolve_alias(reference, &target);
        }
        match self.library.resolve(reference) {
            Err(InferenceError::ModelNotFound { suggestions, .. }) => {
                match self.claude(reference) {
                    Some(found) => found,
                    None => Err(InferenceError::ModelNotFound {
                        reference: reference.to_owned(),
                        suggestions: self.suggest(suggestions),
                    }),
                }
            }
            decided => decided,
        }
    }

    /// The model that an alias stands for. Where it is gone, the error names both: who asks knows the
    /// alias, and who gave it knows the model.
    fn resolve_alias(&self, alias: &str, target: &str) -> Result<ModelCard, InferenceError> {
        self.library.resolve(target).map_err(|error| match error {
            InferenceError::ModelNotFound { suggestions, .. } => InferenceError::ModelNotFound {
                reference: format!("{alias} (another name for {target})"),
                suggestions,
            },
            error => error,
        })
    }

    /// The model behind `claude-<id>` or `claude-<alias>`. Only whole names count: `claude-3` must
    /// not find whatever begins with a 3.
    fn claude(&self, reference: &str) -> Option<Result<ModelCard, InferenceError>> {
        let prefix = reference.get(..CLAUDE.len())?;
        if !prefix.eq_ignore_ascii_case(CLAUDE) {
            return None;
        }
        let name = &reference[CLAUDE.len()..];
        let name = name.strip_suffix(":latest").unwrap_or(name);
        if let Some(target) = self.aliases.target(name) {
            return Some(self.resolve_alias(name, &target));
        }
        match self.library.resolve(name) {
            Ok(card) => {
                let bare = card.id.rsplit('/').next();
                let is_whole = card.id.eq_ignore_ascii_case(name)
                    || bare.is_some_and(|bare| bare.eq_ignore_ascii_case(name));
                is_whole.then_some(Ok(card))
            }
            // A whole name that two owners share, or a model that is not complete.
            Err(
                error @ (InferenceError::AmbiguousModel { .. } | InferenceError::ModelLoad { .. }),
            ) if self.is_id(name) || self.is_bare(name) => Some(Err(error)),
            Err(_) => None,
        }
    }

    fn is_id(&self, name: &str) -> bool {
        self.library.entries().iter().any(|entry| entry.id == name)
    }

    fn is_bare(&self, name: &str) -> bool {
        self.library.entries().iter().any(|entry| {
            let bare = entry.id.rsplit('/').next();
            bare.is_some_and(|bare| bare.eq_ignore_ascii_case(name))
        })
    }

    fn suggest(&self, similar: Vec<String>) -> Vec<String> {
        if !similar.is_empty() {
            return similar;
        }
        let cards = self.chat_models();
        cards
            .into_iter()
            .take(SUGGESTIONS)
            .map(|card| card.id)
            .collect()
    }

    /// The model for a task that answers to unknown names and where none is named: the default, else
    /// the one in use. Where none is, the newest chat model answers; vectors and rankings of two
    /// models cannot be compared, so of those only one that is alone.
    fn fallback(&self, task: ModelTask) -> Option<ModelCard> {
        let default = self
            .default_model()
            .and_then(|default| self.resolve(&default).ok());
        if let Some(card) = default.filter(|card| card.task == task) {
            return Some(card);
        }
        if let Some(card) = self.in_use(task) {
            return Some(card);
        }
        if task == ModelTask::Generate {
            return self.chat_models().into_iter().next();
        }
        let mut cards = self.library.list();
        cards.retain(|card| card.task == task);
        match cards.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    }

    /// The model in memory that is for the task, and chats if it generates: one that is at work,
    /// else the one used last.
    fn in_use(&self, task: ModelTask) -> Option<ModelCard> {
        let loaded = self.loaded.get().map_or_else(Vec::new, |loaded| loaded());
        loaded
            .into_iter()
            .filter_map(|model| Some((self.library.resolve(&model.id).ok()?, model)))
            .filter(|(card, _)| card.task == task && (task != ModelTask::Generate || chats(card)))
            .max_by_key(|(_, model)| (model.active_requests > 0, Reverse(model.idle)))
            .map(|(card, _)| card)
    }

    /// Models that chat: those that this machine can run first, and of those the newest.
    fn chat_models(&self) -> Vec<ModelCard> {
        let mut cards = self.library.list();
        cards.retain(chats);
        cards.sort_by_cached_key(|card| (!(self.can_run)(card), Reverse(card.modified_unix)));
        cards
    }

    /// The model a name stands for, or for an unknown name one for the task.
    fn resolve_or_fall_back(
        &self,
        reference: &str,
        task: ModelTask,
    ) -> Result<ModelCard, InferenceError> {
        match self.resolve(reference) {
            // An alias of a model that is gone is not unknown: then more than the name is told.
            Err(InferenceError::ModelNotFound {
                reference: missing,
                suggestions,
            }) if missing == reference && self.unknown() == UnknownModels::Default => {
                self.fallback(task).ok_or(InferenceError::ModelNotFound {
                    reference: missing,
                    suggestions,
                })
            }
            decided => decided,
        }
    }
}

fn chats(card: &ModelCard) -> bool {
    card.task == ModelTask::Generate && has_chat_template(&card.path)
}

/// The error where no model is named and none can answer.
fn none_for(task: ModelTask) -> InferenceError {
    let wanted = match task {
        ModelTask::Generate => "there is no chat model on this machine yet; download one",
        ModelTask::Embed => "there is not exactly one embedding model on this machine; name one",
        ModelTask::Rerank => "there is not exactly one reranker on this machine; name one",
    };
    InferenceError::InvalidRequest {
        param: Some("model".into()),
        message: format!("no model is named, and {wanted}"),
    }
}

impl Catalog for Names {
    fn choose(
        &self,
        reference: Option<&str>,
        task: ModelTask,
    ) -> Result<Arc<ModelCard>, InferenceError> {
        let card = match reference {
            Some(reference) => self.resolve_or_fall_back(reference.trim(), task)?,
            None => self.fallback(task).ok_or_else(|| none_for(task))?,
        };
        card.expect(task)?;
        Ok(Arc::new(card))
    }

    fn find(&self, reference: &str) -> Result<Arc<ModelCard>, InferenceError> {
        self.resolve(reference).map(Arc::new)
    }

    /// The library's models, then those that aliases stand for, under the aliases.
    fn list(&self) -> Vec<ModelCard> {
        let mut cards = self.library.list();
        for (alias, target) in self.aliases.all().iter() {
            if self.is_id(alias) {
                continue;
            }
            if let Ok(card) = self.library.resolve(target) {
                cards.push(ModelCard {
                    id: alias.clone(),
                    ..card
                });
            }
        }
        cards
    }

    fn describe(&self, card: &ModelCard) -> ModelDescription {
        macmlx_store::models::describe(card)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        fs,
        path::Path,
        time::{Duration, SystemTime},
    };

    use macmlx_settings::{Home, Settings};
    use serde_json::json;

    use super::*;

    struct Local {
        folder: tempfile::TempDir,
    }

    impl Local {
        /// A home with these models; those marked with `*` complete text and do not chat.
        fn new(models: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for model in models {
                let path = folder
                    .path()
                    .join("models")
                    .join(model.trim_end_matches('*'));
                put_model(&path, !model.ends_with('*'));
            }
            Self { folder }
        }

        fn home(&self) -> Home {
            Home::at(self.folder.path())
        }

        fn set(&self, settings: &serde_json::Value) {
            macmlx_settings::patch(&self.home().settings_file(), settings).unwrap();
        }

        fn names(&self) -> Names {
            let home = self.home();
            Names::new(
                Arc::new(Library::new(home.models(&Settings::default()))),
                Arc::new(Aliases::new(&home)),
                Arc::new(LiveSettings::new(&home)),
                RunNames::default(),
                |card| !card.id.contains("exotic"),
            )
        }

        /// Dates all files of a model.
        fn date(&self, model: &str, unix_seconds: u64) {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(unix_seconds);
            let folder = self.folder.path().join("models").join(model);
            for file in fs::read_dir(folder).unwrap() {
                let file = fs::File::open(file.unwrap().path()).unwrap();
                file.set_modified(time).unwrap();
            }
        }
    }

    fn put_model(folder: &Path, chats: bool) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("config.json"), r#"{"model_type": "llama"}"#).unwrap();
        fs::write(folder.join("tokenizer.json"), "{}").unwrap();
        if chats {
            fs::write(folder.join("chat_template.jinja"), "{{ messages }}").unwrap();
        }
        let header = r#"{"a.weight":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes());
        bytes.extend([0; 8]);
        fs::write(folder.join("model.safetensors"), bytes).unwrap();
    }

    fn id(names: &Names, reference: &str) -> Option<String> {
        id_for(names, reference, ModelTask::Generate)
    }

    fn loaded(id: &str, active_requests: u32, idle_seconds: u64) -> LoadedModel {
        LoadedModel {
            id: id.into(),
            memory_bytes: 0,
            active_requests,
            idle: Duration::from_secs(idle_seconds),
            expires_in: None,
            weights: String::new(),
        }
    }

    fn id_for(names: &Names, reference: &str, task: ModelTask) -> Option<String> {
        let chosen = names.choose(Some(reference), task);
        chosen.ok().map(|card| card.id.clone())
    }

    #[test]
    fn each_task_has_its_own_model_for_unknown_names() {
        let local = Local::new(&["org/chat", "org/embed-1", "org/embed-2", "org/rerank"]);
        let names = local.names();
        let found = |names: &Names, task| id_for(names, "text-embedding-3-small", task);
        assert_eq!(id(&names, "gpt-4o").as_deref(), Some("org/chat"));
        assert_eq!(
            found(&names, ModelTask::Generate).as_deref(),
            Some("org/chat")
        );
        assert_eq!(
            found(&names, ModelTask::Rerank).as_deref(),
            Some("org/rerank")
        );
        assert_eq!(found(&names, ModelTask::Embed), None);
        names.ask(|| {
            vec![
                loaded("org/embed-1", 0, 9),
                loaded("org/rerank", 1, 0),
                loaded("org/embed-2", 0, 5),
            ]
        });
        assert_eq!(
            found(&names, ModelTask::Embed).as_deref(),
            Some("org/embed-2")
        );
        assert_eq!(id(&names, "gpt-4o").as_deref(), Some("org/chat"));
        // A name that is known means that model, whatever is asked of it.
        assert_eq!(
            id_for(&names, "embed-1", ModelTask::Embed).as_deref(),
            Some("org/embed-1")
        );
        let refused = names
            .choose(Some("embed-1"), ModelTask::Generate)
            .unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("`org/embed-1` makes embeddings"),
            "{refused}"
        );
        let wrong = names.choose(Some("chat"), ModelTask::Embed).unwrap_err();
        assert!(
            wrong.to_string().contains("`org/chat` generates text"),
            "{wrong}"
        );
    }

    #[test]
    fn an_encoder_is_no_default_for_chats() {
        let local = Local::new(&["org/chat", "org/embed-1", "org/embed-2"]);
        local.set(&json!({"defaultModel": "org/embed-1"}));
        let names = local.names();
        assert_eq!(id(&names, "gpt-4o").as_deref(), Some("org/chat"));
        assert_eq!(
            id_for(&names, "text", ModelTask::Embed).as_deref(),
            Some("org/embed-1")
        );
    }

    #[test]
    fn a_persons_word_comes_before_an_abbreviation_and_hides_no_model() {
        let local = Local::new(&["org/coder-large", "org/small", "flat"]);
        let names = local.names();
        assert_eq!(id(&names, "coder").as_deref(), Some("org/coder-large"));
        names.aliases.add("coder", "org/small").unwrap();
        names.aliases.add("flat", "org/small").unwrap();
        assert_eq!(id(&names, "coder").as_deref(), Some("org/small"));
        assert_eq!(id(&names, "Coder:latest").as_deref(), Some("org/small"));
        assert_eq!(id(&names, "flat").as_deref(), Some("flat"));
        let listed: Vec<_> = names.list().into_iter().map(|card| card.id).collect();
        assert_eq!(listed, ["flat", "org/coder-large", "org/small", "coder"]);
    }

    #[test]
    fn claude_before_a_whole_name_is_that_model() {
        let local = Local::new(&["org/coder-large", "org/3-small"]);
        let mut names = local.names();
        names.run.unknown = Some(UnknownModels::Refuse);
        names.aliases.add("mine", "org/3-small").unwrap();
        for (reference, model) in [
            ("claude-org/coder-large", Some("org/coder-large")),
            ("claude-Coder-Large", Some("org/coder-large")),
            ("Claude-mine", Some("org/3-small")),
            ("claude-mine:latest", Some("org/3-small")),
            ("claude-coder-large:latest", Some("org/coder-large")),
            ("claude-3", None),
            ("claude-coder", None),
            ("claude-", None),
            ("claude", None),
        ] {
            assert_eq!(id(&names, reference).as_deref(), model, "{reference}");
        }
    }

    /// The model that answers where none is named also answers to unknown names.
    fn chosen(names: &Names) -> Option<String> {
        let unnamed = names.choose(None, ModelTask::Generate);
        let unnamed = unnamed.ok().map(|card| card.id.clone());
        assert_eq!(unnamed, id(names, "gpt-4o"));
        unnamed
    }

    #[test]
    fn unknown_names_go_to_the_default_then_the_last_used_then_the_newest() {
        let local = Local::new(&["org/one", "org/two", "org/base*", "org/exotic"]);
        for (model, unix_seconds) in [("one", 5), ("two", 7), ("base", 9), ("exotic", 9)] {
            local.date(&format!("org/{model}"), unix_seconds);
        }
        let names = local.names();
        assert_eq!(chosen(&names).as_deref(), Some("org/two"));
        local.date("org/one", 8);
        assert_eq!(chosen(&names).as_deref(), Some("org/one"));
        local.date("org/two", 8);
        assert_eq!(chosen(&names).as_deref(), Some("org/one"), "by name then");
        names.ask(|| {
            vec![
                loaded("org/two", 0, 5),
                loaded("org/one", 0, 60),
                loaded("org/base", 1, 0),
            ]
        });
        assert_eq!(chosen(&names).as_deref(), Some("org/two"));
        let names = local.names();
        names.ask(|| vec![loaded("org/two", 0, 5), loaded("org/one", 1, 0)]);
        assert_eq!(chosen(&names).as_deref(), Some("org/one"));
        // Also of a server that runs.
        local.set(&json!({"defaultModel": "two"}));
        assert_eq!(chosen(&names).as_deref(), Some("org/two"));
        let mut names = local.names();
        names.run.default_model = Some("one".into());
        assert_eq!(chosen(&names).as_deref(), Some("org/one"));
        local.set(&json!({"defaultModel": "org/gone"}));
        assert_eq!(chosen(&local.names()).as_deref(), Some("org/one"));
    }

    #[test]
    fn a_model_that_cannot_run_answers_only_where_no_other_chats() {
        let local = Local::new(&["org/exotic", "org/base*"]);
        assert_eq!(chosen(&local.names()).as_deref(), Some("org/exotic"));
        let none = Local::new(&["org/base*", "org/embed"]);
        assert_eq!(chosen(&none.names()), None);
        let error = none.names().choose(None, ModelTask::Generate).unwrap_err();
        assert!(error.to_string().contains("no chat model"), "{error}");
    }

    /// Names of models that are not here, as clients have them.
    fn foreign_names() -> [String; 14] {
        [
            "gpt-4o".into(),
            "llama3.2".into(),
            "llama3.2:latest".into(),
            "qwen3:8b".into(),
            "openai/gpt-4o-mini".into(),
            "ollama/llama3".into(),
            "models/gemini-pro".into(),
            "claude-other/model".into(),
            "claude-opus-4-1-20250805".into(),
            "org/smell".into(),
            "my model (new)".into(),
            "模型-🦙".into(),
            "hf.co/owner/name-GGUF:Q4_K_M".into(),
            "x".repeat(5000),
        ]
    }

    #[test]
    fn any_name_that_nobody_knows_is_answered_and_never_found() {
        let local = Local::new(&["org/small", "org/embed"]);
        let names = local.names();
        for name in foreign_names() {
            assert_eq!(id(&names, &name).as_deref(), Some("org/small"), "{name}");
            let embedded = id_for(&names, &name, ModelTask::Embed);
            assert_eq!(embedded.as_deref(), Some("org/embed"), "{name}");
            assert!(
                matches!(names.find(&name), Err(InferenceError::ModelNotFound { .. })),
                "{name}"
            );
        }
        let Err(InferenceError::ModelNotFound { suggestions, .. }) = names.find("org/smell") else {
            panic!("found");
        };
        assert_eq!(suggestions[0], "org/small");
        for known in ["org/small:latest", "small:latest", "SMALL", " small "] {
            assert_eq!(id(&names, known).as_deref(), Some("org/small"), "{known}");
            assert_eq!(names.find(known).unwrap().id, "org/small", "{known}");
        }
    }

    #[test]
    fn nothing_is_no_name() {
        let local = Local::new(&["org/small"]);
        for empty in ["", "  "] {
            for error in [
                local.names().find(empty).unwrap_err(),
                local
                    .names()
                    .choose(Some(empty), ModelTask::Generate)
                    .unwrap_err(),
            ] {
                let InferenceError::InvalidRequest { param, .. } = error else {
                    panic!("{error}");
                };
                assert_eq!(param.as_deref(), Some("model"));
            }
        }
    }

    #[test]
    fn unknown_names_are_refused_when_that_is_wanted() {
        let local = Local::new(&["org/small"]);
        local.set(&json!({"unknownModels": "refuse"}));
        let names = local.names();
        for name in foreign_names() {
            let error = names.choose(Some(&name), ModelTask::Generate).unwrap_err();
            let InferenceError::ModelNotFound { suggestions, .. } = error else {
                panic!("{name}: {error}");
            };
            assert_eq!(suggestions, ["org/small"], "{name}");
        }
        let unnamed = names.choose(None, ModelTask::Generate).unwrap();
        assert_eq!(unnamed.id, "org/small");
    }

    #[test]
    fn aliases_written_by_hand_into_the_settings_count() {
        let local = Local::new(&["org/small"]);
        let text = r#"{"modelAliases": {"gpt-4o": "small", "gone": "org/other"}}"#;
        fs::write(local.folder.path().join("settings.json"), text).unwrap();
        let names = local.names();
        assert_eq!(id(&names, "gpt-4o").as_deref(), Some("org/small"));
        assert!(names.find("gone").is_err());
        let Err(InferenceError::ModelNotFound { reference, .. }) =
            names.choose(Some("gone"), ModelTask::Generate)
        else {
            panic!("another model answers for one that is gone");
        };
        assert_eq!(reference, "gone (another name for org/other)");
        assert_eq!(names.list().len(), 2);
        assert_eq!(
            *names.aliases.all(),
            BTreeMap::from([
                ("gone".to_owned(), "org/other".to_owned()),
                ("gpt-4o".to_owned(), "small".to_owned()),
            ])
        );
    }
}
