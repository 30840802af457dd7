//! Templates of schedules: validation, the order of a tick's tasks, and placeholders in titles and commands.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::new_task;
use super::ticks::Ticks;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::ScheduleName;
use crate::model::limits;
use crate::model::schedule::{Overlap, ScheduleSpec, TemplateTask};
use crate::model::task::NewTask;

/// Largest number of tasks of a tick.
const TASKS: usize = 100;
/// Largest number of words of a command.
const WORDS: usize = 64;
/// Longest jitter: a week.
const JITTER: Duration = Duration::from_hours(7 * 24);

/// Returns the ticks of a schedule. Refuses a schedule whose ticks could not be executed.
pub(crate) fn validate(name: &ScheduleName, spec: &ScheduleSpec) -> Result<Ticks, Error> {
    let ticks = Ticks::parse(&spec.timing)?;
    if spec.jitter.is_some_and(|jitter| jitter > JITTER) {
        return Err(Error::invalid("jitter", "it is longer than 7 days", "write it as 30s, 5m or 1h"));
    }
    if let Some(words) = &spec.command {
        if !spec.tasks.is_empty() {
            let why = "a schedule has tasks or a command";
            return Err(Error::invalid("command", why, "leave out one of them"));
        }
        if words.is_empty() || words.len() > WORDS {
            let why = format!("{} words: a command has 1 to {WORDS}", words.len());
            return Err(Error::invalid("command", why, "such as dispatch-fleet PROFILE DIRECTORY"));
        }
        words.iter().try_for_each(|word| limits::bytes("command", word, limits::WORD))?;
        if spec.overlap == Overlap::Replace {
            let why = "a command that has begun comes to its end";
            return Err(Error::invalid("overlap", why, "write `skip` or `queue`"));
        }
        return Ok(ticks);
    }
    for task in in_order(&spec.tasks)? {
        let filled = title(&task.task.title, name, &ticks, Timestamp::default());
        limits::title(&filled)?;
        new_task::validate(&NewTask { title: filled, ..task.task.clone() })?;
        if task.task.approval.class.is_none() {
            new_task::approval(&task.task)?;
        }
    }
    Ok(ticks)
}

/// Refuses a schedule whose ticks could not be executed.
///
/// # Errors
/// [`Error::Invalid`] with the key of the invalid value.
pub fn check_schedule(name: &ScheduleName, spec: &ScheduleSpec) -> Result<(), Error> {
    validate(name, spec).map(drop)
}

/// Returns up to `count` ticks of a schedule after a moment, even if the schedule is paused.
///
/// # Errors
/// The errors of [`check_schedule`].
pub fn ticks_ahead(
    name: &ScheduleName,
    spec: &ScheduleSpec,
    from: Timestamp,
    count: usize,
) -> Result<Vec<Timestamp>, Error> {
    let ticks = validate(name, spec)?;
    Ok(std::iter::successors(ticks.after(from), |at| ticks.after(*at)).take(count).collect())
}

/// Returns the tasks of a template, each after its parents.
///
/// # Errors
/// [`Error::Invalid`] for no tasks or too many, for a name that is missing, given twice or unknown, and for tasks that
/// wait for each other.
pub(crate) fn in_order(tasks: &[TemplateTask]) -> Result<Vec<&TemplateTask>, Error> {
    if tasks.is_empty() || tasks.len() > TASKS {
        let why = format!("{} of them: a tick makes 1 to {TASKS}", tasks.len());
        return Err(Error::invalid("tasks", why, "describe one with [task], or several with [[tasks]]"));
    }
    let mut remaining: BTreeMap<&str, &TemplateTask> = BTreeMap::new();
    // A single task needs no name; several need different names, by which they refer to each other.
    for task in tasks {
        let is_word = !task.name.is_empty() && task.name.len() <= 64;
        if tasks.len() > 1 && !is_word {
            let hint = "give each of several tasks a name of its own: name = \"…\"";
            return Err(Error::invalid("name", format!("{:?} has no name", task.task.title), hint));
        }
        if remaining.insert(&task.name, task).is_some() {
            let why = format!("two tasks are called {:?}", task.name);
            return Err(Error::invalid("name", why, "give each task a name of its own"));
        }
    }
    for task in tasks {
        if let Some(missing) = task.after.iter().find(|name| !remaining.contains_key(name.as_str())) {
            let why = format!("{:?} waits for {missing:?}, which is not one of its tasks", task.name);
            return Err(Error::invalid("parents", why, "name tasks of the same schedule"));
        }
    }
    // Topological order: repeatedly take the first task whose parents are all taken. A cycle leaves none.
    let (mut ordered, mut done) = (Vec::with_capacity(tasks.len()), BTreeSet::new());
    while !remaining.is_empty() {
        let ready = tasks.iter().find(|task| {
            remaining.contains_key(task.name.as_str())
                && task.after.iter().all(|name| done.contains(name.as_str()))
        });
        let Some(ready) = ready else {
            let names: Vec<&str> = remaining.into_keys().collect();
            let why = format!("{} wait for each other", names.join(", "));
            return Err(Error::invalid("parents", why, "leave out one of the parents"));
        };
        remaining.remove(ready.name.as_str());
        done.insert(ready.name.as_str());
        ordered.push(ready);
    }
    Ok(ordered)
}

