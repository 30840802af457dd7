//! Pages of tasks. A page begins at a cursor (the sort keys of the last task before it) and not at an offset, so that every
//! page costs as much as the first.
//!
//! A page is merged from sources, each of which is a query that an index answers in the order of the page. A filter that
//! selects few tasks is answered by its own index instead, and these tasks are sorted. No query sorts more than [`FEW`]
//! tasks. A filter without an index, such as a text, skips the tasks that do not match.

use rusqlite::{Connection, Rows, params_from_iter};
use serde_json::Value;

use super::convert::Step as _;
use super::page_order::{Key, compare, order};
use super::page_sources::{Part, Selection, Source, limit};
use super::statement::Statement as _;
use super::tasks::read;
use super::tx::Tx;
use crate::model::error::Error;
use crate::model::filter::{Filter, Sort};
use crate::model::limits::ReplyCapacity;
use crate::model::task::Task;

/// Largest number of tasks that are sorted for a page.
const FEW: u32 = 4096;

impl Tx<'_> {
    /// Returns a page of tasks, and the cursor of the next page.
    pub(crate) fn page_of_tasks(&self, filter: &Filter) -> Result<(Vec<Task>, Option<String>), Error> {
        self.page(filter, FEW)
    }

    fn page(&self, filter: &Filter, few: u32) -> Result<(Vec<Task>, Option<String>), Error> {
        let order = order(filter.sort);
        let mut page = PageSpace {
            rows: Vec::new(),
            limit: usize::try_from(limit(filter)).unwrap_or(usize::MAX),
            capacity: ReplyCapacity::new(filter.bytes),
        };
        let selection = Selection::of(filter)?;
        let more = match self.narrow(&selection, few)? {
            Some(parts) => self.fill(&selection.sorted(&parts), order, &mut page)?,
            None if selection.is_by_assignee() => self.fill_by_assignee(&selection, &mut page)?,
            None => self.fill(&self.in_order(&selection, few)?, order, &mut page)?,
        };
        let last = page.rows.last().filter(|_| more);
        let next =
            last.map(|last| Value::Array(order.iter().map(|key| (key.value)(last)).collect()).to_string());
        Ok((page.rows, next))
    }

    /// Returns the part of the tasks that the most selective condition of a filter selects, if these are few and if no index
    /// has them in the order of the page.
    fn narrow(&self, selection: &Selection<'_>, few: u32) -> Result<Option<Vec<Part>>, Error> {
        for parts in selection.narrow_conditions() {
            let mut found = 0;
            for part in &parts {
                found += self.count(part, few)?;
            }
            if found <= few {
                return Ok(Some(parts));
            }
        }
        Ok(None)
    }

    /// Returns the number of tasks of a part, at most one more than `few`.
    fn count(&self, part: &Part, few: u32) -> Result<u32, Error> {
        let Source { sql, values } = part.count(few);
        self.conn.value("count the tasks of a filter", &sql, params_from_iter(&values))
    }

    /// Returns the queries that read a page in its order. In an order by a time, the tasks of a status are sorted if the
    /// assignee or the tenant of the filter has few of them.
    fn in_order(&self, selection: &Selection<'_>, few: u32) -> Result<Vec<Source>, Error> {
        let mut sources = selection.in_order();
        for (source, part) in sources.iter_mut().zip(selection.of_owner()) {
            if self.count(&part, few)? <= few
                && let Some(sorted) = selection.sorted(&[part]).pop()
            {
                *source = sorted;
            }
        }
        Ok(sources)
    }

    /// Fills a page in the order of the assignees, which are read one by one. Tasks without an assignee come first.
    fn fill_by_assignee(&self, selection: &Selection<'_>, page: &mut PageSpace) -> Result<bool, Error> {
        let mut name = Some(selection.first_key().unwrap_or_default().to_owned());
        while let Some(assignee) = name {
            if self.fill(&selection.of_assignee(&assignee), order(Sort::Assignee), page)? {
                return Ok(true);
            }
            let sql = "SELECT min(assignee) FROM task_counts WHERE assignee > ?1 AND tasks > 0";
            name = self.conn.value("read the next assignee", sql, [&assignee])?;
        }
        Ok(false)
    }

    /// Merges sources into a page. Returns true if they have more tasks than fit into it.
    fn fill(&self, sources: &[Source], order: &[Key], page: &mut PageSpace) -> Result<bool, Error> {
        merge(self.conn, sources, order, page).step("list tasks")
    }
}

