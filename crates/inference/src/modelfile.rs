//! What a model that was made from another says itself, where a request says nothing.

use serde::{Deserialize, Serialize};

use crate::{ChatPrompt, GenerateRequest, Message, Prompt, Role, SamplingParams};

/// What was said when a model was made from another; it stands beside the model's weights.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Modelfile {
    /// Id of the model it was made from, which may be gone.
    pub from: String,
    /// The system turn of conversations that begin with none.
    pub system: Option<String>,
    /// Turns before those of every conversation.
    pub messages: Vec<Message>,
    pub sampling: SamplingParams,
    /// Stop sequences of requests that have none.
    pub stop: Vec<String>,
    pub max_tokens: Option<u32>,
}

/// A model to be made from another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewModel {
    pub name: String,
    /// What it says itself; of which model it is made stands there, too.
    pub modelfile: Modelfile,
    /// A chat template in Jinja. `None`: that of the other model.
    pub template: Option<String>,
    /// Text of the licence. `None`: that of the other model.
    pub license: Option<String>,
}

impl Modelfile {
    /// What this says, and where it says nothing, what the model says that it was made from.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut sampling = self.sampling;
        fill_in(&mut sampling, &other.sampling);
        Self {
            from: self.from,
            system: self.system.or(other.system),
            messages: either(self.messages, other.messages),
            sampling,
            stop: either(self.stop, other.stop),
            max_tokens: self.max_tokens.or(other.max_tokens),
        }
    }

    /// Gives a request what it leaves unset.
    pub fn fill_in(&self, request: &mut GenerateRequest) {
        fill_in(&mut request.sampling, &self.sampling);
        let stop = &mut request.stop;
        stop.max_tokens = stop.max_tokens.or(self.max_tokens);
        if stop.sequences.is_empty() {
            stop.sequences.clone_from(&self.stop);
        }
        if let Prompt::Chat(chat) = &mut request.prompt {
            self.fill_in_chat(chat);
        }
    }

    /// Puts its turns before those of a conversation, behind the conversation's own system turn.
    pub fn fill_in_chat(&self, chat: &mut ChatPrompt) {
        let has_system = chat
            .messages
            .first()
            .is_some_and(|turn| turn.role == Role::System);
        if let (Some(system), false) = (&self.system, has_system) {
            let system = Message::text(Role::System, system.clone());
            chat.messages.insert(0, system);
        }
        let leading = chat
            .messages
            .iter()
            .take_while(|turn| turn.role == Role::System);
        let at = leading.count();
        chat.messages.splice(at..at, self.messages.iter().cloned());
    }
}

fn either<T>(mine: Vec<T>, theirs: Vec<T>) -> Vec<T> {
    if mine.is_empty() { theirs } else { mine }
}

fn fill_in(sampling: &mut SamplingParams, defaults: &SamplingParams) {
    sampling.fill_in(defaults);
    sampling.penalty_window = sampling.penalty_window.or(defaults.penalty_window);
    sampling.seed = sampling.seed.or(defaults.seed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modelfile() -> Modelfile {
        Modelfile {
            from: "org/m".into(),
            system: Some("Be brief.".into()),
            messages: vec![
                Message::text(Role::User, "Hi"),
                Message::text(Role::Assistant, "Ahoy"),
            ],
            sampling: SamplingParams {
                temperature: Some(0.5),
                seed: Some(7),
                ..SamplingParams::default()
            },
            stop: vec!["END".into()],
            max_tokens: Some(9),
        }
    }

    fn filled(messages: &[(Role, &str)]) -> Vec<String> {
        let turns = messages
            .iter()
            .map(|(role, text)| Message::text(*role, *text));
        let mut request = GenerateRequest::new(
            "m",
            Prompt::Chat(ChatPrompt {
                messages: turns.collect(),
                ..ChatPrompt::default()
            }),
        );
        modelfile().fill_in(&mut request);
        match request.prompt {
            Prompt::Chat(chat) => chat.messages.iter().map(Message::joined_text).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn its_turns_stand_before_those_of_a_conversation() {
        assert_eq!(
            filled(&[(Role::User, "a")]),
            ["Be brief.", "Hi", "Ahoy", "a"]
        );
        assert_eq!(
            filled(&[(Role::System, "Be long."), (Role::User, "a")]),
            ["Be long.", "Hi", "Ahoy", "a"]
        );
    }

    #[test]
    fn a_request_has_the_say() {
        let mut request = GenerateRequest::new("m", Prompt::Text("a".into()));
        modelfile().fill_in(&mut request);
        assert_eq!(request.sampling.temperature, Some(0.5));
        assert_eq!(request.sampling.seed, Some(7));
        assert_eq!(request.stop.sequences, ["END"]);
        assert_eq!(request.stop.max_tokens, Some(9));
        let mut request = GenerateRequest::new("m", Prompt::Text("a".into()));
        request.sampling.temperature = Some(0.0);
        request.stop.sequences = vec!["x".into()];
        request.stop.max_tokens = Some(1);
        modelfile().fill_in(&mut request);
        assert_eq!(request.sampling.temperature, Some(0.0));
        assert_eq!(request.stop.sequences, ["x"]);
        assert_eq!(request.stop.max_tokens, Some(1));
    }

    #[test]
    fn what_a_model_does_not_say_its_parent_does() {
        let child = Modelfile {
            from: "mine".into(),
            system: Some("Be kind.".into()),
            max_tokens: Some(3),
            ..Modelfile::default()
        };
        let both = child.or(modelfile());
        assert_eq!(both.from, "mine");
        assert_eq!(both.system.as_deref(), Some("Be kind."));
        assert_eq!(both.max_tokens, Some(3));
        assert_eq!(both.messages, modelfile().messages);
        assert_eq!(both.sampling.temperature, Some(0.5));
        assert_eq!(both.stop, ["END"]);
    }
}
