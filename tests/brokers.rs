//! Brokers: a worker asks its service in the clear at its proxy, and never has the key that the service gets.

pub(crate) mod provider;
mod refusals;
mod tunnels;

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::harness::{Fleet, User};
use crate::proxy::{events, is_possible};
use provider::Provider;

/// A key that is nowhere by chance.
const KEY: &str = "sk-2e9d41c7-Never-Of-A-Worker";
/// Key that a worker sees instead.
const NO_KEY: &str = "key-of-the-broker";

/// A root whose lane `agent` asks a provider with a key.
fn keyed(user: User, provider: &Provider) -> Option<Fleet> {
    let fleet = Fleet::offline_as(user);
    let ca = provider.write_ca(&fleet.home());
    fs::set_permissions(&ca, fs::Permissions::from_mode(0o644)).unwrap();
    fleet.configure(&format!("[proxy]\nca = {:?}", ca.to_str().unwrap()));
    if !is_possible(&fleet) {
        return None;
    }
    write_key(&fleet, 0o600);
    let lane = format!(
        "argv = [\"/bin/sh\", \"{{prompt_file}}\"]
         prompt = \"body-file\"
         on_clean_exit = \"complete\"
         policy = \"agent\"
         [[broker]]
         host = \"{}\"
         header = \"authorization\"
         scheme = \"Bearer\"
         secret = \"service-key\"
         base_url_env = \"SERVICE_URL\"
         key_env = \"SERVICE_KEY\"",
        provider.host()
    );
    fleet.lane("agent", &lane);
    Some(fleet)
}

fn write_key(fleet: &Fleet, mode: u32) -> PathBuf {
    fleet.write_config("secrets/service-key", &format!("{KEY}\n"));
    let path = fleet.root().join("secrets/service-key");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn create(fleet: &Fleet, script: &str) -> String {
    let words = ["create", "x", "--assignee", "agent", "--max-retries", "1", "--body", script];
    fleet.json(words)["id"].as_str().unwrap().to_owned()
}

/// Runs a script to its end, and returns what it wrote.
fn output_of(fleet: &Fleet, script: &str) -> String {
    let task = create(fleet, script);
    fleet.wait_for(&task, "done");
    fleet.cli(["log", &task]).ok().stdout
}

fn has(bytes: &[u8], word: &str) -> bool {
    // Quicker than the windows of a slice: a process has much memory.
    regex::bytes::Regex::new(&regex::escape(word)).unwrap().is_match(bytes)
}

/// The files beneath a directory, but for that of the secrets, that have a word.
pub(crate) fn files_with(dir: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() && !path.ends_with("secrets") {
            found.extend(files_with(&path, word));
        } else if kind.is_file() && has(&fs::read(&path).unwrap_or_default(), word) {
            found.push(path);
        }
    }
    found
}

/// Returns true if a process has a word in its arguments, its environment or anywhere in its memory.
fn process_has(pid: i32, word: &str) -> bool {
    let at = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    if has(&at("cmdline"), word) || has(&at("environ"), word) {
        return true;
    }
    let open = |file: &str| File::open(format!("/proc/{pid}/{file}"));
    let (Ok(memory), Ok(pages)) = (open("mem"), open("pagemap")) else { return false };
    String::from_utf8_lossy(&at("maps")).lines().any(|line| {
        // What is mapped from a file and cannot be written is that file.
        let is_own = |rest: &str| rest.starts_with("rw") || (rest.starts_with('r') && !rest.contains('/'));
        let range = line.split_once(' ').filter(|(_, rest)| is_own(rest)).map(|(range, _)| range);
        let ends = range.and_then(|range| range.split_once('-'));
        let Some((start, end)) = ends else { return false };
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        range_has((&memory, &pages), number(start)..number(end), word)
    })
}