fn merge(
    conn: &Connection,
    sources: &[Source],
    order: &[Key],
    page: &mut PageSpace,
) -> rusqlite::Result<bool> {
    let statements = sources.iter().map(|source| conn.prepare_cached(&source.sql));
    let mut statements = statements.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut heads = Vec::with_capacity(sources.len());
    for (statement, source) in statements.iter_mut().zip(sources) {
        let mut rows = statement.query(params_from_iter(&source.values))?;
        heads.extend(next(&mut rows)?.map(|task| (task, rows)));
    }
    // Each source is read only as far as the page reaches.
    while let Some(first) = (0..heads.len()).min_by(|a, b| compare(order, &heads[*a].0, &heads[*b].0)) {
        let (head, rows) = &mut heads[first];
        if !page.takes(head) {
            return Ok(true);
        }
        match next(rows)? {
            Some(task) => page.rows.push(std::mem::replace(head, task)),
            None => page.rows.push(heads.swap_remove(first).0),
        }
    }
    Ok(false)
}

fn next(rows: &mut Rows<'_>) -> rusqlite::Result<Option<Task>> {
    rows.next()?.map(read).transpose()
}

/// Page that is being filled.
struct PageSpace {
    rows: Vec<Task>,
    limit: usize,
    capacity: ReplyCapacity,
}

impl PageSpace {
    /// Takes the space of a task. Returns false if the page has no space for it. The first task always has.
    fn takes(&mut self, task: &Task) -> bool {
        self.rows.len() < self.limit && (self.capacity.take(size_of_texts(task)) || self.rows.is_empty())
    }
}

