//! Tunnels to the hosts of brokers: a program that no variable leads to its proxy asks its service over TLS, and the proxy, which ends that
//! with a certificate of the run's own authority, adds the key.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::provider::Provider;
use super::{KEY, NO_KEY, create, files_with, has, keyed, output_of, processes_with};
use crate::harness::{Fleet, User};
use crate::proxy::events;

/// A script in which `ask PATH` asks the service as a program does that knows its own address of it alone.
fn asking(provider: &Provider, script: &str) -> String {
    let host = provider.host();
    // What a run reaches without its proxy is its own loopback interface, and the service of the tests is on the host's.
    format!("ask() {{ at=$1; shift; curl -s -m 20 --noproxy '' \"$@\" \"https://{host}$at\"; }}\n{script}")
}

/// Returns the keys of the authorities of the fleet's runs.
fn keys_of_authorities(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(keys_of_authorities(&path));
        } else if path.ends_with("authority.json") {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            let record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            found.push(record["key"].as_str().unwrap().to_owned());
        }
    }
    found
}

#[test]
fn a_program_that_knows_its_own_address_of_its_service_gets_the_key_added_and_never_has_it() {
    for user in User::all() {
        let provider = Provider::start();
        let Some(fleet) = keyed(user, &provider) else { return };
        fleet.start();
        let script = "echo answer: $(ask '/v1/messages?a=b&key=mine' -H \"Authorization: Bearer $SERVICE_KEY\" -d question)
                      find / -name authority.json 2> /dev/null | sed 's/^/found /'
                      test -r \"$SSL_CERT_FILE\" && test ! -w \"$SSL_CERT_FILE\" && echo bundle
                      until supervisor show --json | grep -q 'go-o[n]'; do sleep 0.05; done";
        let task = create(&fleet, &asking(&provider, script));
        let log = fleet.eventually("it has its answer", || {
            let log = fleet.cli(["log", &task]).stdout;
            log.contains("bundle").then_some(log)
        });
        assert!(log.contains("answer: hello") && !log.contains("found"), "{log}");
        let request = provider.asked()[0].to_lowercase();
        assert!(request.starts_with("post /v1/messages?a=b http/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("authorization: bearer {}\r\n", KEY.to_lowercase())), "{request}");
        assert!(request.contains(&format!("host: {}\r\n", provider.host())), "{request}");
        assert!(request.ends_with("\r\n\r\nquestion") && !request.contains(NO_KEY), "{request}");

        // Neither the key of the service nor that of the authority is anywhere that the worker could look.
        let keys = keys_of_authorities(&fleet.root());
        assert_eq!(keys.len(), 1);
        assert!(!processes_with(&fleet, NO_KEY).is_empty(), "the search finds what is there");
        for key in [KEY, &keys[0]] {
            assert_eq!(processes_with(&fleet, key), Vec::<String>::new());
        }
        assert_eq!(files_with(&fleet.root(), KEY), Vec::<PathBuf>::new());
        assert_eq!(files_with(&fleet.root(), &keys[0]).len(), 1, "it is in its own file alone");
        fleet.cli(["comment", &task, "go-on"]).ok();
        fleet.wait_for(&task, "done");
        // Its run directory is removed when the end of the run is on the board.
        fleet.eventually("it is gone with its run", || {
            files_with(&fleet.root(), &keys[0]).is_empty().then_some(())
        });
        assert!(!has(fleet.log().as_bytes(), KEY) && !fleet.log().contains("home_not_removed"));
        let egress = &events(&fleet, &task, "egress")[0];
        assert_eq!(egress["requests"].as_u64(), Some(1), "{egress}");
    }
}

#[test]
fn what_comes_by_a_tunnel_is_one_request_for_its_host_and_reaches_nobody_else() {
    let (provider, other) = (Provider::start(), Provider::start());
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    let lane = fs::read_to_string(fleet.root().join("lanes.d/agent.toml")).unwrap();
    fleet.lane("agent", &format!("hosts = [{:?}]\n{lane}", other.host()));
    fleet.start();
    let script = format!(
        "code() {{ ask \"$@\" -o /dev/null -w '%{{http_code}}'; }}
         echo host $(code /host -H 'Host: evil.example')
         echo none $(code /none -H 'Host:')
         echo absolute $(code / --request-target https://evil.example/absolute)
         echo clear $(code / --request-target http://evil.example/clear)
         echo two $(code /two -H 'Content-Length: 3' -H 'Content-Length: 4' -X POST)
         echo both $(code /both -H 'Transfer-Encoding: chunked' -H 'Content-Length: 3' -d abc)
         echo trace $(code /trace -X TRACE)
         echo huge $(code /huge -H \"X-Huge: $(head -c 20000 /dev/zero | tr '\\0' x)\")
         echo upgrade $(code /upgrade -H 'Connection: Upgrade' -H 'Upgrade: websocket')
         echo up $(ask /../../up --path-as-is)
         echo again $(ask /again -H 'Cookie: mine' -H 'X-Api-Key: mine')
         echo foreign $(curl -s -m 20 --noproxy '' https://{other}/foreign; echo $?)
         echo unseen $(curl -s -m 20 --noproxy '' -k https://{other}/unseen)
         echo untrusted $(ask /untrusted --cacert /etc/hostname; echo $?)",
        other = other.host()
    );
    let text = output_of(&fleet, &asking(&provider, &script));
    for line in [
        "host 421",
        "none 421",
        "absolute 400",
        "clear 400",
        "two 400",
        "both 400",
        "trace 405",
        "huge 431",
        "upgrade 200",
        "up hello",
        "again hello",
        // The other host shows its own certificate, which the run does not know, and gets no key.
        "foreign 60",
        "unseen hello",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
    assert!(!text.contains("untrusted hello"), "{text}");
    let asked = provider.asked();
    let paths: Vec<&str> = asked.iter().filter_map(|one| one.split(' ').nth(1)).collect();
    assert_eq!(paths, ["/upgrade", "/../../up", "/again"]);
    for request in &asked {
        let small = request.to_lowercase();
        assert_eq!(small.matches("authorization:").count(), 1, "{request}");
        assert!(small.contains(&format!("host: {}\r\n", provider.host())), "{request}");
        assert!(!small.contains("mine") && !small.contains("websocket"), "{request}");
    }
    assert!(!other.asked().concat().to_lowercase().contains("authorization"), "{:?}", other.asked());
}

#[test]
fn a_run_goes_on_asking_after_its_daemon_was_replaced() {
    let provider = Provider::start();
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    fleet.start();
    let script = "echo first $(ask /first)
                  until supervisor show --json 2> /dev/null | grep -q 'go-o[n]'; do sleep 0.05; done
                  echo second $(ask /second)";
    let task = create(&fleet, &asking(&provider, script));
    fleet.eventually("it has its first answer", || {
        fleet.cli(["log", &task]).stdout.contains("first hello").then_some(())
    });
    fleet.restart();
    fleet.cli(["comment", &task, "go-on"]).ok();
    fleet.wait_for(&task, "done");
    let log = fleet.cli(["log", &task]).ok().stdout;
    assert!(log.contains("second hello"), "{log}");
    assert!(provider.asked().iter().all(|request| request.contains(KEY)), "{:?}", provider.asked());
}

/// A program that has the address of its service built in.
const FIXED: &str = r#"#!/bin/sh
cat > /dev/null
key=${CODEX_API_KEY:-${ANTHROPIC_API_KEY:-$OPENROUTER_API_KEY}}
answer=$(curl -s -m 20 --noproxy '' -H "Authorization: Bearer $key" -d x "https://HOST/v1/ask")
supervisor complete --summary "with $key: $answer"
"#;

#[test]
fn codex_opencode_and_hermes_ask_by_a_tunnel_where_nothing_leads_them_to_their_proxy() {
    let provider = Provider::start();
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    let lanes = ["codex", "opencode", "hermes"];
    for lane in &lanes {
        lane_of(&fleet, lane, &provider);
    }
    fleet.start();
    for lane in lanes {
        let words = ["create", "x", "--assignee", lane, "--max-retries", "1"];
        let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(shown["latest_summary"], format!("with {NO_KEY}: hello"), "{lane}");
    }
    let asked = provider.asked();
    assert_eq!(asked.len(), lanes.len(), "{asked:?}");
    assert!(asked.iter().all(|request| request.contains(KEY) && !request.contains(NO_KEY)), "{asked:?}");
}

/// A built-in lane, with a program of its name and a host of ours in the place of its own.
fn lane_of(fleet: &Fleet, lane: &str, provider: &Provider) {
    let program = fleet.home().join("bin").join(lane);
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, FIXED.replace("HOST", &provider.host())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("setup/src/lanes/builtin/{lane}.toml"));
    let mut text = fs::read_to_string(built_in).unwrap();
    for host in ["api.openai.com", "api.anthropic.com", "openrouter.ai"] {
        text = text.replace(&format!("host = \"{host}\""), &format!("host = \"{}\"", provider.host()));
    }
    for secret in ["openai-key", "anthropic-key", "openrouter-key"] {
        text = text.replace(&format!("secret = \"{secret}\""), "secret = \"service-key\"");
    }
    fleet.lane(lane, &format!("install = [{:?}]\n{text}", fleet.home().display().to_string()));
}

#[test]
fn a_program_that_asks_its_broker_through_the_proxy_gets_the_same_answer() {
    for user in User::all() {
        let provider = Provider::start();
        let Some(fleet) = keyed(user, &provider) else { return };
        let path = fleet.root().join("lanes.d/agent.toml");
        let lane = fs::read_to_string(&path).unwrap();
        // The run reaches this address of the host through its proxy, so `NO_PROXY` does not name it.
        fleet.lane("agent", &format!("hosts = [\"127.0.0.1:9\"]\n{lane}"));
        fleet.start();
        let said = output_of(
            &fleet,
            "env | grep ^NO_PROXY
             echo clear: $(curl -s -m 20 \"$SERVICE_URL/v1\")
             echo tunnel: $(curl -s -m 20 -p \"$SERVICE_URL/v1\")
             echo name: $(curl -s -m 20 -p --noproxy '' \"$(echo $SERVICE_URL | sed s/127.0.0.1:3128/localhost:3128/)/v1\")
             echo nested: $(curl -s -m 20 -p --noproxy '' -o /dev/null -w '%{http_code}' http://127.0.0.1:3128/)
             echo none: $(curl -s -m 20 --noproxy '' -o /dev/null -w '%{http_code}' http://127.0.0.1:3128/)",
        );
        assert!(said.contains("NO_PROXY=127.0.0.1:3128,localhost,::1"), "{said}");
        for line in ["clear: hello", "tunnel: hello", "name: hello", "nested: 400", "none: 400"] {
            assert!(said.lines().any(|own| own.starts_with(line)), "{line}: {said}");
        }
        let request = provider.asked()[0].to_lowercase();
        assert!(request.contains(&format!("authorization: bearer {}\r\n", KEY.to_lowercase())), "{request}");
        let task = fleet.json(["list", "--status", "done"])[0]["id"].as_str().unwrap().to_owned();
        assert!(events(&fleet, &task, "egress_denied").is_empty(), "the proxy is no host that is refused");
    }
}
