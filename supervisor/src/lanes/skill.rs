//! A skill: a text that a worker loads when it needs it, handed over in the form that its program reads.

use std::path::PathBuf;

use super::lane::Lane;

/// A skill as it is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skill {
    pub(crate) name: String,
    /// The whole file, with its front matter.
    pub(crate) text: String,
    /// The file without its front matter.
    pub(crate) body: String,
}

impl Lane {
    /// The files of these skills in the home of a worker; none where its program reads no such files.
    pub(crate) fn skill_files(&self, skills: &[Skill]) -> Vec<(PathBuf, String)> {
        let Some(dir) = &self.skills else { return Vec::new() };
        skills.iter().map(|skill| (dir.join(&skill.name).join("SKILL.md"), skill.text.clone())).collect()
    }

    /// What the prompt says of these skills: to load them, or their texts where the program of the lane loads none.
    pub(crate) fn skill_text(&self, skills: &[Skill]) -> String {
        if skills.is_empty() {
            return String::new();
        }
        if self.skills.is_some() {
            let names: Vec<String> = skills.iter().map(|skill| format!("`{}`", skill.name)).collect();
            return format!(
                "# Skills\n\nThese skills are for this task. Load each of them before you begin: {}.\n\n",
                names.join(", ")
            );
        }
        let texts: Vec<String> = skills
            .iter()
            .map(|skill| format!("# Skill: {}\n\n{}\n\n", skill.name, skill.body.trim()))
            .collect();
        texts.concat()
    }
}
