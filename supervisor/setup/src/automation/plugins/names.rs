//! Names that a plugin cannot have: the words of the command line, which a plugin never replaces.

use base::table;

/// Words of the command line that are not rows of the table.
const BESIDES: [&str; 5] = ["diag", "help", "kanban", "ls", "plugins"];

macro_rules! the_words {
    (
        $($group:literal {
            commands { $($command:ident($arguments:ty) => $run:path,)* }
            verbs { $($verb:ident $(=> $special:path)?,)* }
        })*
        api { $($hidden:ident,)* }
        nouns { $($nouns:tt)* }
    ) => {
        /// Types of the words, in the order of the table.
        const WORDS: &[&str] = &[$($(stringify!($command),)* $(stringify!($verb),)*)*];
    };
}

table!(the_words);

/// Returns true if a word belongs to the command line: `attach-rm` matches `AttachRm`.
pub(crate) fn is_ours(word: &str) -> bool {
    let joined: String = word.split('-').collect();
    BESIDES.contains(&word) || WORDS.iter().any(|ours| ours.eq_ignore_ascii_case(&joined))
}
