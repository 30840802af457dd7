//! Usage counters of all runs and tenants of a daemon, and the limits on them.

use std::collections::HashMap;
use std::time::Instant;

use kernel::{BoardId, RunId, Tenant};

use super::usage::{CallerUsage, FORGOTTEN};
use base::response::REST;
use setup::config::api::ApiConfig;

pub(super) type RunKey = (BoardId, RunId);
type TenantKey = (BoardId, Option<Tenant>);

/// Names a run for a message. The members of tenants are counted under negative numbers, which no run has: `-1 - uid`.
pub(super) fn run_name(run: RunId) -> String {
    if run.0 < 0 { format!("uid {}", -1 - run.0) } else { format!("run {run}") }
}

/// Run and tenant that a request counts for. An ended run, which gets stored replies, still counts for its tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CountedFor {
    pub(super) run: RunKey,
    pub(super) tenant: TenantKey,
}

/// Usage counters of all runs and tenants.
#[derive(Debug)]
pub(super) struct UsageTable {
    pub(super) runs: HashMap<RunKey, CallerUsage>,
    pub(super) tenants: HashMap<TenantKey, CallerUsage>,
    pub(super) uploads: usize,
    pub(super) bytes: usize,
    pub(super) tidied: Instant,
}

/// An exceeded limit: its owner, its description, and its key in the configuration.
pub(super) struct ReachedLimit {
    pub(super) owner: String,
    pub(super) limit: String,
    pub(super) key: &'static str,
}

impl UsageTable {
    /// Makes counters without any usage.
    pub(super) fn new() -> Self {
        let (runs, tenants) = (HashMap::new(), HashMap::new());
        UsageTable { runs, tenants, uploads: 0, bytes: 0, tidied: Instant::now() }
    }

    /// Drops counters without usage for a while.
    pub(super) fn tidy(&mut self, now: Instant) {
        if now.duration_since(self.tidied) > FORGOTTEN {
            self.tidied = now;
            self.runs.retain(|_, usage| !usage.is_unused(now));
            self.tenants.retain(|_, usage| !usage.is_unused(now));
        }
    }

    /// Counts a request of a run and its tenant, unless one of them has reached a limit.
    pub(super) fn count(
        &mut self,
        counted_for: &CountedFor,
        api: &ApiConfig,
        now: Instant,
    ) -> Result<(), ReachedLimit> {
        let rate = api.requests_per_second_per_run;
        let run = self.runs.entry(counted_for.run).or_insert_with(|| CallerUsage::new(rate, now));
        let most = api.requests_per_run;
        if run.requests >= most {
            return Err(ReachedLimit::at_once(
                counted_for.run(),
                most,
                "requests under way",
                "requests_per_run",
            ));
        }
        let rate = api.requests_per_second_per_tenant;
        let tenant =
            self.tenants.entry(counted_for.tenant.clone()).or_insert_with(|| CallerUsage::new(rate, now));
        let most = api.requests_per_tenant;
        if tenant.requests >= most {
            return Err(ReachedLimit::at_once(
                counted_for.tenant(),
                most,
                "requests under way",
                "requests_per_tenant",
            ));
        }
        if !tenant.take_token(rate, now) {
            run.rests_until = Some(now + REST);
            return Err(ReachedLimit::rate(counted_for.tenant(), rate, "requests_per_second_per_tenant"));
        }
        // Both counters rise only here, where no limit can refuse the request any more.
        run.requests += 1;
        tenant.requests += 1;
        Ok(())
    }

    /// Applies a change to both counters of a request. They exist while the request has any usage.
    pub(super) fn each(&mut self, counted_for: &CountedFor, change: impl Fn(&mut CallerUsage)) {
        self.runs.get_mut(&counted_for.run).into_iter().for_each(&change);
        self.tenants.get_mut(&counted_for.tenant).into_iter().for_each(&change);
    }

    /// Returns the usage of the run, its tenant and all workers.
    fn present(
        &self,
        counted_for: &CountedFor,
        of: impl Fn(&CallerUsage) -> usize,
        all: usize,
    ) -> [usize; 3] {
        let run = self.runs.get(&counted_for.run).map_or(0, &of);
        [run, self.tenants.get(&counted_for.tenant).map_or(0, &of), all]
    }

    pub(super) fn upload(&mut self, counted_for: &CountedFor, api: &ApiConfig) -> Result<(), ReachedLimit> {
        let present = self.present(counted_for, |usage| usage.uploads, self.uploads);
        let bounds = [
            (api.uploads_per_run, "uploads_per_run"),
            (api.uploads_per_tenant, "uploads_per_tenant"),
            (api.uploads, "uploads"),
        ];
        counted_for.may_add(present, 1, bounds, "files on their way in")?;
        self.uploads += 1;
        self.each(counted_for, |usage| usage.uploads += 1);
        Ok(())
    }

    pub(super) fn reserve(
        &mut self,
        counted_for: &CountedFor,
        bytes: usize,
        api: &ApiConfig,
    ) -> Result<(), ReachedLimit> {
        let present = self.present(counted_for, |usage| usage.bytes, self.bytes);
        let bounds = [
            (api.unread_bytes_per_run, "unread_bytes_per_run"),
            (api.unread_bytes_per_tenant, "unread_bytes_per_tenant"),
            (api.unread_bytes, "unread_bytes"),
        ];
        counted_for.may_add(present, bytes, bounds, "bytes of bodies and of replies that are not read")?;
        self.bytes += bytes;
        self.each(counted_for, |usage| usage.bytes += bytes);
        Ok(())
    }
}

impl CountedFor {
    pub(super) fn run(&self) -> String {
        run_name(self.run.1)
    }

