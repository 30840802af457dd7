//! `profile` at the command line: manages profiles. This process writes the files with the rights of its user.

use std::path::{Path, PathBuf};

use kernel::{Profile, ProposedProfile, TaskId, WorkerRole};
use serde::Serialize;

use super::editor;
use crate::client::Client;
use crate::output::Output;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::printable;
use base::time::duration::WrittenDuration;
use host::retained::RetainedHome;
use setup::config::Config;
use setup::roster::{Adopted, Draft, Home, Limits, Settings, adopt, files, missing_pool, shipped};
use verbs::{ListLanes, ListProfiles, Reload, ShowMission, is_nobody, read_profile, show_profile};

/// Show a profile, and whether its tasks can run
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor profile show backend")]
pub(super) struct Show {
    /// The profile
    name: Profile,
}

/// Change a profile in $VISUAL or $EDITOR
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor profile edit backend
  EDITOR=nano supervisor profile edit backend")]
pub(super) struct Edit {
    /// The profile
    name: Profile,
}

/// Print the file of a profile
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor profile export backend > backend.md")]
pub(super) struct Export {
    /// The profile
    name: Profile,
}

/// Install a profile from a file; also an agent file of Claude Code or Gemini CLI
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor profile install ~/.claude/agents/code-reviewer.md
  supervisor profile install role.md --name backend --force")]
pub(super) struct Install {
    /// The file, `-` for standard input, or the name of a profile that is shipped
    file: PathBuf,
    /// Its name [default: the name in the file, else the name of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<Profile>,
    /// Replace a profile of that name
    #[arg(long)]
    force: bool,
}

/// Remove a profile; tasks that are assigned to it stay
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor profile rm backend")]
pub(super) struct Rm {
    /// The profile
    name: Profile,
}

/// Create a profile
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor profile create backend --lane claude --model opus
  supervisor profile create checker --role reviewer --prompt-file role.md
  supervisor profile create cook --proposed-for t_0123abcd --lane claude")]
pub(super) struct Create {
    /// Its name, which tasks are assigned to
    name: Profile,
    /// Its purpose, in one line
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The role of its workers: worker, orchestrator or reviewer [default: worker]
    #[arg(long, value_name = "ROLE")]
    role: Option<WorkerRole>,
    /// The lane of its workers [default: worker.lane of the configuration]
    #[arg(long, value_name = "NAME")]
    lane: Option<Profile>,
    /// The model of its workers [default: the lane's]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The policy of tasks that name none [default: the lane's]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// The account whose limits its workers share [default: the lane's]
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// A skill of its workers (repeatable)
    #[arg(long = "skill", value_name = "NAME")]
    skills: Vec<String>,
    /// A host that its workers reach, where their policy has a proxy (repeatable)
    #[arg(long = "host", value_name = "HOST:PORT")]
    hosts: Vec<policies::HostRule>,
    /// Files to keep from the homes of its workers [default: login]
    #[arg(long, value_name = "WHAT")]
    home: Option<Home>,
    /// End a run after this time, where its task does not say: seconds, or 30s, 5m, 2h, 1d
    #[arg(long, value_name = "DURATION")]
    max_runtime: Option<WrittenDuration>,
    /// At most this many of its workers at once
    #[arg(long, value_name = "N")]
    max_running: Option<usize>,
    /// A pool in which each of its workers takes a place (repeatable)
    #[arg(long = "pool", value_name = "NAME")]
    pools: Vec<kernel::Pool>,
    /// A file with the text that its workers read before their task, or `-`
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// Use the description and the prompt that the plan of this task's mission proposes
    #[arg(long, value_name = "TASK", conflicts_with_all = ["description", "prompt_file"])]
    proposed_for: Option<TaskId>,
}

