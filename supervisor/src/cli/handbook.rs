//! `help docs/NAME.md`: the pages of the documentation, which are part of the program.
//!
//! Messages name these pages by `supervisor help docs/NAME.md`: a host with the package or the binary alone has no
//! checkout, and a page on the web describes another release.

/// Declares the pages by their names in `docs/`.
macro_rules! pages {
    ($($name:literal)*) => {
        const PAGES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../../docs/", $name))),)*];
    };
}

pages! {
    "a2a.md" "api.md" "board.md" "chat.md" "configuration.md" "dashboard.md" "fleet.md" "getting-started.md" "lanes.md"
    "lanes/a2a.md" "lanes/claude.md" "lanes/codex.md" "lanes/gemini.md" "lanes/hermes.md" "lanes/http.md"
    "lanes/opencode.md" "mcp.md" "missions.md" "notifications.md" "operations.md" "plugins.md" "policies.md"
    "profiles.md" "schedules.md" "security.md" "stories.md" "top.md" "triage.md" "tutorial.md"
}

/// Returns the page of a name such as `docs/lanes.md`.
pub(super) fn page(name: &str) -> Option<&'static str> {
    let own = name.strip_prefix("docs/")?;
    PAGES.iter().find(|(known, _)| *known == own).map(|(_, text)| *text)
}

/// Returns the names of the pages, such as `docs/lanes.md`.
pub(super) fn names() -> impl Iterator<Item = String> {
    PAGES.iter().map(|(name, _)| format!("docs/{name}"))
}

/// Returns the commands that show the pages, one per line.
pub(super) fn listed() -> String {
    let line = |(name, text): &(&str, &str)| {
        let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
        format!("supervisor help docs/{name:<18}  {title}\n")
    };
    PAGES.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The sources of this crate, without tests.
    fn sources(dir: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs")
                && path.to_str().is_some_and(|path| !path.ends_with("tests.rs"))
            {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push(text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn a_message_that_names_a_page_names_the_command_that_shows_it() {
        let mut found = Vec::new();
        sources(Path::new(env!("CARGO_MANIFEST_DIR")), &mut found);
        let mut named = 0;
        for line in
            found.iter().flat_map(|text| text.lines()).filter(|line| !line.trim_start().starts_with("//"))
        {
            for (at, _) in line.match_indices("docs/") {
                let name =
                    line[at..].split(|c: char| !(c.is_ascii_alphanumeric() || "/-._".contains(c))).next();
                let is_page = |name: &&str| Path::new(name).extension().is_some_and(|kind| kind == "md");
                let Some(name) = name.filter(is_page).filter(|_| !line[..at].ends_with("../")) else {
                    continue;
                };
                let is_word = line[..at].ends_with('"') && line[at + name.len()..].starts_with('"');
                assert!(is_word || line[..at].ends_with("`supervisor help "), "no command shows it: {line}");
                assert!(page(name).is_some(), "there is no page {name}: {line}");
                named += 1;
            }
        }
        assert!(named > 20, "{named}");
        assert_eq!(page("lanes.md"), None);
    }

    #[test]
    fn the_list_of_pages_has_the_title_of_each() {
        let listed = listed();
        assert_eq!(listed.lines().count(), PAGES.len());
        assert!(
            listed.lines().all(|line| line.starts_with("supervisor help docs/") && line.len() < 100),
            "{listed}"
        );
    }
}
