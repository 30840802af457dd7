//! Facts that the supervisor measures at the end of a run. Each is declared once, in [`measured!`]: the member of the ending
//! and of the run, the column and the event of the end follow from there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hands the declaration of the facts to a macro: each with its name, which is the name of its column, and its type.
macro_rules! measured {
    ($macro:ident) => {
        $macro! {
            /// True if the signal made the worker dump core.
            core_dumped: bool,
        }
    };
}

pub(crate) use measured;

/// Declares the record of the facts.
macro_rules! record {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// Facts that the supervisor measures at the end of a run; none where a fact is unknown.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct Measured {
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $name: Option<$type>,
            )*
        }
    };
}

measured!(record);
