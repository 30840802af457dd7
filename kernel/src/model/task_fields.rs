//! Plain fields of a task: values with a bound that the board stores as given. Each is declared once, in [`task_fields!`](crate::task_fields!);
//! its column, the row, the requests that set it and the form of the dashboard follow from there.
//!
//! Fields with rules of their own (the assignee, the parents, the workspace, the check) have code instead.

use std::time::Duration;

use serde::Serialize;

/// Hands the declaration of the plain fields to a macro: `task_fields! { path::of::a_macro { context } }` becomes
/// `path::of::a_macro! { { context } declaration }`.
///
/// The fields stand in groups, each a struct that a new task, a stored task and an edit share. The parts of a field:
///
/// * the attributes and the name of the member of its struct, with its kind: see [`FieldKind`];
/// * its column, with the form in which it is stored if that differs from the value;
/// * `free` if it may change at any time, `settings` if a run works under it, `fixed` if no edit changes it;
/// * `kept` if a fork of a task has the same value, else `fresh`;
/// * its name in requests, the placeholder of its flag, its help, its label and its note in the dashboard;
/// * its position in each request and each command, or `no` where it is absent. A struct declares its positions by the
///   markers `@first;`, `@second;`, `@third;` and `@last;`, or takes all of them at `@all;`. A new field is `last`.
#[macro_export]
macro_rules! task_fields {
    ($($path:ident)::+ { $($context:tt)* }) => {
        $($path)::+! {
            { $($context)* }
            /// Limits on the runs of a task.
            limits: Limits {
                /// Time limit of each run.
                #[serde(rename = "max_runtime_seconds", default, with = "optional_seconds")]
                #[schemars(with = "Option<u64>")]
                max_runtime: Span (max_runtime_us as duration) settings kept
                    request(max_runtime "DURATION" "End a run after this time: seconds, or 30s, 5m, 2h, 1d")
                    form("Time limit" "Such as 30s, 5m, 2h, 1d")
                    create(second) edit(second) bulk(no) schedule(second) add(first) run(first) fleet(first);
                /// Number of counted failures in a row that block the task.
                max_retries: Number (max_retries) free fresh
                    request(max_retries "N" "Block the task after this many counted failures in a row; 0 and 1: after the first")
                    form("Failure limit" "Counted failures in a row until it is blocked")
                    create(third) edit(first) bulk(no) schedule(second) add(first) run(no) fleet(no);
                /// Budget of the task, in millionths of a US dollar.
                budget_usd_micros: Amount (budget_usd_micros) fixed fresh
                    request(budget_usd_micros "N" "Budget of the task")
                    form("Budget" "In millionths of a US dollar")
                    create(no) edit(no) bulk(no) schedule(no) add(no) run(no) fleet(no);
            }
            /// Fields that a client keeps with a task. The board stores them and decides nothing by them.
            client: Client {
                project_id: Word (project_id) fixed fresh
                    request(project "NAME" "A project label")
                    form("Project" "A project label")
                    create(first) edit(no) bulk(no) schedule(first) add(no) run(no) fleet(no);
                session_id: Word (session_id) fixed fresh
                    request(session "ID" "The client's session")
                    form("Session" "The client's session")
                    create(last) edit(no) bulk(no) schedule(no) add(no) run(no) fleet(no);
                workflow_template_id: Word (workflow_template_id) fixed fresh
                    request(workflow_template_id "ID" "The client's workflow")
                    form("Workflow" "The client's workflow")
                    create(last) edit(no) bulk(no) schedule(no) add(no) run(no) fleet(no);
                /// Client's step in the workflow.
                current_step_key: Word (current_step_key) fixed fresh
                    request(step_key "KEY" "The step of the workflow")
                    form("Step" "The step of the workflow")
                    create(last) edit(no) bulk(no) schedule(no) add(no) run(no) fleet(no);
                /// Model to use in place of the profile's.
                model_override: Word (model_override) fixed kept
                    request(model_override "NAME" "The model")
                    form("Model" "The model")
                    create(no) edit(no) bulk(no) schedule(no) add(no) run(no) fleet(no);
            }
        }
    };
}

/// Types of the kinds, as members of a struct.
pub(crate) mod kinds {
    use std::time::Duration;

    pub(crate) type Word = Option<String>;
    pub(crate) type Number = Option<u32>;
    pub(crate) type Amount = Option<i64>;
    pub(crate) type Span = Option<Duration>;
}

/// Value of a plain field, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A short text that is not empty.
    Word(&'a str),
    Number(u32),
    Amount(i64),
    /// A time above zero.
    Span(Duration),
}

