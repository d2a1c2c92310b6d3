//! `[[site.route]]`: which requests, what is done with them, and under which policies.

use std::collections::HashMap;
use std::time::Duration;

use tidegate_proxy::settings::{
    Action, HeaderEdit, MethodName, PathRule, Retry, Route, RouteTimeouts, Trace,
};

use super::super::diagnostic::{Diagnostic, Severity, code};
use super::super::options::{
    ANSWER_BYTES_MAX, Field, answer, redirect, request_headers, response_headers, route,
};
use super::super::reader::{Located, Reading, Scope};
use super::super::source::Span;
use super::super::suggest;
use super::super::value::show_size;
use super::cache;
use super::group::Groups;
use super::site::Shared;

/// What a site does with requests, for its routes that do not say otherwise.
pub(super) struct SiteAction {
    action: Option<Action>,
    span: Option<Span>,
    used: Used,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Used {
    Yes,
    No,
}

impl SiteAction {
    pub(super) fn of(
        scope: &Scope<'_>,
        groups: &mut Groups<'_>,
        reading: &mut Reading<'_>,
    ) -> Self {
        let span = action_keys(scope).first().map(|(_, span)| *span);
        let action = if span.is_some() { action(scope, groups, reading) } else { None };
        SiteAction { action, span, used: Used::No }
    }

    /// Whether the site says nothing; one that says something wrong has been told so.
    pub(super) fn is_absent(&self) -> bool {
        self.span.is_none()
    }

    fn take(&mut self) -> Option<Action> {
        self.used = Used::Yes;
        self.action.clone()
    }

