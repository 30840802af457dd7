//! Limits of missions and of delegation: the point at which a person has to decide, and the profiles that workers may
//! use.
//!
//! See decision 0100.

use std::time::Duration;

use crate::model::counted::Counted;
use crate::model::error::Error;
use crate::model::figures::{Dollars, brief};
use crate::model::id::Profile;
use crate::model::mission::{LimitUse, MissionLimit, MissionLimits, MissionUse, Used};
use crate::model::verdict::Question;

/// Limit of a mission that is reached, with its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) limit: MissionLimit,
    count: u64,
    allowed: u64,
}

/// Formats the figures, such as `20 tasks of 20 (missions.tasks)`.
impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Reached { limit, count, allowed } = self;
        match limit {
            MissionLimit::Tasks => write!(f, "{} of {allowed}", Counted(*count, "task"))?,
            MissionLimit::Runtime => write!(f, "{} of run time of {}", time(*count), time(*allowed))?,
            MissionLimit::Cost => write!(f, "{} of {}", Dollars(*count), Dollars(*allowed))?,
        }
        write!(f, " (missions.{limit})")
    }
}

fn time(micros: u64) -> String {
    brief(Duration::from_micros(micros))
}

/// Returns the use, the limit and the number of grants of a resource.
fn row(limit: MissionLimit, used: &Used, limits: &MissionLimits) -> (u64, u64, u64) {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let limits = used.caps.over(limits);
    match limit {
        MissionLimit::Tasks => (used.tasks, limits.tasks, used.more_tasks),
        MissionLimit::Runtime => (micros(used.runtime), micros(limits.runtime), used.more_runtime),
        MissionLimit::Cost => (used.cost_micros, limits.cost_micros, used.more_cost),
    }
}

/// Returns a limit with its figures if it is reached.
pub(crate) fn reached(limit: MissionLimit, used: &Used, limits: &MissionLimits) -> Option<Reached> {
    let (count, base, more) = row(limit, used, limits);
    let allowed = base.saturating_mul(more.saturating_add(1));
    (count >= allowed).then_some(Reached { limit, count, allowed })
}

/// Returns the first limit reached among the resources that runs use up.
pub(crate) fn spent(used: &Used, limits: &MissionLimits) -> Option<Reached> {
    [MissionLimit::Runtime, MissionLimit::Cost].into_iter().find_map(|limit| reached(limit, used, limits))
}

/// Returns the time that this number of parallel runs may still take together.
pub(crate) fn time_left(used: &Used, limits: &MissionLimits, runs: u64) -> Duration {
    let (count, base, more) = row(MissionLimit::Runtime, used, limits);
    let remaining = base.saturating_mul(more.saturating_add(1)).saturating_sub(count);
    Duration::from_micros(remaining.div_ceil(runs.max(1)))
}

/// Returns the use of each limit, and the depth that workers may use.
pub(crate) fn balance(used: &Used, limits: &MissionLimits) -> MissionUse {
    let share = |limit| {
        let (count, base, more) = row(limit, used, limits);
        LimitUse { used: count, limit: base.saturating_mul(more.saturating_add(1)) }
    };
    let micros = share(MissionLimit::Runtime);
    MissionUse {
        tasks: share(MissionLimit::Tasks),
        runtime_seconds: LimitUse { used: micros.used / 1_000_000, limit: micros.limit / 1_000_000 },
        cost_micros: share(MissionLimit::Cost),
        max_depth: used.caps.over(limits).depth,
    }
}

/// Returns the question to the creator of a mission at a limit.
pub(crate) fn question(title: &str, reached: &str) -> Question {
    Question {
        text: format!("The mission `{title}` has reached a limit: {reached}. Continue?"),
        choices: [RAISE, STOP].map(str::to_owned).to_vec(),
        ..Question::default()
    }
}

/// Answer that grants the limit once more.
pub(crate) const RAISE: &str = "raise the limit: as much again";
/// Answer that ends the mission.
pub(crate) const STOP: &str = "stop the mission";

/// Returns the reason why a proposal has too many tasks for its mission, if that is so.
pub(crate) fn beyond(wanted: u64, used: &Used, limits: &MissionLimits) -> Option<String> {
    let (count, base, more) = row(MissionLimit::Tasks, used, limits);
    let allowed = base.saturating_mul(more.saturating_add(1));
    let remaining = allowed.saturating_sub(count);
    (wanted > remaining).then(|| {
        format!(
            "a proposal has {}, and {remaining} of {allowed} are left (missions.tasks)",
            Counted(wanted, "task")
        )
    })
}