/// Returns true if a range of addresses contains a word. Pages that were never written are skipped, because some
/// programs reserve more memory than a host has.
fn range_has((memory, pages): (&File, &File), range: Range<u64>, word: &str) -> bool {
    const PAGE: u64 = 4096;
    const PIECE: usize = 256 * 4096;
    range.clone().step_by(PIECE).any(|start| {
        let end = (start + PIECE as u64).min(range.end);
        let mut entries = vec![0; usize::try_from((end - start) / PAGE * 8).unwrap()];
        // Whether a page is in memory or swapped out: bits 63 and 62 of its entry (proc_pid_pagemap(5)).
        let is_there = pages.read_at(&mut entries, start / PAGE * 8);
        let is_there =
            is_there.is_ok_and(|length| entries[..length].chunks(8).any(|entry| entry[7] & 0xc0 != 0));
        // A word may begin in the piece before.
        let from = (start - word.len() as u64).max(range.start);
        let mut bytes = vec![0; usize::try_from(end - from).unwrap()];
        // What cannot be read is the kernel's.
        is_there && memory.read_at(&mut bytes, from).is_ok_and(|length| has(&bytes[..length], word))
    })
}

/// The processes of the fleet, but for its daemon, that have a word.
pub(crate) fn processes_with(fleet: &Fleet, word: &str) -> Vec<String> {
    let daemon = fleet.daemon_pid();
    let all = fleet.processes().into_iter().filter(|process| process.pid != daemon);
    all.filter(|process| process_has(process.pid, word)).map(|process| process.command).collect()
}

