//! Budgets: a spent one refuses the next request of a run, and the next run of its tenant.

use crate::harness::{Fleet, User};
use crate::proxy::{Server, events, is_possible};

/// A root whose policy `agent` reaches a server.
fn fleet_with(user: User, server: &Server, budgets: &str) -> Option<Fleet> {
    let fleet = Fleet::offline_as(user);
    if !is_possible(&fleet) {
        return None;
    }
    let host = format!("127.0.0.1:{}", server.port);
    let text = format!("version = 1\nextends = 'default'\n[network]\nmode = 'proxy'\nhosts = {:?}\n", [host]);
    fleet.policy("agent", &text);
    fleet.configure(budgets);
    fleet.start();
    Some(fleet)
}

/// A script that asks a server, and fails when it is refused.
fn asks(server: &Server, times: usize) -> String {
    let url = server.url("a");
    format!(
        "for n in $(seq {times}); do curl -s -m 20 -w '\\n%{{http_code}}\\n' {url}; done; curl -sf -m 20 {url}"
    )
}

#[test]
fn a_run_that_has_spent_its_budget_is_refused_its_next_request_and_its_task_asks_a_person() {
    for user in User::all() {
        let server = Server::start();
        let Some(fleet) = fleet_with(user, &server, "[budgets.per_run]\nrequests = 2\n") else { return };

        let task = fleet.create("asks", &asks(&server, 3), &["--policy", "agent", "--tenant", "acme"]);
        let shown = fleet.wait_for(&task, "blocked");

        let reason = "the budget of this run is spent: 2 requests of 2 (budgets.per_run.requests)";
        assert_eq!(
            (&shown["task"]["block_kind"], &shown["task"]["block_reason"]),
            (&"budget".into(), &reason.into())
        );
        let said = fleet.cli(["log", &task]).stdout;
        assert!(said.contains("\n402\n") && said.contains(reason), "{said}");
        let spent = events(&fleet, &task, "budget_spent");
        assert_eq!((spent.len(), &spent[0]["key"]), (1, &"budgets.per_run.requests".into()), "{spent:?}");
        let egress = &shown["runs"][0]["egress"];
        assert_eq!((&egress["requests"], &egress["over_budget"]), (&2.into(), &2.into()), "{egress}");
        assert_eq!(egress["hosts"][0]["host"], format!("127.0.0.1:{}", server.port));
        let stats = fleet.json(["stats"]);
        let used: Vec<(&str, u64)> = stats["used_today"]
            .as_array()
            .unwrap()
            .iter()
            .map(|used| (used["name"].as_str().unwrap(), used["requests"].as_u64().unwrap()))
            .collect();
        assert_eq!(used, [("shell", 2), ("acme", 2)], "{stats}");
        assert!(fleet.cli(["stats"]).stdout.contains("tenant acme"), "{stats}");
    }
}

#[test]
fn a_tenant_that_has_spent_its_day_is_refused_requests_and_runs_until_a_person_grants_more() {
    for user in User::all() {
        let server = Server::start();
        let Some(fleet) = fleet_with(user, &server, "[budgets.tenants.acme]\nrequests = 3\n") else { return };
        let of = |title: &str, script: &str, tenant: &str| {
            fleet.create(title, script, &["--policy", "agent", "--tenant", tenant])
        };

        let first = of("asks", &format!("{} || true", asks(&server, 4)), "acme");
        fleet.wait_for(&first, "done");
        let said = fleet.cli(["log", &first]).stdout;
        assert!(
            said.contains("\n402\n") && said.contains("the budget of tenant acme for today is spent"),
            "{said}"
        );
        let other = of("of somebody else", &asks(&server, 4), "beta");
        fleet.wait_for(&other, "done");
        let next = of("waits", &asks(&server, 1), "acme");

        let waits = || fleet.show(&next)["why"]["text"].as_str().unwrap_or_default().to_owned();
        let told = "3 requests of 3 (budgets.tenants.acme.requests)";
        assert!(waits().contains(told), "{}", waits());
        assert!(fleet.cli(["status"]).stdout.contains(told));
        let wrong = fleet.json(["diagnostics"]).to_string();
        assert!(wrong.contains("budget_spent") && wrong.contains(told), "{wrong}");

        fleet.cli(["release", "--tenant", "acme"]).ok();
        fleet.wait_for(&next, "done");

        let last = of("waits for the operator", &asks(&server, 1), "acme");
        fleet.eventually("it waits again", || {
            let why = fleet.show(&last)["why"]["text"].as_str().unwrap_or_default().to_owned();
            why.contains("6 requests of 6 (budgets.tenants.acme.requests)").then_some(())
        });
        fleet.configure("[budgets.tenants.acme]\nrequests = 100\n");
        fleet.signal(nix::sys::signal::Signal::SIGHUP);
        fleet.wait_for(&last, "done");
    }
}

#[test]
fn an_agent_that_reports_tokens_alone_is_charged_by_the_price_of_the_model_that_it_was_to_use() {
    let fleet = Fleet::offline();
    let usage = r#"{"type":"turn.completed","usage":{"input_tokens":1000000,"cached_input_tokens":600000,"output_tokens":50000}}"#;
    let rest = "model = \"gpt-5.1-codex\"\nstdout = \"codex-jsonl\"\non_clean_exit = \"complete\"\n";
    let argv = format!("argv = [\"/bin/sh\", \"-c\", 'echo \"$1\"', \"sh\", '{usage}', [\"{{model}}\"]]\n");
    fleet.lane("coder", &format!("{argv}{rest}"));
    let prices = "[prices.\"gpt-5*\"]\ninput = 1.25\ncached_input = 0.125\noutput = 10\n";
    fleet.configure(&format!("{prices}[budgets.tenants.acme]\ncost_usd = 1\n"));
    fleet.start();
    let create = || {
        let task = fleet.json(["create", "x", "--assignee", "coder", "--tenant", "acme"]);
        task["id"].as_str().unwrap().to_owned()
    };

    let first = create();
    let spent = fleet.wait_for(&first, "done")["runs"][0]["spent"].clone();
    let second = create();

    // 400,000 tokens at 1.25, 600,000 at 0.125 and 50,000 at 10 dollars a million.
    let cost = serde_json::json!(1_075_000);
    assert_eq!((&spent["model"], &spent["cost_micros"]), (&"gpt-5.1-codex".into(), &cost), "{spent}");
    let shown = fleet.show(&second);
    assert_eq!(shown["task"]["status"], "ready", "{shown:#}");
    let why = fleet.cli(["show", &second]).ok().stdout;
    assert!(why.contains("$1.075 of $1.00 (budgets.tenants.acme.cost_usd)"), "{why}");
}