fn size_of_texts(task: &Task) -> usize {
    let texts = [&task.body, &task.result, &task.notes, &task.block_reason, &task.last_failure_error];
    let lists = [&task.skills, &task.artifacts];
    let question = task.question.as_ref().and_then(|question| serde_json::to_string(question).ok());
    let texts = texts.into_iter().flatten().chain(lists.into_iter().flatten()).map(String::len);
    texts.chain(question.map(|text| text.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::filter::Archived;
    use crate::model::status::Status;
    use crate::testing::{Bench, alice, titled};
    use crate::{Client, Clock as _, Detach, NewTask, TaskId, Timestamp};

    fn some_of_everything() -> Bench {
        let bench = Bench::new();
        for turn in 0..24 {
            bench.clock.advance(std::time::Duration::from_secs(turn % 5));
            let assignee = (turn % 3 != 0).then(|| format!("profile-{}", turn % 2).parse().unwrap());
            let priority = i64::try_from(turn % 4).unwrap();
            let task = bench
                .create(NewTask {
                    assignee,
                    priority,
                    body: Some("x".repeat(usize::try_from(turn % 9).unwrap())),
                    tenant: (turn % 4 < 2).then(|| "acme".parse().unwrap()),
                    client: Client {
                        session_id: (turn % 5 == 0).then(|| "s".to_owned()),
                        workflow_template_id: (turn % 5 > 2).then(|| "w".to_owned()),
                        current_step_key: (turn % 5 > 1).then(|| "one".to_owned()),
                        ..Client::default()
                    },
                    ..titled(&format!("task {}", turn % 7))
                })
                .id;
            if turn % 2 == 0 {
                bench.call(move |board| board.archive(&task, Detach::Refuse, &alice())).unwrap();
            }
        }
        bench
    }

    fn page(bench: &Bench, filter: &Filter) -> crate::Page {
        bench.readers.with(|view| view.tasks(filter)).unwrap()
    }

    #[test]
    fn pages_put_together_are_the_whole_list_in_every_order() {
        let bench = some_of_everything();
        for sort in Sort::ALL {
            for archived in [Archived::Hide, Archived::Show] {
                let all = Filter { sort: *sort, archived, limit: 1000, ..Filter::default() };
                let whole = page(&bench, &all).tasks;
                assert_eq!(whole.len(), if archived == Archived::Show { 24 } else { 12 });
                for (limit, bytes) in [(5, usize::MAX), (100, 12), (100, 0), (3, 12)] {
                    let mut cursor = None;
                    let mut pages = Vec::new();
                    loop {
                        let next = page(&bench, &Filter { limit, cursor, bytes, ..all.clone() });
                        pages.extend(next.tasks);
                        cursor = next.next;
                        if cursor.is_none() {
                            break;
                        }
                    }
                    assert_eq!(pages, whole, "{sort:?} {archived:?} {limit} {bytes}");
                }
                let sorted = whole.windows(2).all(|pair| compare(order(*sort), &pair[0], &pair[1]).is_lt());
                assert!(sorted, "{sort:?} {archived:?}");
            }
        }
    }

    #[test]
    fn a_list_has_several_statuses_a_text_and_what_has_changed_since() {
        let bench = Bench::new();
        let make = |title: &str, body: &str| {
            bench.clock.advance(std::time::Duration::from_secs(10));
            bench.create(NewTask { body: Some(body.to_owned()), ..titled(title) })
        };
        let old = make("Figures of May", "sum");
        let percent = make("plain", "100% of a_b");
        let new = make("other", "FIGURES too");
        let child = bench.child_of(&[&new.id]);
        let ids = |filter: Filter| -> Vec<TaskId> {
            let mut found: Vec<TaskId> =
                page(&bench, &filter).tasks.into_iter().map(|task| task.id).collect();
            found.sort();
            found
        };
        let sorted = |mut ids: Vec<TaskId>| {
            ids.sort();
            ids
        };
        let search = |text: &str| ids(Filter { search: Some(text.to_owned()), ..Filter::default() });
        assert_eq!(search("figures"), sorted(vec![old.id.clone(), new.id.clone()]));
        assert_eq!(search("0% of"), std::slice::from_ref(&percent.id));
        assert_eq!(search("a_b"), std::slice::from_ref(&percent.id));
        assert!(search("a%b").is_empty(), "a pattern is a text");
        let of = |statuses: &[Status]| ids(Filter { statuses: statuses.to_vec(), ..Filter::default() });
        assert_eq!(of(&[Status::Todo]), std::slice::from_ref(&child));
        assert_eq!(of(&[Status::Ready, Status::Todo, Status::Ready]).len(), 4);
        let since = ids(Filter { since: Some(new.created_at), ..Filter::default() });
        assert_eq!(since, sorted(vec![new.id, child]));
    }

    /// Returns filters of every form: each order with each kind of condition, from the start and from a cursor.
    fn filters(bench: &Bench) -> Vec<Filter> {
        let conditions: [fn(Filter) -> Filter; 12] = [
            |filter| filter,
            |filter| Filter { archived: Archived::Show, ..filter },
            |filter| Filter { statuses: vec![Status::Ready], ..filter },
            |filter| Filter { statuses: vec![Status::Archived], ..filter },
            |filter| Filter { statuses: vec![Status::Archived, Status::Ready, Status::Todo], ..filter },
            |filter| Filter { assignee: "profile-1".parse().ok(), ..filter },
            |filter| Filter { tenant: "acme".parse().ok(), archived: Archived::Show, ..filter },
            |filter| Filter { tenant: "acme".parse().ok(), assignee: "profile-0".parse().ok(), ..filter },
            |filter| Filter { session: Some("s".to_owned()), ..filter },
            |filter| Filter { workflow: Some("w".to_owned()), step: Some("one".to_owned()), ..filter },
            |filter| Filter { search: Some("task 3".to_owned()), ..filter },
            |filter| Filter { step: Some("one".to_owned()), archived: Archived::Show, ..filter },
        ];
        let since = Some(Timestamp::from_micros(bench.clock.now().as_micros() - 20_000_000));
        let mut filters = Vec::new();
        for sort in Sort::ALL {
            for condition in conditions {
                for since in [None, since] {
                    let filter = condition(Filter { sort: *sort, since, limit: 3, ..Filter::default() });
                    let cursor = page(bench, &filter).next;
                    filters.extend([filter.clone(), Filter { cursor, ..filter }]);
                }
            }
        }
        filters
    }

    fn is_selected(filter: &Filter, task: &Task) -> bool {
        let by_status = if filter.statuses.is_empty() {
            task.status != Status::Archived || filter.archived == Archived::Show
        } else {
            filter.statuses.contains(&task.status)
        };
        by_status
            && filter.assignee.as_ref().is_none_or(|name| task.assignee.as_ref() == Some(name))
            && filter.tenant.as_ref().is_none_or(|name| task.tenant.as_ref() == Some(name))
            && filter.session.as_ref().is_none_or(|id| task.client.session_id.as_ref() == Some(id))
            && filter.workflow.as_ref().is_none_or(|id| task.client.workflow_template_id.as_ref() == Some(id))
            && filter.step.as_ref().is_none_or(|key| task.client.current_step_key.as_ref() == Some(key))
            && filter.search.as_ref().is_none_or(|text| task.title.contains(text.as_str()))
            && filter.since.is_none_or(|since| task.updated_at >= since)
    }

    #[test]
    fn pages_of_every_filter_have_its_tasks_in_its_order_however_they_are_read() {
        let bench = some_of_everything();
        let all = Filter { archived: Archived::Show, limit: 1000, ..Filter::default() };
        let all = page(&bench, &all).tasks;
        for filter in filters(&bench).into_iter().filter(|filter| filter.cursor.is_none()) {
            let mut wanted: Vec<Task> =
                all.iter().filter(|task| is_selected(&filter, task)).cloned().collect();
            wanted.sort_by(|one, other| compare(order(filter.sort), one, other));
            for few in [0, FEW] {
                let (mut found, mut cursor) = (Vec::new(), None);
                loop {
                    let filter = Filter { cursor, ..filter.clone() };
                    let (tasks, next) = bench.readers.with(|view| view.tx.page(&filter, few)).unwrap();
                    assert!(tasks.len() <= 3, "{filter:?}");
                    found.extend(tasks);
                    cursor = next;
                    if cursor.is_none() {
                        break;
                    }
                }
                let ids = |tasks: &[Task]| tasks.iter().map(|task| task.id.clone()).collect::<Vec<_>>();
                assert_eq!(ids(&found), ids(&wanted), "{filter:?} {few}");
            }
        }
    }

    #[test]
    fn no_page_of_many_tasks_is_sorted_and_no_page_reads_a_table_without_an_index() {
        let bench = some_of_everything();
        let conn = rusqlite::Connection::open(&bench.path).unwrap();
        let plan = |Source { sql, values }: &Source| -> Vec<String> {
            let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let details = statement.query_map(params_from_iter(values), |row| row.get("detail")).unwrap();
            details.collect::<Result<_, _>>().unwrap()
        };
        for filter in filters(&bench) {
            let selection = Selection::of(&filter).unwrap();
            let many = if selection.is_by_assignee() {
                ["", "profile-1"].into_iter().flat_map(|name| selection.of_assignee(name)).collect()
            } else {
                selection.in_order()
            };
            for source in many {
                let plan = plan(&source);
                let is_read_in_order = plan[0].contains(" t USING INDEX tasks_")
                    && plan.iter().all(|step| !step.contains("TEMP B-TREE"));
                assert!(is_read_in_order, "{filter:?}: {}: {plan:?}", source.sql);
            }
            for parts in selection.narrow_conditions().into_iter().chain([selection.of_owner()]) {
                let counts = parts.iter().map(|part| part.count(FEW));
                for source in counts.chain(selection.sorted(&parts)) {
                    let plan = plan(&source);
                    let is_sought = plan.iter().any(|step| step.starts_with("SEARCH t USING"));
                    assert!(is_sought, "{filter:?}: {}: {plan:?}", source.sql);
                }
            }
        }
    }
}
