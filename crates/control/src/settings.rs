//! The settings: shown, changed, and the hub's token, which is kept and never shown.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use axum::{Json, extract::State, http::StatusCode};
use macmlx_settings::{Error, HfToken, HfTokenError, LiveSettings, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Type},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Problem, body::Body, reply::ErrorBody};

/// What the settings routes act on.
#[derive(Debug)]
pub struct SettingsSources {
    pub live: Arc<LiveSettings>,
    pub hf_token: Arc<HfToken>,
}

/// `/x/settings`.
pub fn routes() -> OpenApiRouter<Arc<SettingsSources>> {
    OpenApiRouter::new()
        .routes(routes!(settings, patch_settings))
        .routes(routes!(put_hf_token, delete_hf_token))
}

/// The settings as they are, and what a person should know about them.
#[derive(Debug, Serialize, ToSchema)]
struct SettingsView {
    settings: ShownSettings,
    /// What `null` in a patch goes back to.
    defaults: ShownSettings,
    /// The file.
    path: String,
    /// What is wrong with the file.
    warnings: Vec<String>,
    /// Keys that have changed since the start and count only after the next one.
    restart_required: Vec<String>,
    has_hf_token: bool,
}

/// All settings; of the server's key only whether there is one.
#[derive(Debug, Serialize)]
struct ShownSettings {
    #[serde(flatten)]
    settings: Settings,
    #[serde(rename = "hasServerAPIKey")]
    has_server_api_key: bool,
}

impl From<Settings> for ShownSettings {
    fn from(settings: Settings) -> Self {
        Self {
            has_server_api_key: settings.api_key().is_some(),
            settings,
        }
    }
}

impl PartialSchema for ShownSettings {
    fn schema() -> RefOr<Schema> {
        let mut object = ObjectBuilder::new();
        for (key, schema) in list_shown() {
            object = object.property(key.clone(), schema).required(key);
        }
        let flag = ObjectBuilder::new().schema_type(Type::Boolean).build();
        object
            .property("hasServerAPIKey", flag)
            .required("hasServerAPIKey")
            .description(Some(
                "All settings; of the server's key only whether there is one.",
            ))
            .into()
    }
}

impl ToSchema for ShownSettings {
    fn name() -> Cow<'static, str> {
        "Settings".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Settings::schemas(schemas);
    }
}

/// A JSON merge patch of the settings.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct SettingsPatch(Map<String, Value>);

impl PartialSchema for SettingsPatch {
    fn schema() -> RefOr<Schema> {
        let mut object = ObjectBuilder::new();
        for (key, schema) in list_accepted() {
            let null = ObjectBuilder::new().schema_type(Type::Null).build();
            let either = OneOfBuilder::new().item(null).item(schema).build();
            object = object.property(key, Schema::OneOf(either));
        }
        object
            .additional_properties(Some(AdditionalProperties::FreeForm(false)))
            .description(Some(
                "What is left out stays as it is; null goes back to the default.",
            ))
            .into()
    }
}

impl ToSchema for SettingsPatch {
    fn name() -> Cow<'static, str> {
        "SettingsPatch".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Settings::schemas(schemas);
    }
}

/// Each setting that is shown, with its schema.
fn list_shown() -> impl Iterator<Item = (String, RefOr<Schema>)> {
    let properties = match Settings::schema() {
        RefOr::T(Schema::Object(object)) => Some(object.properties),
        _ => None,
    };
    properties.into_iter().flatten()
}

/// Each setting that can be changed: those, and the key that is taken and not shown.
fn list_accepted() -> impl Iterator<Item = (String, RefOr<Schema>)> {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(
            "Key that clients must send; none or empty: no key. It is not shown.",
        ))
        .build();
    list_shown().chain([("serverAPIKey".to_owned(), text.into())])
}

/// Show the settings.
#[utoipa::path(get, path = "/x/settings", responses((status = 200, body = SettingsView)))]
async fn settings(
    State(sources): State<Arc<SettingsSources>>,
) -> Result<Json<SettingsView>, Problem> {
    Ok(Json(
        tokio::task::spawn_blocking(move || view(&sources)).await?,
    ))
}

/// Change settings: a JSON merge patch. Unknown keys are refused.
#[utoipa::path(
    patch,
    path = "/x/settings",
    request_body = SettingsPatch,
    responses((status = 200, body = SettingsView), (status = 400, body = ErrorBody))
)]
async fn patch_settings(
    State(sources): State<Arc<SettingsSources>>,
    Body(SettingsPatch(changes)): Body<SettingsPatch>,
) -> Result<Json<SettingsView>, Problem> {
    let known: BTreeSet<String> = list_accepted().map(|(key, _)| key).collect();
    if let Some(key) = changes.keys().find(|key| !known.contains(*key)) {
        let message = format!("there is no setting `{key}`");
        return Err(Problem::invalid_param(key, message));
    }
    let view = tokio::task::spawn_blocking(move || {
        sources.live.patch(&Value::Object(changes))?;
        Ok::<_, Problem>(view(&sources))
    });
    Ok(Json(view.await??))
}

/// The token to keep.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Token {
    token: String,
}

/// Keep an access token of the Hugging Face Hub.
#[utoipa::path(
    put,
    path = "/x/settings/hf-token",
    request_body = Token,
    responses((status = 204), (status = 400, body = ErrorBody))
)]
async fn put_hf_token(
    State(sources): State<Arc<SettingsSources>>,
    Body(Token { token }): Body<Token>,
) -> Result<StatusCode, Problem> {
    tokio::task::spawn_blocking(move || sources.hf_token.set(&token)).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Forget the token that is kept; one of the environment counts again.
#[utoipa::path(delete, path = "/x/settings/hf-token", responses((status = 204)))]
async fn delete_hf_token(
    State(sources): State<Arc<SettingsSources>>,
) -> Result<StatusCode, Problem> {
    tokio::task::spawn_blocking(move || sources.hf_token.remove()).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Blocks on the disk.
fn view(sources: &SettingsSources) -> SettingsView {
    let SettingsSources { live, hf_token } = sources;
    SettingsView {
        settings: ShownSettings::from((*live.get()).clone()),
        defaults: ShownSettings::from(Settings::default()),
        path: live.path().display().to_string(),
        warnings: live.warnings(),
        restart_required: live.restart_required(),
        has_hf_token: hf_token.get().is_some(),
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Invalid { key, .. } => Self::invalid_param(key, message),
            Error::NotAnObject => Self::invalid(message),
            Error::Unreadable { .. } => Self::conflict("settings_unreadable", message),
            Error::Io { .. } => Self::failed("settings_failed", message),
        }
    }
}

impl From<HfTokenError> for Problem {
    fn from(error: HfTokenError) -> Self {
        let message = error.to_string();
        match error {
            HfTokenError::NotAToken => Self::invalid_param("token", message),
            HfTokenError::Io(_) => Self::failed("token_failed", message),
        }
    }
}