    pub(super) fn tenant(&self) -> String {
        match &self.tenant.1 {
            Some(tenant) => format!("tenant {tenant}"),
            None => "the tasks without a tenant together".to_owned(),
        }
    }

    /// Refuses usage above the limit of the run, its tenant, or all workers.
    ///
    /// A caller without usage is admitted, however large its first item is (items are bounded where they are made)
    /// and whatever other tenants use. So no tenant can exclude another by exhausting the shared limit.
    fn may_add(
        &self,
        [run, tenant, all]: [usize; 3],
        more: usize,
        [of_run, of_tenant, of_all]: [(usize, &'static str); 3],
        what: &str,
    ) -> Result<(), ReachedLimit> {
        let over = |present: usize, (most, _): (usize, &str)| present.saturating_add(more) > most;
        if run > 0 && over(run, of_run) {
            return Err(ReachedLimit::at_once(self.run(), of_run.0, what, of_run.1));
        }
        if tenant > 0 && over(tenant, of_tenant) {
            return Err(ReachedLimit::at_once(self.tenant(), of_tenant.0, what, of_tenant.1));
        }
        if tenant > 0 && over(all, of_all) {
            return Err(ReachedLimit::at_once("all workers".to_owned(), of_all.0, what, of_all.1));
        }
        Ok(())
    }
}

impl ReachedLimit {
    fn at_once(counted_for: String, most: usize, what: &str, key: &'static str) -> Self {
        ReachedLimit { owner: counted_for, limit: format!("may have up to {most} {what}"), key }
    }

    pub(super) fn rate(counted_for: String, rate: u32, key: &'static str) -> Self {
        ReachedLimit {
            owner: counted_for,
            limit: format!("may make up to {rate} requests a second, and a short burst"),
            key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> UsageTable {
        UsageTable::new()
    }

    /// Counts for a run of a tenant that has a request in progress.
    fn run(table: &mut UsageTable, number: i64, tenant: &str) -> CountedFor {
        let board = "6f1c0c4e-7a55-4f0e-9d51-0a8d3a6b1c02".parse().unwrap();
        let tenant = (!tenant.is_empty()).then(|| tenant.parse().unwrap());
        let counted_for = CountedFor { run: (board, RunId(number)), tenant: (board, tenant) };
        let entered = table.count(&counted_for, &ApiConfig::default(), Instant::now());
        assert!(entered.is_ok(), "{}", bound(entered));
        counted_for
    }

    fn bound(refused: Result<(), ReachedLimit>) -> &'static str {
        refused.map_or_else(|bound| bound.key, |()| "none")
    }

    #[test]
    fn a_run_and_a_tenant_have_so_many_requests_under_way_and_no_more() {
        let (mut table, api) = (table(), ApiConfig::default());
        let counted_for = run(&mut table, 1, "hostile");
        let ask = |table: &mut UsageTable, counted_for: &CountedFor| {
            bound(table.count(counted_for, &api, Instant::now()))
        };
        for _ in 1..api.requests_per_run {
            assert_eq!(ask(&mut table, &counted_for), "none");
        }
        assert_eq!(ask(&mut table, &counted_for), "requests_per_run");
        let others = (2..).take(api.requests_per_tenant - api.requests_per_run);
        others.for_each(|number| drop(run(&mut table, number, "hostile")));
        let another = CountedFor { run: (counted_for.run.0, RunId(1000)), ..counted_for.clone() };
        assert_eq!(ask(&mut table, &another), "requests_per_tenant");
        run(&mut table, 2000, "neighbour");
        table.each(&counted_for, |usage| usage.requests -= 1);
        assert_eq!(ask(&mut table, &another), "none", "one was answered");
    }

    #[test]
    fn a_tenant_with_many_runs_leaves_room_for_the_files_of_others() {
        let (mut table, api) = (table(), ApiConfig::default());
        let hostile: Vec<CountedFor> = (0..4).map(|n| run(&mut table, n, "hostile")).collect();
        let met: Vec<&str> =
            hostile.iter().flat_map(|run| [run; 5]).map(|run| bound(table.upload(run, &api))).collect();
        assert_eq!(met.iter().filter(|bound| **bound == "none").count(), api.uploads_per_tenant);
        assert_eq!(met[4], "uploads_per_run");
        assert_eq!(met[19], "uploads_per_tenant");
        let neighbour = run(&mut table, 9, "");
        assert_eq!(bound(table.upload(&neighbour, &api)), "none");
    }

    #[test]
    fn tenants_that_use_up_what_all_share_leave_one_of_it_to_each_other() {
        let (mut table, api) = (table(), ApiConfig::default());
        for number in 0..40 {
            let hostile = run(&mut table, number, &format!("hostile-{}", number % 4));
            while table.upload(&hostile, &api).is_ok() {}
            while table.reserve(&hostile, 1 << 20, &api).is_ok() {}
        }
        assert!(table.uploads <= api.uploads + 4 && table.bytes <= api.unread_bytes + (4 << 20));
        let neighbour = run(&mut table, 99, "neighbour");
        assert_eq!(bound(table.upload(&neighbour, &api)), "none");
        assert_eq!(bound(table.upload(&neighbour, &api)), "uploads");
        assert_eq!(bound(table.reserve(&neighbour, 1 << 20, &api)), "none");
        assert_eq!(bound(table.reserve(&neighbour, 1 << 20, &api)), "unread_bytes");
    }

    #[test]
    fn one_reply_may_be_larger_than_a_bound_and_a_second_may_not() {
        let (mut table, api) = (table(), ApiConfig::default());
        let run = run(&mut table, 1, "t");
        assert_eq!(bound(table.reserve(&run, api.unread_bytes * 2, &api)), "none");
        assert_eq!(bound(table.reserve(&run, 1, &api)), "unread_bytes_per_run");
    }
}
