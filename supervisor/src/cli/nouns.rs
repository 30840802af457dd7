//! Words of the nouns of the command line, such as `list` of `boards`. They are generated from the table; most of them
//! are verbs, which are called like those without a noun.

use super::restore::refuse_worker;
use super::{CommandLine, boards, call, lane, mission, plugin, profile, schedule_add, schedules, tenant};
use crate::client::Client;
use crate::output::Output;
use base::failure::Failure;
use base::table;

macro_rules! of_the_nouns {
    (
        $($group:literal {
            commands { $($command:ident($_arguments:ty) => $_run:path,)* }
            verbs { $($verb:ident $(=> $_special:path)?,)* }
        })*
        api { $($hidden:ident,)* }
        nouns { $($noun:ident { $($(#[$help:meta])* $word:ident($arguments:ty) $(-> $plain:path)? $(=> $special:path)?,)* })* }
    ) => {$(
        /// Words of a noun.
        #[derive(Debug, clap::Subcommand)]
        pub(super) enum $noun {
            $($(#[$help])* $word(Box<$arguments>),)*
        }

        impl $noun {
            pub(super) async fn run(self, client: &Client, output: Output) -> Result<u8, Failure> {
                match self {
                    $($noun::$word(verb) => run_word!(client, *verb, output $(-> $plain)? $(=> $special)?),)*
                }
            }
        }
    )*};
}

/// Runs a word of a noun.
macro_rules! run_word {
    ($client:ident, $verb:expr, $output:ident) => {
        call($client, $verb, $output).await
    };
    ($client:ident, $verb:expr, $output:ident => $special:path) => {
        $special($client, $verb, $output).await
    };
    ($client:ident, $verb:expr, $output:ident -> $plain:path) => {
        $plain($client, $verb, $output)
    };
}

table!(of_the_nouns);

/// Returns a client for the words of a noun that workers do not have.
pub(super) fn client(line: &CommandLine) -> Result<Client, Failure> {
    let client = line.client()?;
    refuse_worker(&client)?;
    Ok(client)
}