/// Returns the reason why a task is too deep for its mission, if that is so.
pub(crate) fn too_deep(wanted: u32, used: &Used, limits: &MissionLimits) -> Option<String> {
    let allowed = used.caps.over(limits).depth;
    (wanted > allowed).then(|| format!("a task {wanted} deep, where {allowed} are allowed (missions.depth)"))
}

/// Returns the mission's figures after a grant: the limit once more for each resource that is used up, and enough for the
/// proposal or the depth that exceeded it.
pub(crate) fn granted(mut used: Used, limits: &MissionLimits) -> Used {
    for limit in MissionLimit::ALL {
        let (count, base, more) = row(*limit, &used, limits);
        let wanted = match limit {
            MissionLimit::Tasks => used.wanted_tasks,
            MissionLimit::Runtime | MissionLimit::Cost => 0,
        };
        let of_use = if reached(*limit, &used, limits).is_some() { count / base.max(1) } else { 0 };
        // Without a proposal this is the current number of grants, or `of_use`.
        let of_proposal = count.saturating_add(wanted).saturating_sub(1) / base.max(1);
        let more = more.max(of_use).max(of_proposal);
        match limit {
            MissionLimit::Tasks => used.more_tasks = more,
            MissionLimit::Runtime => used.more_runtime = more,
            MissionLimit::Cost => used.more_cost = more,
        }
    }
    used.wanted_tasks = 0;
    let deep = used.caps.over(limits).depth;
    if used.wanted_depth > deep {
        used.caps.max_depth = Some(deep.saturating_mul(2).max(used.wanted_depth));
    }
    used.wanted_depth = 0;
    used
}

/// Refuses another task for a mission that has reached its number of tasks.
pub(crate) fn room_for_task(mission: &str, used: &Used, limits: &MissionLimits) -> Result<(), Error> {
    let Some(Reached { count, allowed, .. }) = reached(MissionLimit::Tasks, used, limits) else {
        return Ok(());
    };
    let next = count.saturating_add(1);
    Err(Error::Exhausted {
        message: format!(
            "missions.tasks: this would be {next} tasks of the mission {mission}, the limit is {allowed}"
        ),
        hint: format!(
            "nothing more of the mission starts until an operator lets it go on: `supervisor answer {mission} 1`; \
             finish with what there is, or block with a question to a person"
        ),
    })
}

/// Refuses a task that is too deep below the first task.
pub(crate) fn depth(deep: u32, limits: &MissionLimits) -> Result<(), Error> {
    if deep <= limits.depth {
        return Ok(());
    }
    Err(Error::Exhausted {
        message: format!(
            "missions.depth: this would be {deep} tasks below the first task of the mission, the limit is {}",
            limits.depth
        ),
        hint: "nothing more of the mission starts until an operator lets it go on; do the work yourself, or block with a question \
               to a person"
            .to_owned(),
    })
}

/// Largest depth of a chain of consults.
const CONSULT_DEPTH: u32 = 2;

/// Refuses a consult that is too deep below others.
pub(crate) fn consult_depth(deep: u32) -> Result<(), Error> {
    if deep <= CONSULT_DEPTH {
        return Ok(());
    }
    Err(Error::Exhausted {
        message: format!("consult: this would be {deep} questions deep, the limit is {CONSULT_DEPTH}"),
        hint: "answer with what you know, and say what is missing".to_owned(),
    })
}