    /// Warns if no request is left for it.
    pub(super) fn check_used(&self, reading: &mut Reading<'_>) {
        if self.used == Used::No
            && reading.diagnostics.count(Severity::Error) == 0
            && let Some(span) = self.span
        {
            reading.report(
                Diagnostic::new(&code::UNUSED, span, "the site's routes leave no request for this")
                    .hint("a route with `path = \"/\"` takes all that no other route takes"),
            );
        }
    }
}

/// What a route may do, and where its table says so.
fn action_keys(scope: &Scope<'_>) -> Vec<(&'static str, Span)> {
    let keys = [route::GROUP.key, route::UPSTREAM.key, answer::SECTION.key, redirect::SECTION.key];
    keys.into_iter().filter_map(|key| Some((key, scope.key_span(key)?))).collect()
}

fn action(scope: &Scope<'_>, groups: &mut Groups<'_>, reading: &mut Reading<'_>) -> Option<Action> {
    let keys = action_keys(scope);
    if let [(first, first_span), (second, second_span), ..] = keys.as_slice() {
        reading.report(
            Diagnostic::new(
                &code::SEVERAL_ACTIONS,
                *second_span,
                format!("`{second}` and `{first}` cannot both be done"),
            )
            .beside(*first_span, "the other one")
            .hint("a request is passed on, answered or redirected: leave one"),
        );
        return None;
    }
    let (key, span) = keys.first()?;
    if *key == route::GROUP.key {
        let name = scope.find(&route::GROUP, reading)?;
        let index = groups.named(&name.value);
        if index.is_none() {
            let place = name.span.unwrap_or(*span);
            let shown = reading.shown(&name.value, place);
            let message = format!("there is no group {shown}");
            let guess = reading.guess(&name.value, groups.names());
            let mut names: Vec<&str> = groups.names().take(11).collect();
            names.sort_unstable();
            let hint = match names.len() {
                0 => "make it: `[group.NAME]` with `servers`".into(),
                1..=10 => format!("known are {}", suggest::one_of(names)),
                _ => "names of groups are those of `[group.NAME]`".into(),
            };
            reading.report(
                Diagnostic::new(&code::UNKNOWN_GROUP, place, message).label(guess).hint(hint),
            );
        }
        return index.map(Action::Group);
    }
    if *key == route::UPSTREAM.key {
        let upstreams = scope.find(&route::UPSTREAM, reading)?;
        let written_empty = matches!(
            scope.node(route::UPSTREAM.key).map(|node| &node.value),
            Some(super::super::node::Value::Array(list)) if list.is_empty()
        );
        if written_empty {
            let message = "the list of servers is empty";
            reading.report(Diagnostic::new(&code::NO_SERVERS, *span, message));
        }
        return groups
            .short(&upstreams, upstreams.span.unwrap_or(*span), reading)
            .map(Action::Group);
    }
    if *key == answer::SECTION.key {
        return answer(&scope.child(&answer::SECTION), reading);
    }
    let redirect = scope.child(&redirect::SECTION);
    let status = redirect.read(&redirect::STATUS, reading).value;
    let to = redirect.require(&redirect::TO, reading)?.value;
    Some(Action::Redirect { status, to })
}

fn answer(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Option<Action> {
    if !scope.is_table() {
        return None;
    }
    let status = scope.read(&answer::STATUS, reading);
    let body = scope.read(&answer::BODY, reading);
    let content_type = scope.read(&answer::CONTENT_TYPE, reading).value;
    if let Some(span) = body.span {
        if body.value.len() as u64 > ANSWER_BYTES_MAX {
            let message = format!("an answer's body has at most {}", show_size(ANSWER_BYTES_MAX));
            reading.report(
                Diagnostic::new(&code::OUT_OF_RANGE, span, message)
                    .hint("larger ones are served by a server"),
            );
        }
        if matches!(status.value, 204 | 205) && !body.value.is_empty() {
            let message = format!("a response with status {} has no body", status.value);
            reading.report(
                Diagnostic::new(&code::INVALID_STATUS, span, message)
                    .hint("leave out the body, or answer with 200"),
            );
        }
    }
    Some(Action::Answer { status: status.value, body: body.value, content_type })
}

/// A route that is written.
pub(super) fn resolve(
    scope: &Scope<'_>,
    site: &mut SiteAction,
    shared: &mut Shared<'_, '_>,
    reading: &mut Reading<'_>,
) -> Option<Route> {
    let path = path_rule(scope, reading);
    let methods = scope.find(&route::METHODS, reading);
    let written = !action_keys(scope).is_empty();
    let action = if written { action(scope, shared.groups, reading) } else { site.take() };
    if !written && site.is_absent() {
        reading.report_missing(
            scope,
            Diagnostic::new(&code::NO_ACTION, scope.place(), "this route does not say what to do")
                .hint("add `group`, `upstream`, `answer` or `redirect`, here or in its site"),
        );
    }
    if let Some(methods) = &methods
        && let Some(super::super::node::Value::Array(list)) =
            scope.node(route::METHODS.key).map(|node| &node.value)
        && list.is_empty()
    {
        reading.report(
            Diagnostic::new(
                &code::UNREACHABLE_ROUTE,
                methods.span.unwrap_or(scope.place()),
                "a route without methods serves no request",
            )
            .hint("leave out `methods` for all of them"),
        );
    }
    // A stand-in would conflict with routes that are right.
    let path = path?;
    let route = policies(scope, path, methods.as_ref(), action, shared, reading);
    check_methods(scope, methods.as_ref(), &route, reading);
    check_effects(scope, &route, reading);
    Some(route)
}

/// The route for all that the written ones leave, if the site says what to do.
pub(super) fn rest(
    scope: &Scope<'_>,
    site: &mut SiteAction,
    shared: &mut Shared<'_, '_>,
    reading: &mut Reading<'_>,
) -> Option<Route> {
    if site.is_absent() {
        return None;
    }
    let action = site.take();
    Some(policies(scope, PathRule::Prefix("/".into()), None, action, shared, reading))
}

fn path_rule(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Option<PathRule> {
    let path = scope.find(&route::PATH, reading);
    let exact = scope.find(&route::EXACT, reading);
    match (scope.key_span(route::PATH.key), scope.key_span(route::EXACT.key)) {
        (Some(path), Some(exact)) => {
            reading.report(
                Diagnostic::new(
                    &code::CONTRADICTION,
                    exact,
                    "a route has a `path` or an `exact`, not both",
                )
                .beside(path, "the other one")
                .hint("write a second route"),
            );
        }
        (None, None) => {
            reading.report_missing(
                scope,
                Diagnostic::new(&code::MISSING_OPTION, scope.place(), "[[site.route]] has no path")
                    .hint("add `path = \"/api/\"` for all below it, or `exact = \"/robots.txt\"` for one"),
            );
        }
        _ => {}
    }
    let path = path.map(|path| PathRule::Prefix(path.value));
    path.or(exact.map(|exact| PathRule::Exact(exact.value)))
}

fn policies(
    scope: &Scope<'_>,
    path: PathRule,
    methods: Option<&Located<Vec<Located<MethodName>>>>,
    action: Option<Action>,
    shared: &mut Shared<'_, '_>,
    reading: &mut Reading<'_>,
) -> Route {
    let methods: Vec<MethodName> = methods
        .map(|list| list.value.iter().map(|method| method.value.clone()).collect())
        .unwrap_or_default();
    let name = scope.find(&route::NAME, reading).map(|name| name.value);
    let upgrades = scope.read(&route::UPGRADES, reading).value;
    let body_max = scope.read(&route::BODY_MAX, reading);
    if body_max.value.is_none()
        && let Some(span) = body_max.span
    {
        reading.report(
            Diagnostic::new(&code::NO_LIMIT, span, "a client may send a body without end")
                .hint("name the largest that makes sense, such as `\"1GB\"`"),
        );
    }
    let strip_prefix = strip_prefix(scope, &path, reading);
    let add_prefix = scope
        .find(&route::ADD_PREFIX, reading)
        .map(|prefix| prefix.value.trim_end_matches('/').to_owned())
        .filter(|prefix| !prefix.is_empty());
    Route {
        name: name.unwrap_or_else(|| default_name(&path, &methods)),
        methods,
        // A stand-in, where the mistake has been reported and the settings will not be used.
        action: action.unwrap_or(Action::Group(usize::MAX)),
        strip_prefix,
        add_prefix,
        upstream_host: scope.read(&route::UPSTREAM_HOST, reading).value,
        request_headers: request_headers(scope, reading),
        response_headers: response_headers(scope, reading),
        timeouts: timeouts(scope, reading),
        body_bytes_max: body_max.value,
        retry: Retry {
            when: scope.read(&route::RETRY, reading).value,
            attempts_max: scope.read(&route::RETRY_ATTEMPTS, reading).value,
        },
        upgrades: upgrades.into_iter().map(|protocol| protocol.value).collect(),
        trace: scope.read(&route::TRACE, reading).value,
        inspect: shared.firewall.inspect(&scope.levels(), reading),
        caching: cache::caching(&shared.cache, &scope.levels(), reading),
        path,
    }
}

fn default_name(path: &PathRule, methods: &[MethodName]) -> String {
    let mut name = match path {
        PathRule::Exact(path) => format!("={path}"),
        PathRule::Prefix(path) => path.clone(),
    };
    for method in methods {
        name.push(' ');
        name.push_str(&method.text);
    }
    name
}

fn timeouts(scope: &Scope<'_>, reading: &mut Reading<'_>) -> RouteTimeouts {
    /// A time-out of hours is none that anybody waits for.
    const LONG: Duration = Duration::from_hours(1);
    let first_byte = scope.read(&route::FIRST_BYTE_TIMEOUT, reading);
    let between_bytes = scope.read(&route::BETWEEN_BYTES_TIMEOUT, reading);
    for timeout in [&first_byte, &between_bytes] {
        if timeout.value > LONG
            && let Some(span) = timeout.span
        {
            let message = "a server that hangs holds its requests for hours";
            reading.report(
                Diagnostic::new(&code::NO_TIMEOUT, span, message)
                    .hint("the time that the slowest honest response takes is enough"),
            );
        }
    }
    let whole = scope.read(&route::WHOLE_TIMEOUT, reading);
    if let Some(limit) = whole.value
        && limit < first_byte.value
        && let Some(span) = whole.span
    {
        let message = "`whole_timeout` ends before `first_byte_timeout` can";
        let mut diagnostic = Diagnostic::new(&code::TIMEOUT_ORDER, span, message)
            .hint("let `first_byte_timeout` be shorter than `whole_timeout`");
        if let Some(first_byte) = first_byte.span {
            diagnostic = diagnostic.beside(first_byte, "this never fires");
        }
        reading.report(diagnostic);
    }
    RouteTimeouts {
        first_byte: first_byte.value,
        between_bytes: between_bytes.value,
        whole: whole.value,
        tunnel_idle: scope.read(&route::TUNNEL_IDLE_TIMEOUT, reading).value,
    }
}

/// The prefix to take, without a slash at its end: what is left of a path begins with one.
fn strip_prefix(scope: &Scope<'_>, path: &PathRule, reading: &mut Reading<'_>) -> Option<String> {
    let found = scope.find(&route::STRIP_PREFIX, reading)?;
    let span = found.span.unwrap_or(scope.place());
    let prefix = found.value.trim_end_matches('/');
    let (PathRule::Exact(of) | PathRule::Prefix(of)) = path;
    if prefix.is_empty() {
        let message = "there is nothing to take from a path but its first slash";
        reading.report(Diagnostic::new(&code::NO_EFFECT, span, message));
        return None;
    }
    if of.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        return Some(prefix.into());
    }
    reading.report(
        Diagnostic::new(
            &code::STRIP_PREFIX,
            span,
            format!("`{}` is not in front of each path that this route serves", found.value),
        )
        .label(format!("the path is `{of}`"))
        .hint(format!("write `{}` or a part of it", of.trim_end_matches('/'))),
    );
    None
}

/// Edits of `[defaults]` first, then the site's, then the route's.
fn request_headers(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Vec<HeaderEdit> {
    let mut edits = Vec::new();
    for level in scope.levels().iter().rev() {
        let scope = level.child(&request_headers::SECTION);
        let set = scope.find(&request_headers::SET, reading);
        let add = scope.find(&request_headers::ADD, reading);
        let remove = scope.find(&request_headers::REMOVE, reading);
        push_edits(&mut edits, set, add, remove, reading);
    }
    edits
}

fn response_headers(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Vec<HeaderEdit> {
    let mut edits = Vec::new();
    for level in scope.levels().iter().rev() {
        let scope = level.child(&response_headers::SECTION);
        let set = scope.find(&response_headers::SET, reading);
        let add = scope.find(&response_headers::ADD, reading);
        let remove = scope.find(&response_headers::REMOVE, reading);
        push_edits(&mut edits, set, add, remove, reading);
    }
    edits
}

/// Removals come first, so that a field that is removed and added is replaced.
fn push_edits(
    edits: &mut Vec<HeaderEdit>,
    set: Option<Located<Vec<Field>>>,
    add: Option<Located<Vec<Field>>>,
    remove: Option<Located<Vec<Located<String>>>>,
    reading: &mut Reading<'_>,
) {
    let set = set.map(|set| set.value).unwrap_or_default();
    let remove = remove.map(|remove| remove.value).unwrap_or_default();
    for field in &set {
        let same = |name: &&Located<String>| name.value.eq_ignore_ascii_case(&field.value.0);
        if let (Some(removed), Some(span)) = (remove.iter().find(same), field.span) {
            let message = format!("`{}` is both set and removed", field.value.0);
            let mut diagnostic = Diagnostic::new(&code::CONTRADICTION, span, message);
            if let Some(removed) = removed.span {
                diagnostic = diagnostic.beside(removed, "removed here");
            }
            reading
                .report(diagnostic.hint("`set` replaces all fields of a name: leave out `remove`"));
        }
    }
    edits.extend(remove.into_iter().map(|name| HeaderEdit::Remove(name.value)));
    edits.extend(set.into_iter().map(|field| HeaderEdit::Set(field.value.0, field.value.1)));
    let add = add.map(|add| add.value).unwrap_or_default();
    edits.extend(add.into_iter().map(|field| HeaderEdit::Add(field.value.0, field.value.1)));
}

fn check_methods(
    scope: &Scope<'_>,
    methods: Option<&Located<Vec<Located<MethodName>>>>,
    route: &Route,
    reading: &mut Reading<'_>,
) {
    let Some(methods) = methods else { return };
    let mut seen: Vec<&str> = Vec::new();
    for method in &methods.value {
        let span = method.span.unwrap_or(scope.place());
        if seen.contains(&method.value.text.as_str()) {
            let message = format!("`{}` is listed twice", method.value.text);
            reading.report(Diagnostic::new(&code::NO_EFFECT, span, message));
        }
        seen.push(&method.value.text);
        if method.value.method == tidegate_http::Method::Trace && route.trace == Trace::Refuse {
            let diagnostic = Diagnostic::new(
                &code::UNREACHABLE_ROUTE,
                span,
                "TRACE is refused before it gets here",
            );
            reading.report(diagnostic.hint("add `trace = \"pass\"`, or leave out the method"));
        }
    }
}

/// Warns of options that only mean something where a request is passed on.
fn check_effects(scope: &Scope<'_>, route: &Route, reading: &mut Reading<'_>) {
    let what = match route.action {
        Action::Group(_) => return,
        Action::Answer { .. } => "an answer",
        Action::Redirect { .. } => "a redirect",
    };
    let upstream = [
        route::STRIP_PREFIX.key,
        route::ADD_PREFIX.key,
        route::UPSTREAM_HOST.key,
        route::FIRST_BYTE_TIMEOUT.key,
        route::BETWEEN_BYTES_TIMEOUT.key,
        route::TUNNEL_IDLE_TIMEOUT.key,
        route::RETRY.key,
        route::RETRY_ATTEMPTS.key,
        route::UPGRADES.key,
        request_headers::SECTION.key,
    ];
    for key in upstream {
        if let Some(span) = scope.key_span(key) {
            let message = format!("`{key}` is about servers, and {what} needs none");
            reading.report(Diagnostic::new(&code::NO_EFFECT, span, message));
        }
    }
}

/// Reports routes of one site that want the same requests.
pub(super) fn check_conflicts(routes: &[Route], spans: &[Span], reading: &mut Reading<'_>) {
    let mut by_path: HashMap<&PathRule, Vec<usize>> = HashMap::new();
    for (index, route) in routes.iter().enumerate() {
        let (PathRule::Exact(path) | PathRule::Prefix(path)) = &route.path;
        let others = by_path.entry(&route.path).or_default();
        for other in others.iter() {
            let both = overlap(&routes[*other].methods, &route.methods);
            if let Some(both) = both {
                reading.report(
                    Diagnostic::new(
                        &code::ROUTE_CONFLICT,
                        spans[index],
                        format!("two routes want {both}`{path}`"),
                    )
                    .beside(spans[*other], "the other one")
                    .hint("tell them apart by path or `methods`, or leave one"),
                );
            }
        }
        others.push(index);
    }
}

/// What two lists of methods have in common, as a sentence begins it. One that lists methods goes
/// before one that takes all, so these do not conflict.
fn overlap(a: &[MethodName], b: &[MethodName]) -> Option<String> {
    if a.is_empty() && b.is_empty() {
        return Some(String::new());
    }
    a.iter().find(|method| b.contains(method)).map(|method| format!("{} ", method.text))
}