#[test]
fn the_service_gets_the_key_and_no_worker_file_or_process_has_it() {
    for user in User::all() {
        let provider = Provider::start();
        let Some(fleet) = keyed(user, &provider) else { return };
        fleet.start();
        let script =
            "echo answer: $(curl -s -m 20 -H \"Authorization: Bearer $SERVICE_KEY\" -H 'X-Api-Key: other' \
                      -H 'Cookie: other' -H 'X-Kept: yes' -d question \"$SERVICE_URL/v1/messages?a=b\")
                      until supervisor show --json | grep -q 'go-o[n]'; do sleep 0.05; done";
        let task = create(&fleet, script);
        fleet.eventually("it has its answer", || {
            fleet.cli(["log", &task]).stdout.contains("answer: hello").then_some(())
        });
        let asked = provider.asked();
        let request = asked[0].to_lowercase();
        assert!(request.starts_with("post /v1/messages?a=b http/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("authorization: bearer {}\r\n", KEY.to_lowercase())), "{request}");
        assert!(request.contains(&format!("host: {}\r\n", provider.host())), "{request}");
        assert!(request.contains("x-kept: yes") && request.ends_with("\r\n\r\nquestion"), "{request}");
        assert!(!request.contains("other") && !request.contains(NO_KEY), "{request}");

        assert!(!processes_with(&fleet, NO_KEY).is_empty(), "the search finds what is there");
        assert_eq!(processes_with(&fleet, KEY), Vec::<String>::new());
        assert_eq!(files_with(&fleet.root(), KEY), Vec::<PathBuf>::new());
        fleet.cli(["comment", &task, "go-on"]).ok();
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(files_with(&fleet.root(), KEY), Vec::<PathBuf>::new());
        assert!(!has(shown.to_string().as_bytes(), KEY) && !has(fleet.log().as_bytes(), KEY));
        let egress = &events(&fleet, &task, "egress")[0];
        assert_eq!(egress["requests"].as_u64(), Some(1), "{egress}");
        assert!(egress["sent_bytes"].as_u64() > Some(100) && egress["received_bytes"].as_u64() > Some(10));
    }
}

#[test]
fn nothing_that_a_worker_sends_reaches_another_host_or_says_who_asks() {
    let provider = Provider::start();
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    if !Path::new("/usr/bin/bash").exists() {
        return;
    }
    fleet.start();
    let port = provider.port;
    let script = format!(
        "exec 2>&1; code() {{ curl -s -m 20 -o /dev/null -w '%{{http_code}}' \"$@\"; }}
         for method in TRACE trace Track; do echo $method $(code -X $method $SERVICE_URL/x); done
         echo other $(code http://127.0.0.1:3128/other.example/x)
         echo user $(code http://127.0.0.1:3128/127.0.0.1:{port}@evil.example/x)
         echo tunnel $(curl -s -m 20 -p -x http://127.0.0.1:3128 --noproxy '' -w '%{{http_connect}}' -o /dev/null http://127.0.0.1:{port}/x)
         echo clear $(code -x http://127.0.0.1:3128 --noproxy '' http://127.0.0.1:{port}/x)
         echo huge $(code -H \"X-Huge: $(head -c 20000 /dev/zero | tr '\\0' x)\" $SERVICE_URL/x)
         cat > raw <<'END'
         trap '' PIPE # bash writes line by line, and an answer may come before the last one
         send() {{ exec 3<>/dev/tcp/127.0.0.1/3128; printf \"$2\" >&3; read -t 20 -r line <&3; echo \"$1 $line\"; exec 3>&-; }}
         at=127.0.0.1:{port}
         send both \"POST /$at/both HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 3\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /$at/smuggled HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\"
         send two \"POST /$at/two HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 0\\r\\nContent-Length: 9\\r\\n\\r\\nGET /smug\"
         send split \"GET /$at/split HTTP/1.1\\r\\nHost: a\\r\\nX-A: b\\rAuthorization: c\\r\\n\\r\\n\"
         send pipe \"GET /$at/first HTTP/1.1\\r\\nHost: a\\r\\n\\r\\nGET /$at/second HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\"
         send named \"GET /$at/named HTTP/1.1\\r\\nHost: evil.example\\r\\nConnection: authorization, x-kept\\r\\nAUTHORIZATION: mine\\r\\nx_api_key: mine\\r\\nPrivate-Token: mine\\r\\nX-HTTP-Method-Override: mine\\r\\n\\r\\n\"
         send query \"GET /$at/query?alt=sse&key=mine&acc%%65ss_token=mine HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\"
END
         bash raw
         echo up $(curl -s -m 20 --path-as-is $SERVICE_URL/../../up)
         echo elsewhere $(curl -s -m 20 -D - -o /dev/null $SERVICE_URL/elsewhere | tr '\\r\\n' '  ')
         echo long $(code $SERVICE_URL/head)"
    );
    let task = create(&fleet, &script);
    fleet.wait_for(&task, "done");
    let said = fleet.cli(["log", &task]).ok().stdout;
    for line in [
        "TRACE 405",
        "trace 405",
        "Track 405",
        "other 404",
        "user 400",
        "tunnel 200",
        "clear 403",
        "huge 431",
        "up hello",
        "long 502",
    ] {
        assert!(said.lines().any(|one| one == line), "{line}: {said}");
    }
    let line = |start: &str| said.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    for start in ["both ", "two ", "split "] {
        assert!(line(start).contains(" 400 "), "{said}");
    }
    assert!(
        line("query ").contains(" 200 ")
            && line("pipe ").contains(" 200 ")
            && line("named ").contains(" 200 "),
        "{said}"
    );
    let elsewhere = line("elsewhere ");
    assert!(elsewhere.contains("307") && elsewhere.contains("https://evil.example/"), "{said}");
    assert!(!elsewhere.to_lowercase().contains("keep-alive:"), "{said}");

    let asked = provider.asked();
    let paths: Vec<&str> = asked.iter().filter_map(|one| one.split(' ').nth(1)).collect();
    for path in ["/both", "/smuggled", "/two", "/split", "/second", "/x"] {
        assert!(!paths.contains(&path), "{paths:?}");
    }
    assert!(paths.contains(&"/query?alt=sse"), "{paths:?}");
    assert!(paths.contains(&"/first") && paths.contains(&"/../../up"), "{paths:?}");
    for request in &asked {
        let small = request.to_lowercase();
        assert_eq!(small.matches("authorization:").count(), 1, "{request}");
        assert!(small.contains(&format!("host: {}\r\n", provider.host())), "{request}");
        assert!(!small.contains("mine") && !small.contains("evil"), "{request}");
        let framings = small.matches("content-length:").count() + small.matches("transfer-encoding:").count();
        assert!(framings <= 1, "{request}");
    }
    let denied = events(&fleet, &task, "egress_denied");
    let text = denied[0]["text"].as_str().unwrap();
    assert!(
        text.contains(&format!("which is asked at http://127.0.0.1:3128/127.0.0.1:{port} or over TLS alone")),
        "{text}"
    );
}

#[test]
fn an_answer_is_passed_on_as_it_comes_and_what_is_not_read_is_not_kept() {
    let provider = Provider::start();
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    fleet.start();
    // The provider sends each part when it has been asked for, and that when the part before is here.
    let script = "curl -s -N -m 60 $SERVICE_URL/events | while read -r word n; do
                      case $word in data:) echo got $n; curl -s -o /dev/null $SERVICE_URL/next/$((n + 1)) ;; esac
                  done";
    let parts = output_of(&fleet, script);
    assert!(["got 1", "got 2", "got 3"].iter().all(|part| parts.contains(part)), "{parts}");

    let script = "mkfifo held; curl -s -N -m 60 $SERVICE_URL/endless > held & exec 3< held; head -c 1 <&3 > /dev/null
                  for i in $(seq 30); do curl -s -f -o /dev/null -m 20 $SERVICE_URL/other || exit 9; done; echo well";
    assert!(output_of(&fleet, script).contains("well"));
    let sent = provider.endless.load(Ordering::Acquire);
    assert!((1 << 16..64 << 20).contains(&sent), "{sent} bytes were sent to a worker that read one");
}

#[test]
fn an_account_is_held_for_as_long_as_its_service_says_to_the_broker() {
    let provider = Provider::start();
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    fleet.start();
    // What the program says names no time.
    let task = create(&fleet, "curl -s -o /dev/null -m 60 $SERVICE_URL/busy; exit 75");
    let shown = fleet.wait_for(&task, "scheduled");
    let told = shown["task"]["not_before"].as_i64().unwrap() - shown["runs"][0]["ended_at"].as_i64().unwrap();
    assert!((4990..=5000).contains(&told), "{told} seconds: {shown:#}");
}

#[test]
fn a_service_that_is_not_trusted_gets_no_request() {
    let (provider, other) = (Provider::start(), Provider::start());
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    other.write_ca(&fleet.home());
    fleet.start();
    let answer = output_of(&fleet, "curl -s -m 20 -w ' %{http_code}' $SERVICE_URL/x");
    assert!(answer.contains("certificate") && answer.contains(" 502"), "{answer}");
    assert_eq!(provider.asked(), Vec::<String>::new());
}

#[test]
fn a_broker_without_its_key_starts_nothing_unless_it_is_optional() {
    let provider = Provider::start();
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    let path = write_key(&fleet, 0o644);
    fleet.start();
    let task = create(&fleet, "curl -s -f -m 20 $SERVICE_URL/x");
    fleet.eventually("it says what it waits for", || {
        let why = fleet.show(&task)["why"]["text"].as_str()?.to_owned();
        let words = ["the secrets of the lane agent", "chmod 600", path.to_str().unwrap()];
        words.iter().all(|word| why.contains(word)).then_some(())
    });
    let check = fleet.cli(["lane", "check", "agent", "--json"]);
    assert!(check.code == 1 && check.stdout.contains("chmod 600"), "{}", check.stdout);
    write_key(&fleet, 0o600);
    let check = fleet.cli(["lane", "check", "agent", "--json"]).stdout;
    assert!(check.contains(&format!("at http://127.0.0.1:3128/{}", provider.host())), "{check}");
    fleet.wait_for(&task, "done");
    // What is built in goes without.
    let claude = fleet.cli(["lane", "check", "claude", "--json"]).stdout;
    assert!(claude.contains("none for x-api-key of api.anthropic.com"), "{claude}");
}

#[test]
fn a_service_that_does_the_work_gets_the_key_of_its_lane_and_its_worker_never_has_it() {
    let provider = Provider::start();
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    let lane = format!(
        "extends = \"http\"\n[service]\nurl = \"https://{}/work\"\nsecret = \"service-key\"\n",
        provider.host()
    );
    fleet.lane("service", &lane);
    fleet.start();
    let task = fleet.json(["create", "x", "--assignee", "service", "--max-retries", "1"]);
    let shown = fleet.wait_for(task["id"].as_str().unwrap(), "done");
    assert_eq!(shown["latest_summary"], "by the service", "{shown:#}");
    let asked = provider.asked().concat().to_lowercase();
    assert!(asked.starts_with("post /work http/1.1"), "{asked}");
    assert!(asked.contains(&format!("authorization: bearer {}", KEY.to_lowercase())), "{asked}");
    assert!(files_with(&fleet.root(), KEY).is_empty() && !fleet.log().contains(KEY));
}

/// A program that asks its service where its lane says it is, as the agents of these lanes do.
const ASKS: &str = r#"#!/bin/sh
cat > /dev/null
case "$*" in
    *openai_base_url=*) url=$(printf '%s' "$*" | grep -o 'openai_base_url="[^"]*"' | cut -d'"' -f2); key=$CODEX_API_KEY ;;
    *) url=$(grep -o '"baseURL":"[^"]*"' "$HOME/.config/opencode/opencode.json" | cut -d'"' -f4); key=$ANTHROPIC_API_KEY ;;
esac
test -n "$url" || { supervisor complete --summary "no address"; exit; }
curl -s -m 20 -H "Authorization: Bearer $key" -d x "$url/ask" > answer
supervisor complete --summary "answer $(cat answer)"
"#;

#[test]
fn codex_and_opencode_ask_by_their_broker_where_its_key_is_there_and_as_before_where_it_is_not() {
    let provider = Provider::start();
    let Some(fleet) = keyed(User::current(), &provider) else { return };
    let bin = fleet.home().join("bin");
    fs::create_dir_all(&bin).unwrap();
    for lane in ["codex", "opencode"] {
        let program = bin.join(lane);
        fs::write(&program, ASKS).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let built_in = fs::read_to_string(
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("setup/src/lanes/builtin/{lane}.toml")),
        );
        let of_its_service = ["api.openai.com", "api.anthropic.com"];
        let ours = of_its_service.iter().fold(built_in.unwrap(), |text, host| {
            text.replace(&format!("host = \"{host}\""), &format!("host = \"{}\"", provider.host()))
        });
        let ours = ours.replace("secret = \"openai-key\"", "secret = \"service-key\"");
        let ours = ours.replace("secret = \"anthropic-key\"", "secret = \"service-key\"");
        let install = fleet.home().display().to_string();
        fleet.lane(lane, &format!("install = [{install:?}]\n{ours}"));
        fleet.lane(
            &format!("{lane}-bare"),
            &format!("install = [{install:?}]\n{}", ours.replace("service-key", "no-such-key")),
        );
    }
    fleet.start();
    let answer = |lane: &str| {
        let words = ["create", "x", "--assignee", lane, "--max-retries", "1"];
        let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
        fleet.wait_for(&task, "done")["latest_summary"].as_str().unwrap().to_owned()
    };
    for lane in ["codex", "opencode"] {
        assert_eq!(answer(lane), "answer hello", "{lane}");
        assert_eq!(answer(&format!("{lane}-bare")), "no address", "{lane}");
    }
    let asked: Vec<String> = provider.asked().iter().map(|request| request.to_lowercase()).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked.iter().all(|request| request.starts_with("post /v1/ask ")), "{asked:?}");
    let key = KEY.to_lowercase();
    assert!(asked[0].contains(&format!("authorization: bearer {key}")), "{asked:?}");
    assert!(asked[1].contains(&format!("x-api-key: {key}")) && !asked[1].contains("bearer"), "{asked:?}");
}
