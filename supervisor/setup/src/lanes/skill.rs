//! Skills: texts that a worker loads on demand, in the form that its program reads.

use std::path::PathBuf;

use super::lane::Lane;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// Whole file, with its front matter.
    pub text: String,
    /// File without its front matter.
    pub body: String,
}

impl Lane {
    /// Returns the files of the skills for the worker's home; none if the program reads no skill files.
    pub fn skill_files(&self, skills: &[Skill]) -> Vec<(PathBuf, String)> {
        let Some(dir) = &self.skills else { return Vec::new() };
        skills.iter().map(|skill| (dir.join(&skill.name).join("SKILL.md"), skill.text.clone())).collect()
    }

    /// Returns the prompt's text about the skills: a request to load them, or their contents if the program cannot
    /// load them.
    pub fn skill_text(&self, skills: &[Skill]) -> String {
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
