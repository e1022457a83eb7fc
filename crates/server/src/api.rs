//! Routes that say what they are, so that the `OpenAPI` document cannot miss one.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Router, routing::MethodRouter};
use macmlx_protocol::{Described as Documented, Encoding, Framing, StreamEncoder};
use utoipa::{
    ToSchema,
    openapi::{
        Components, ContentBuilder, HttpMethod, Info, OpenApi, OpenApiBuilder, Paths, Ref, RefOr,
        Required, ResponseBuilder, Schema, SecurityRequirement,
        path::{Operation, OperationBuilder, ParameterBuilder, ParameterIn},
        request_body::RequestBodyBuilder,
        schema::{ObjectBuilder, Type},
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use crate::router::App;

/// Named schemas, by name.
type Schemas = BTreeMap<String, RefOr<Schema>>;

/// Routes and their descriptions.
#[derive(Clone, Default)]
pub(crate) struct Api {
    router: Router<Arc<App>>,
    operations: Vec<(String, HttpMethod, Operation)>,
    schemas: Schemas,
}

impl Api {
    /// A path and what each of its methods does.
    pub(crate) fn route(
        mut self,
        path: &str,
        methods: MethodRouter<Arc<App>>,
        docs: impl IntoIterator<Item = Doc>,
    ) -> Self {
        self.router = self.router.route(path, methods);
        for doc in docs {
            let method = doc.method.clone();
            let (operation, schemas) = doc.operation(path);
            self.operations
                .push((path.replace("{*", "{"), method, operation));
            self.add_schemas(schemas);
        }
        self
    }

    /// A path that is for clients with a habit, and is not told of.
    pub(crate) fn untold(mut self, path: &str, methods: MethodRouter<Arc<App>>) -> Self {
        self.router = self.router.route(path, methods);
        self
    }

    /// The same routes under a prefix.
    pub(crate) fn nest(mut self, prefix: &str) -> Self {
        self.router = Router::new().nest(prefix, self.router);
        for (path, ..) in &mut self.operations {
            path.insert_str(0, prefix);
        }
        self
    }

    /// Adds each route under `/v1`, without it, and with it twice: clients are configured with a
    /// base URL that may or may not end in it, and append theirs. Only one of them is described.
    pub(crate) fn with_and_without_v1(self) -> Self {
        let routes = self.router.clone();
        let mut api = self.nest("/v1");
        api.router = api
            .router
            .merge(Router::new().nest("/v1/v1", routes.clone()))
            .merge(routes);
        api
    }

    /// Both sets of routes.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.operations.extend(other.operations);
        self.add_schemas(other.schemas);
        self
    }

    fn add_schemas(&mut self, schemas: Schemas) {
        for (name, schema) in schemas {
            debug_assert!(
                self.schemas.get(&name).is_none_or(|known| *known == schema),
                "two types are called {name} in the document"
            );
            self.schemas.insert(name, schema);
        }
    }

    /// The routes alone, and the document of them all.
    pub(crate) fn into_parts(self) -> (Router<Arc<App>>, OpenApi) {
        let mut paths = Paths::new();
        for (path, method, operation) in self.operations {
            paths.add_path_operation(path, vec![method], operation);
        }
        let mut components = Components::new();
        components.schemas = self.schemas;
        let key = |scheme| SecurityScheme::ApiKey(scheme);
        components.add_security_scheme(
            "bearer",
            SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build()),
        );
        components.add_security_scheme(
            "x-api-key",
            key(ApiKey::Header(ApiKeyValue::new("x-api-key"))),
        );
        let document = OpenApiBuilder::new()
            .info(Info::new("macMLX", env!("CARGO_PKG_VERSION")))
            .paths(paths)
            .components(Some(components))
            .security(Some([
                SecurityRequirement::new::<_, [&str; 0], &str>("bearer", []),
                SecurityRequirement::new::<_, [&str; 0], &str>("x-api-key", []),
                // No key is set.
                SecurityRequirement::default(),
            ]))
            .build();
        (self.router, document)
    }
}

/// A type as the document shows it, with the types it is made of.
#[derive(Clone)]
struct Described {
    name: String,
    schemas: Schemas,
}

