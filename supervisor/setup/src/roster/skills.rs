//! All skills: the shipped ones, and those in `skills.d/NAME/SKILL.md`.

use std::path::{Path, PathBuf};

use kernel::Profile;
use serde::Deserialize;

use super::front_matter::{Fault, Parts};
use crate::config::definitions::{Defect, Definitions, FileDefinition, Lookup, NamedFile, Subject};
use crate::lanes::Skill;
use base::paths::Root;

/// Limit on a skill, in bytes, so that several fit into a prompt.
const LONGEST: usize = 24 << 10;

const SHIPPED: [(&str, &str); 2] = [
    ("board-worker", include_str!("builtin/skills/board-worker.md")),
    ("board-orchestrator", include_str!("builtin/skills/board-orchestrator.md")),
];

/// Checked keys of the front matter; a skill may have more, for its program.
#[derive(Deserialize)]
struct SkillFile {
    name: Option<String>,
    description: String,
}

impl FileDefinition for Skill {
    const SUBJECT: fn(String) -> Subject = Subject::Skill;

    fn directory(root: &Root) -> PathBuf {
        root.skills_dir()
    }

    fn builtin() -> Vec<(String, Result<Self, Defect>)> {
        let read = |name: &str, text| parse(name, text, Path::new("shipped"));
        SHIPPED.iter().map(|(name, text)| ((*name).to_owned(), read(name, text))).collect()
    }

    fn file_of(entry: &Path) -> Option<NamedFile> {
        let name = entry.file_name()?.to_str()?.to_owned();
        (!name.starts_with('.') && entry.is_dir()).then(|| NamedFile { name, path: entry.join("SKILL.md") })
    }

    fn from_text(name: &str, path: &Path, text: &str) -> Result<Self, Defect> {
        parse(name, text, path)
    }
}

impl Definitions<Skill> {
    /// Returns the skill of a name.
    ///
    /// # Errors
    /// Reason why the skill is unusable.
    pub fn skill(&self, name: &str) -> Result<&Skill, String> {
        match self.find(name) {
            Lookup::Usable(skill) => Ok(skill),
            Lookup::Disabled(defect) => Err(format!("the skill `{name}` is disabled: {defect}")),
            Lookup::Absent => {
                if let Err(e) = name.parse::<Profile>() {
                    return Err(format!("`{name}` is not a name of a skill: {e}"));
                }
                let known: Vec<&str> = self.names().collect();
                Err(format!(
                    "there is no skill `{name}`: skills.d/{name}/SKILL.md would add it; the skills are: {}",
                    known.join(", ")
                ))
            }
        }
    }
}

fn parse(name: &str, text: &str, origin: &Path) -> Result<Skill, Defect> {
    read(name, text).map_err(|fault| {
        Defect::new(Subject::Skill(name.to_owned()), origin, fault.message).at(fault.line, fault.key)
    })
}

fn read(name: &str, text: &str) -> Result<Skill, Fault> {
    let parts = Parts::split(text)?;
    let file: SkillFile = parts.settings()?;
    // The name becomes a directory in the home of a worker.
    if let Err(e) = name.parse::<Profile>() {
        return Err(parts.fault("name", format!("`{name}` is not a name of a skill: {e}")));
    }
    if let Some(declared_name) = file.name.filter(|declared_name| declared_name != name) {
        let message =
            format!("it is `{declared_name}`, but the directory's name is the skill's name, `{name}`");
        return Err(parts.fault("name", message));
    }
    if file.description.trim().is_empty() {
        return Err(parts.fault("description", "it is empty, so no worker knows when to load the skill"));
    }
    if text.len() > LONGEST {
        let message = format!("it has {} bytes; at most 24 KiB are handed over", text.len());
        return Err(parts.fault("name", message));
    }
    Ok(Skill { name: name.to_owned(), text: text.to_owned(), body: parts.body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_skill_is_named() {
        let good = "---\nname: tidy\ndescription: Tidies up\nlicense: any\n---\nTidy.\n";
        let skill = parse("tidy", good, Path::new("SKILL.md")).unwrap();
        assert_eq!((skill.body.as_str(), skill.text.as_str()), ("Tidy.\n", good));
        for (name, text, expected) in [
            ("other", good, "SKILL.md:2 (name): it is `tidy`"),
            ("tidy", "---\nname: tidy\n---\n", "description"),
            ("tidy", "---\ndescription: ' '\n---\n", "SKILL.md:2 (description): it is empty"),
            ("..", "---\ndescription: x\n---\n", "is not a name of a skill"),
            ("tidy", "Tidy.", "does not begin with a line of ---"),
        ] {
            let defect = parse(name, text, Path::new("SKILL.md")).unwrap_err().to_string();
            assert!(defect.contains(expected), "{defect}");
        }
        let long = format!("{good}{}", "x".repeat(LONGEST));
        assert!(parse("tidy", &long, Path::new("SKILL.md")).unwrap_err().to_string().contains("24 KiB"));
    }

    #[test]
    fn what_is_no_name_of_a_skill_is_not_advised_to_be_added() {
        let none: Definitions<Skill> = Definitions::default();
        assert!(none.skill("../x").unwrap_err().starts_with("`../x` is not a name of a skill: "));
        assert!(none.skill("x").unwrap_err().contains("skills.d/x/SKILL.md would add it"));
    }

    #[test]
    fn the_shipped_skills_can_be_used() {
        for (name, text) in SHIPPED {
            parse(name, text, Path::new("shipped")).unwrap();
        }
    }
}