/// Refuses to delegate back to a profile that the work came from, through another profile. `makers` are the profiles
/// whose runs made the caller's task and the tasks above it, the caller's own first.
pub(crate) fn delegates_onward(makers: &[Profile], assignee: Option<&Profile>) -> Result<(), Error> {
    let Some(assignee) = assignee else { return Ok(()) };
    let first_maker = makers.first();
    if first_maker == Some(assignee) || !makers.contains(assignee) {
        return Ok(());
    }
    let mut way: Vec<&str> = makers.iter().rev().map(Profile::as_str).collect();
    way.push(assignee.as_str());
    Err(Error::forbidden(
        format!("the work came from {assignee} and may not go back to it: {}", way.join(" → ")),
        format!(
            "finish your own part, and {assignee} goes on with your result; or block with a question to a person"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: MissionLimits =
        MissionLimits { depth: 3, tasks: 20, runtime: Duration::from_hours(2), cost_micros: 5_000_000 };

    #[test]
    fn each_limit_is_reached_at_its_number_and_named_with_count_and_limit() {
        let used = Used { tasks: 19, ..Used::default() };
        room_for_task("t_1", &used, &LIMITS).unwrap();
        let full = Used { tasks: 20, ..used };
        let refused = room_for_task("t_1", &full, &LIMITS).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "missions.tasks: this would be 21 tasks of the mission t_1, the limit is 20"
        );
        assert!(refused.hint().unwrap().contains("supervisor answer t_1 1"));

        assert_eq!(spent(&Used { runtime: Duration::from_mins(119), ..full }, &LIMITS), None);
        let long = Used { runtime: Duration::from_mins(125), ..Used::default() };
        assert_eq!(spent(&long, &LIMITS).unwrap().to_string(), "2h 5m of run time of 2h (missions.runtime)");
        let dear = Used { cost_micros: 5_100_000, ..Used::default() };
        assert_eq!(spent(&dear, &LIMITS).unwrap().to_string(), "$5.10 of $5.00 (missions.cost_usd)");
    }

    #[test]
    fn a_grant_gives_as_much_again_of_what_is_used_up_and_of_nothing_else() {
        let used = Used { tasks: 20, runtime: Duration::from_hours(5), ..Used::default() };
        let more = granted(used, &LIMITS);
        assert_eq!((more.more_tasks, more.more_runtime, more.more_cost), (1, 2, 0));
        assert_eq!(spent(&more, &LIMITS), None);
        room_for_task("t_1", &more, &LIMITS).unwrap();
        assert_eq!(granted(more, &LIMITS), more, "there is some left of everything");
    }

    #[test]
    fn a_grant_has_room_for_the_proposal_that_there_was_none_for() {
        for (tasks, wanted, expected) in
            [(2, 18, None), (2, 19, Some(1)), (2, 38, Some(1)), (2, 39, Some(2)), (20, 1, Some(1))]
        {
            let used = Used { tasks, ..Used::default() };
            let why = beyond(wanted, &used, &LIMITS);
            assert_eq!(why.is_some(), expected.is_some(), "{tasks} and {wanted}: {why:?}");
            let Some(expected) = expected else { continue };
            let more = granted(Used { wanted_tasks: wanted, ..used }, &LIMITS);
            assert_eq!((more.more_tasks, more.wanted_tasks), (expected, 0), "{tasks} and {wanted}");
            assert_eq!(beyond(wanted, &more, &LIMITS), None);
        }
    }

    #[test]
    fn a_grant_goes_as_deep_as_was_wanted_where_that_was_too_deep() {
        for (wanted, told, deep) in [
            (0, None, 3),
            (3, None, 3),
            (4, Some("a task 4 deep, where 3 are allowed (missions.depth)"), 6),
            (9, Some("a task 9 deep, where 3 are allowed (missions.depth)"), 9),
        ] {
            let used = Used { wanted_depth: wanted, ..Used::default() };
            assert_eq!(too_deep(wanted, &used, &LIMITS).as_deref(), told);
            let more = granted(used, &LIMITS);
            assert_eq!((balance(&more, &LIMITS).max_depth, more.wanted_depth), (deep, 0), "{wanted}");
            assert_eq!(too_deep(wanted, &more, &LIMITS), None);
        }
    }

    #[test]
    fn the_run_time_of_a_mission_is_told_in_seconds() {
        let used = Used { runtime: Duration::from_millis(90_500), more_runtime: 1, ..Used::default() };
        assert_eq!(balance(&used, &LIMITS).runtime_seconds, LimitUse { used: 90, limit: 4 * 3600 });
    }

    #[test]
    fn work_goes_on_to_others_and_to_the_same_profile_but_not_back_through_another() {
        let of =
            |names: &[&str]| -> Vec<Profile> { names.iter().map(|name| name.parse().unwrap()).collect() };
        let to = |names: &[&str], to: &str| delegates_onward(&of(names), Some(&to.parse().unwrap()));
        to(&["a"], "a").unwrap();
        to(&["a"], "b").unwrap();
        to(&["b", "a"], "b").unwrap();
        to(&["b", "a"], "c").unwrap();
        delegates_onward(&of(&["b", "a"]), None).unwrap();
        let refused = to(&["b", "a"], "a").unwrap_err().to_string();
        assert!(refused.ends_with("a → b → a"), "{refused}");
        assert!(to(&["c", "b", "a"], "a").is_err() && to(&["c", "b", "a"], "b").is_err());
    }
}