/// Placeholders that a tick replaces.
const PLACEHOLDERS: [&str; 4] = ["date", "time", "tick", "schedule"];

/// Returns the unknown placeholders of a title or a command, such as misspelt ones.
pub fn unknown_placeholders(text: &str) -> Vec<&str> {
    let parts = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let words = parts.map(|(word, _)| word);
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    words.filter(is_word).filter(|word| !PLACEHOLDERS.contains(word)).collect()
}

/// Returns a title or a word of a command with the placeholders replaced for a tick. Other words in braces stay.
pub(crate) fn title(text: &str, schedule: &ScheduleName, ticks: &Ticks, tick: Timestamp) -> String {
    let at = ticks.zoned(tick);
    text.replace("{date}", &at.strftime("%Y-%m-%d").to_string())
        .replace("{time}", &at.strftime("%H:%M").to_string())
        .replace("{tick}", &at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
        .replace("{schedule}", schedule.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::schedule::Timing;
    use crate::testing::titled;

    fn part(name: &str) -> TemplateTask {
        TemplateTask { name: name.to_owned(), task: titled("work"), ..TemplateTask::default() }
    }

    fn hourly(tasks: Vec<TemplateTask>) -> ScheduleSpec {
        let timing = Timing { every: Some(Duration::from_hours(1)), ..Timing::default() };
        ScheduleSpec { timing, tasks, ..ScheduleSpec::default() }
    }

    fn checked(spec: &ScheduleSpec) -> Result<(), String> {
        check_schedule(&"hourly".parse().unwrap(), spec).map_err(|error| error.to_string())
    }

    #[test]
    fn a_schedule_makes_up_to_a_hundred_tasks_and_several_of_them_have_names() {
        let parts =
            |count: usize| -> Vec<TemplateTask> { (0..count).map(|at| part(&at.to_string())).collect() };
        for tasks in [vec![part("")], parts(TASKS), vec![part(&"n".repeat(64)), part("b")]] {
            checked(&hourly(tasks)).unwrap();
        }
        for (tasks, told) in [
            (parts(0), "0 of them: a tick makes 1 to 100"),
            (parts(TASKS + 1), "101 of them: a tick makes 1 to 100"),
            (vec![part("a"), part("")], "has no name"),
            (vec![part(&"n".repeat(65)), part("b")], "has no name"),
        ] {
            let refused = checked(&hourly(tasks)).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
    }

    #[test]
    fn a_command_has_up_to_64_words() {
        let of = |count: usize| {
            let command = Some(vec!["word".to_owned(); count]);
            checked(&ScheduleSpec { command, ..hourly(Vec::new()) })
        };
        for count in [1, WORDS] {
            of(count).unwrap();
        }
        for count in [0, WORDS + 1] {
            let refused = of(count).unwrap_err();
            assert!(refused.contains("words: a command has 1 to 64"), "{count}: {refused}");
        }
    }

    #[test]
    fn a_jitter_is_a_week_at_most() {
        let of = |jitter: Duration| checked(&ScheduleSpec { jitter: Some(jitter), ..hourly(vec![part("")]) });
        let week = Duration::from_hours(168);
        of(week).unwrap();
        let refused = of(week + Duration::from_secs(1)).unwrap_err();
        assert!(refused.contains("longer than 7 days"), "{refused}");
    }

    #[test]
    fn as_many_ticks_are_told_ahead_as_are_asked_for_also_of_a_schedule_that_is_paused() {
        let spec = ScheduleSpec { paused: true, ..hourly(vec![part("")]) };
        let (name, from) = ("hourly".parse().unwrap(), Timestamp::from_secs(7200));
        let hours = [3, 4].map(|hour| Timestamp::from_secs(hour * 3600));
        assert_eq!(ticks_ahead(&name, &spec, from, 2).unwrap(), hours);
        assert_eq!(ticks_ahead(&name, &spec, from, 0).unwrap(), []);
        assert!(ticks_ahead(&name, &hourly(Vec::new()), from, 2).is_err(), "it makes no task");
    }

    #[test]
    fn a_word_in_braces_that_no_tick_fills_in_is_told() {
        for (text, unknown) in [
            ("report of {date} at {time}", &[][..]),
            ("{tick} of {schedule}", &[]),
            ("report of {dat} at {hour}", &["dat", "hour"]),
            ("{date} and {day}", &["day"]),
            ("{} {Date} {a b} {a1} {open", &[]),
            ("no braces", &[]),
        ] {
            assert_eq!(unknown_placeholders(text), unknown, "{text}");
        }
    }
}