/// Result of a change of a profile's file.
#[derive(Debug, Serialize)]
struct ChangedProfile {
    name: Profile,
    path: PathBuf,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Returns true if a word names a shipped profile and no file.
fn is_shipped(file: &Path) -> bool {
    file.symlink_metadata().is_err() && file.to_str().is_some_and(|name| shipped(name).is_some())
}

/// Reports that a shipped profile needs no file.
fn there(name: &Path, output: Output) -> Result<u8, Failure> {
    let name = name.display();
    if output.json() {
        output.value(&serde_json::json!({ "name": name.to_string(), "shipped": true }))?;
    } else {
        output.text(&format!("{name} is shipped: it can be used as it is\n"))?;
    }
    Ok(0)
}

/// Returns the text of a profile that a mission's plan proposes.
async fn proposed(client: &Client, name: &Profile, mission: TaskId) -> Result<ProposedProfile, Failure> {
    let shown = client.call(&ShowMission { mission: mission.clone() }).await?;
    shown.profiles.into_iter().find(|profile| profile.name == *name).ok_or_else(|| {
        Failure::new(Code::NotFound, format!("the mission of {mission} asks for no profile `{name}`"))
            .hint(format!("`supervisor mission show {mission}` shows those that it asks for"))
    })
}

pub(super) async fn create(client: &Client, create: Create, output: Output) -> Result<u8, Failure> {
    absent(client, &create.name, "change it with `supervisor profile edit`")?;
    let mut prompt = create.prompt_file.as_deref().map(read_profile).transpose()?.unwrap_or_default();
    let mut description = create.description;
    if let Some(task) = create.proposed_for {
        let asked = proposed(client, &create.name, task).await?;
        (description, prompt) = (Some(asked.description), asked.prompt);
    }
    let limits =
        Limits { max_runtime: create.max_runtime, max_running: create.max_running, ..Limits::default() };
    let settings = Settings {
        description,
        role: create.role.unwrap_or_default(),
        lane: create.lane,
        model: create.model,
        policy: create.policy,
        account: create.account,
        skills: create.skills,
        hosts: create.hosts.into_iter().collect(),
        home: create.home.unwrap_or_default(),
        pools: create.pools.into_iter().collect(),
        limits,
        ..Settings::default()
    };
    let draft = Draft { settings, prompt };
    let text = draft.text(create.name.as_str());
    let config = Config::load(client.root())?;
    let loose = draft.settings.pools.iter().filter_map(|pool| missing_pool(pool, "it", &config));
    let warnings = loose.map(|loose| loose.sentence()).collect();
    written(client, "Created", create.name, &text, warnings, output).await
}

pub(super) fn export(client: &Client, Export { name }: Export, output: Output) -> Result<u8, Failure> {
    let text = text_of(client, &name)?;
    if output.json() {
        output.value(&serde_json::json!({ "name": name, "text": text }))?;
    } else {
        output.text(&text)?;
    }
    Ok(0)
}

pub(super) async fn install(client: &Client, install: Install, output: Output) -> Result<u8, Failure> {
    let Install { file, name, force } = install;
    if name.is_none() && !force && is_shipped(&file) {
        return there(&file, output);
    }
    let (name, text, warnings) = adopted(&file, name)?;
    if !force {
        absent(client, &name, "replace it with --force, or choose another name with --name")?;
    }
    written(client, "Installed", name, &text, warnings, output).await
}

pub(super) async fn rm(client: &Client, Rm { name }: Rm, output: Output) -> Result<u8, Failure> {
    let is_there = files::path_of(client.root(), &name).symlink_metadata().is_ok();
    if !is_there && shipped(name.as_str()).is_some() {
        return Err(Failure::new(
            Code::Conflict,
            format!("the profile `{name}` is shipped, and cannot be removed"),
        )
        .hint(format!("`supervisor profile edit {name}` replaces it by one of yours")));
    }
    let path = files::remove(client.root(), &name)?;
    let kept = RetainedHome::all_of(client.root(), &name).into_iter();
    let kept = kept.map(|home| {
        format!(
            "its login and what it remembers stay in {}: `supervisor login {name} --forget`",
            home.dir().display()
        )
    });
    print_change(client, "Removed", name.clone(), path, kept.collect(), output).await
}

pub(super) async fn show(client: &Client, Show { name }: Show, output: Output) -> Result<u8, Failure> {
    let profiles = client.call(&ListProfiles { name: Some(name) }).await?;
    let Some(found) = profiles.first() else { return Ok(0) };
    if output.json() {
        output.value(found)?;
    } else {
        let mut screen = output.screen();
        show_profile(found, &mut screen);
        output.text(&screen.into_text())?;
    }
    Ok(0)
}

pub(super) async fn edit(client: &Client, Edit { name }: Edit, output: Output) -> Result<u8, Failure> {
    let before = text_of(client, &name)?;
    if !editor::has_terminal() {
        let path = files::path_of(client.root(), &name);
        return Err(Failure::usage("`profile edit` opens an editor, and this is not a terminal").hint(
            format!(
                "change {}, or replace it with `supervisor profile install FILE --name {name} --force`",
                path.display()
            ),
        ));
    }
    let after = editor::edited(before, ".md").await?;
    let kept = after.clone();
    written(client, "Changed", name.clone(), &after, Vec::new(), output).await.map_err(|failure| {
        let Some(draft) = editor::keep_draft(name.as_str(), ".md", &kept) else { return failure };
        let shown = draft.display();
        failure.hint(format!("your text is in {shown}: correct it, then `supervisor profile install {shown} --name {name} --force`"))
    })
}

/// Returns the text of an existing profile.
fn text_of(client: &Client, name: &Profile) -> Result<String, Failure> {
    let shipped = || shipped(name.as_str()).map(str::to_owned);
    files::text_of(client.root(), name)?.or_else(shipped).ok_or_else(|| {
        Failure::new(Code::NotFound, format!("there is no profile `{name}`"))
            .hint("`supervisor profile list` lists them")
    })
}

/// Returns an error if a profile of this name has a file.
fn absent(client: &Client, name: &Profile, hint: &str) -> Result<(), Failure> {
    let path = files::path_of(client.root(), name);
    match path.symlink_metadata() {
        Ok(_) => Err(Failure::new(Code::Conflict, format!("{} exists already", path.display())).hint(hint)),
        Err(_) => Ok(()),
    }
}

/// Returns the profile in a file: its name, its text, and the parts that are lost if it is an agent file of another
/// program.
fn adopted(file: &Path, named: Option<Profile>) -> Result<(Profile, String, Vec<String>), Failure> {
    let text = read_profile(file)?;
    let refuse = |line: usize, message: &str| {
        Failure::usage(format!("{}:{line}: {message}", file.display()))
            .hint("`supervisor help docs/profiles.md` describes the file of a profile")
    };
    let Adopted { draft, left_out, is_profile } =
        adopt(&text).map_err(|fault| refuse(fault.line, &fault.message))?;
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let requested = draft.settings.name.clone().unwrap_or_else(|| stem.to_owned());
    let name = match named {
        Some(name) => name,
        None => requested.parse().map_err(|e| {
            Failure::usage(format!("`{requested}` is not a name of a profile: {e}"))
                .hint("choose one with --name")
        })?,
    };
    let mut left_out = left_out;
    left_out.extend(draft.grants());
    // If the name is the same, the text is kept with its comments.
    let text = if is_profile && requested == name.as_str() { text } else { draft.text(name.as_str()) };
    Ok((name, text, left_out))
}

/// Writes a profile and reports the result.
async fn written(
    client: &Client,
    done: &str,
    name: Profile,
    text: &str,
    mut warnings: Vec<String>,
    output: Output,
) -> Result<u8, Failure> {
    if is_nobody(name.as_str()) {
        return Err(Failure::usage(format!(
            "`{name}` means nobody, so no task could be assigned to a profile of that name"
        ))
        .hint("choose another name"));
    }
    let profile = files::check(client.root(), &name, text)?;
    let is_new = files::path_of(client.root(), &name).symlink_metadata().is_err();
    let lanes = client.call(&ListLanes::default()).await?;
    if is_new && lanes.iter().any(|lane| lane.name == name.as_str()) {
        // The profile takes over the tasks assigned to the lane, so it has to run on this lane.
        if profile.settings.lane.as_ref() != Some(&name) {
            return Err(Failure::new(
                Code::Conflict,
                format!("`{name}` is a lane, and a profile of that name would take its tasks"),
            )
            .hint(format!("choose another name, or put the profile on that lane: --lane {name}")));
        }
        warnings.push(format!("the tasks of the lane `{name}` have this profile from now on"));
    }
    let path = files::write(client.root(), &name, text)?;
    print_change(client, done, name, path, warnings, output).await
}

/// Makes the daemon read the profiles again. Reports the changes, and obstacles of the profile.
async fn print_change(
    client: &Client,
    done: &str,
    name: Profile,
    path: PathBuf,
    mut warnings: Vec<String>,
    output: Output,
) -> Result<u8, Failure> {
    client.call(&Reload::default()).await?;
    let listed = client.call(&ListProfiles::default()).await?;
    let now = listed.into_iter().find(|listed| listed.name == name.as_str());
    warnings.extend(
        now.and_then(|now| now.cannot_run).map(|why| format!("nothing runs its tasks for now: {why}")),
    );
    if output.json() {
        output.value(&ChangedProfile { name, path, warnings })?;
    } else {
        output.text(&format!("{done} {name}  {}\n", printable(&path.display().to_string())))?;
        output.warn(&warnings);
    }
    Ok(0)
}