impl Described {
    fn of<T: ToSchema>() -> Self {
        let name = T::name().into_owned();
        let mut nested = Vec::new();
        T::schemas(&mut nested);
        let mut schemas: Schemas = nested.into_iter().collect();
        schemas.insert(name.clone(), T::schema());
        Self { name, schemas }
    }

    fn reference(&self) -> RefOr<Schema> {
        RefOr::Ref(Ref::from_schema_name(&self.name))
    }
}

/// What one method of a path takes and gives.
pub(crate) struct Doc {
    method: HttpMethod,
    summary: String,
    queries: Vec<(&'static str, &'static str)>,
    body: Option<Described>,
    reply: Option<Described>,
    stream: Option<(Framing, Described)>,
    is_open: bool,
}

impl Doc {
    fn new(method: HttpMethod, summary: &str) -> Self {
        Self {
            method,
            summary: summary.into(),
            queries: Vec::new(),
            body: None,
            reply: None,
            stream: None,
            is_open: false,
        }
    }

    /// A generating endpoint.
    pub(crate) fn generating<E: Documented>() -> Self {
        Self::post(E::SUMMARY)
            .body::<E::Body>()
            .reply::<E::Answer>()
            .frames::<E::Event>(<E::Encoder as StreamEncoder>::FRAMING)
    }

    /// A route that turns texts into numbers.
    pub(crate) fn encoding<E: Encoding>() -> Self {
        Self::post(E::SUMMARY).body::<E>().reply::<E::Reply>()
    }

    pub(crate) fn get(summary: &str) -> Self {
        Self::new(HttpMethod::Get, summary)
    }

    pub(crate) fn post(summary: &str) -> Self {
        Self::new(HttpMethod::Post, summary)
    }

    pub(crate) fn delete(summary: &str) -> Self {
        Self::new(HttpMethod::Delete, summary)
    }

    /// JSON it takes.
    pub(crate) fn body<T: ToSchema>(mut self) -> Self {
        self.body = Some(Described::of::<T>());
        self
    }

    /// JSON it gives.
    pub(crate) fn reply<T: ToSchema>(mut self) -> Self {
        self.reply = Some(Described::of::<T>());
        self
    }

    /// What each frame holds when the answer is streamed.
    pub(crate) fn frames<T: ToSchema>(mut self, framing: Framing) -> Self {
        self.stream = Some((framing, Described::of::<T>()));
        self
    }

    /// An optional parameter of the query.
    pub(crate) fn query(mut self, name: &'static str, meaning: &'static str) -> Self {
        self.queries.push((name, meaning));
        self
    }

    /// No key is asked for.
    pub(crate) fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    fn operation(self, path: &str) -> (Operation, Schemas) {
        let mut schemas = Schemas::new();
        let mut content_of = |described: Described| {
            let content = ContentBuilder::new()
                .schema(Some(described.reference()))
                .build();
            schemas.extend(described.schemas);
            content
        };
        let text = || {
            RefOr::T(Schema::Object(
                ObjectBuilder::new().schema_type(Type::String).build(),
            ))
        };
        let mut response = ResponseBuilder::new().description("The answer");
        if let Some(reply) = self.reply {
            response = response.content("application/json", content_of(reply));
        }
        if let Some((framing, event)) = self.stream {
            response = response.content(framing.content_type(), content_of(event));
        }
        let mut operation = OperationBuilder::new()
            .summary(Some(self.summary))
            .response("200", response.build());
        if let Some(body) = self.body {
            let body = RequestBodyBuilder::new()
                .content("application/json", content_of(body))
                .required(Some(Required::True))
                .build();
            operation = operation.request_body(Some(body));
        }
        for name in path_parameters(path) {
            operation = operation.parameter(
                ParameterBuilder::new()
                    .name(name)
                    .parameter_in(ParameterIn::Path)
                    .required(Required::True)
                    .schema(Some(text())),
            );
        }
        for (name, meaning) in self.queries {
            operation = operation.parameter(
                ParameterBuilder::new()
                    .name(name)
                    .parameter_in(ParameterIn::Query)
                    .description(Some(meaning))
                    .schema(Some(text())),
            );
        }
        if self.is_open {
            operation = operation.security(SecurityRequirement::default());
        }
        (operation.build(), schemas)
    }
}

/// The names in `/models/{id}` and `/models/{*id}`.
fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        Some(name.trim_start_matches('*'))
    })
}