impl<'a> Value<'a> {
    /// Returns the text of a word.
    pub(crate) fn word(self) -> Option<&'a str> {
        match self {
            Value::Word(word) => Some(word),
            Value::Number(_) | Value::Amount(_) | Value::Span(_) => None,
        }
    }
}

/// Time at which a plain field may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// At any time.
    Free,
    /// While no run works under it, and before its task is done.
    Settings,
    /// Never.
    Fixed,
}

/// Plain field that has a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainField<'a> {
    /// Name in the record of a task.
    pub(crate) name: &'static str,
    pub(crate) column: &'static str,
    pub(crate) change: Change,
    pub(crate) value: Value<'a>,
}

/// Value of an optional member, by its type.
pub(crate) trait Member {
    fn value(&self) -> Option<Value<'_>>;
}

impl Member for Option<String> {
    fn value(&self) -> Option<Value<'_>> {
        self.as_deref().map(Value::Word)
    }
}

impl Member for Option<u32> {
    fn value(&self) -> Option<Value<'_>> {
        self.map(Value::Number)
    }
}

impl Member for Option<i64> {
    fn value(&self) -> Option<Value<'_>> {
        self.map(Value::Amount)
    }
}

impl Member for Option<Duration> {
    fn value(&self) -> Option<Value<'_>> {
        self.map(Value::Span)
    }
}

/// Plain field of a task, as a form of it shows it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TaskField {
    /// Name in the record of a task.
    pub name: &'static str,
    /// Name in requests.
    pub request: &'static str,
    pub kind: FieldKind,
    pub label: &'static str,
    /// Sentence that explains the value.
    pub note: &'static str,
    /// Position in each request.
    #[serde(skip)]
    requests: &'static [(&'static str, &'static str)],
}

/// Form of a plain field in a request and on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// A short text.
    Word,
    Number,
    /// A number that may be large, or below zero.
    Amount,
    /// A time: seconds in the record of a task, text such as `5m` in requests.
    Span,
}

impl TaskField {
    /// True if a request can set the field.
    pub fn is_in(&self, request: &str) -> bool {
        self.requests.iter().any(|(name, at)| *name == request && *at != "no")
    }
}

/// Declares the list of the fields.
macro_rules! list {
    ({} $($(#[$doc:meta])* $group:ident: $Group:ident { $(
        $(#[$attribute:meta])* $name:ident: $kind:ident ($($column:tt)*) $change:ident $fork:ident
        request($request:ident $unit:tt $help:tt) form($label:tt $note:tt)
        $($who:ident($at:ident))*;
    )* })*) => {
        /// Plain fields in the order of their declaration, for forms and completions.
        pub const TASK_FIELDS: &[TaskField] = &[$($(TaskField {
            name: name!($kind $name),
            request: stringify!($request),
            kind: FieldKind::$kind,
            label: $label,
            note: $note,
            requests: &[$((stringify!($who), stringify!($at))),*],
        },)*)*];
    };
}

macro_rules! name {
    (Span $name:ident) => {
        concat!(stringify!($name), "_seconds")
    };
    ($kind:ident $name:ident) => {
        stringify!($name)
    };
}

task_fields! { list {} }

/// Declares the structs of the groups.
macro_rules! groups {
    ({} $($(#[$doc:meta])* $group:ident: $Group:ident { $(
        $(#[$attribute:meta])* $name:ident: $kind:ident ($column:ident $(as $form:ident)?) $change:ident $fork:ident
        request($($request:tt)*) form($($label:tt)*)
        $($who:ident($at:ident))*;
    )* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
            pub struct $Group {
                $($(#[$attribute])* pub $name: $crate::model::task_fields::kinds::$kind,)*
            }

            impl $Group {
                /// Returns the fields that have a value.
                pub(crate) fn fields(&self) -> impl Iterator<Item = PlainField<'_>> {
                    [$((
                        stringify!($name),
                        stringify!($column),
                        $crate::model::task_fields::change!($change),
                        self.$name.value(),
                    ),)*]
                    .into_iter()
                    .filter_map(|(name, column, change, value)| {
                        Some(PlainField { name, column, change, value: value? })
                    })
                }

                /// Returns the fields of a fork of the task.
                pub(crate) fn forked(self) -> Self {
                    Self { $($name: $crate::model::task_fields::forked!($fork self.$name),)* }
                }
            }
        )*
    };
}

macro_rules! change {
    (free) => {
        $crate::model::task_fields::Change::Free
    };
    (settings) => {
        $crate::model::task_fields::Change::Settings
    };
    (fixed) => {
        $crate::model::task_fields::Change::Fixed
    };
}

macro_rules! forked {
    (kept $value:expr) => {
        $value
    };
    (fresh $value:expr) => {
        None
    };
}

pub(crate) use {change, forked, groups};
