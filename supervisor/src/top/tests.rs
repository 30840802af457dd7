//! Tests of the display and the keys, without a terminal and a board.

use std::time::Duration;

use kernel::{Question, RunId, TaskId};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::message::{LogPart, TaskVerb, TopAction, TopMessage};
use super::model::{ScreenMode, TopModel};
use super::picture::{DaemonFacts, Load, Picture, TaskGroup, TaskKind, TaskRow, Total};
use super::view::{self, ColourUse};
use base::terminal::Ink;
use base::terminal::full_screen::Key;

/// Text that controls a terminal, reorders its text or hides in it.
const HOSTILE: &str = "a\x1b[2Jb\u{202e}c\u{2066}d\x07e\u{9b}f\u{200b}g\r\nh\ti";

fn id(number: u32) -> TaskId {
    format!("t_{number:08x}").parse().unwrap()
}

pub(super) fn row(number: u32, kind: TaskKind, title: &str) -> TaskRow {
    let word = match kind {
        TaskKind::Question => "question",
        TaskKind::Review => "review",
        TaskKind::Running => "running",
        TaskKind::Ready => "ready",
        _ => "done",
    };
    TaskRow {
        id: id(number),
        kind,
        word,
        ink: Ink::Cyan,
        assignee: "shell".to_owned(),
        tenant: None,
        priority: 0,
        title: title.to_owned(),
        says: String::new(),
        age: Duration::from_secs(u64::from(number) * 61),
        load: Load::default(),
        question: None,
        details: vec![("body", "first line\nsecond line".to_owned())],
    }
}

fn question() -> TaskRow {
    let question = Question {
        text: "Which database should hold the figures?".to_owned(),
        choices: vec!["PostgreSQL".to_owned(), "SQLite".to_owned()],
        free_text: true,
        ..Question::default()
    };
    TaskRow {
        says: question.text.clone(),
        question: Some(question),
        assignee: "critic".to_owned(),
        ..row(1, TaskKind::Question, "Store the figures of May")
    }
}

pub(super) fn group(rows: Vec<TaskRow>, total: Total) -> TaskGroup {
    TaskGroup { section: rows[0].kind.section(), rows, total }
}

pub(super) fn picture() -> Picture {
    let load = Load { cpu: Some(98), memory_bytes: Some(340 << 20), tokens: Some(12_345) };
    let running = TaskRow { load, ..row(3, TaskKind::Running, "Port the parser to the new grammar") };
    let idle = TaskRow { tenant: Some("acme".to_owned()), ..row(4, TaskKind::Running, "Wait for the build") };
    let ready = TaskRow {
        says: "waits for a slot: 2 of 2 are taken".to_owned(),
        priority: 5,
        ..row(5, TaskKind::Ready, "Read the logs of the night")
    };
    Picture {
        board: "default".to_owned(),
        daemon: Some(DaemonFacts {
            version: "1.2.3".to_owned(),
            uptime: Duration::from_mins(125),
            taken: 2,
            slots: 2,
            paused: None,
        }),
        troubles: Vec::new(),
        groups: vec![
            group(vec![question(), row(2, TaskKind::Review, "Draft the release notes")], Total::Exactly(2)),
            group(vec![running, idle], Total::Exactly(2)),
            group(vec![ready], Total::Exactly(9950)),
            group(vec![row(6, TaskKind::Done, "Tidy the attic")], Total::Exactly(1)),
        ],
    }
}

pub(super) fn model() -> TopModel {
    let mut model = TopModel::default();
    model.update(TopMessage::Picture(Box::new(picture())));
    model
}

fn screen(model: &TopModel, look: ColourUse, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(model, look, frame.area(), frame.buffer_mut())).unwrap();
    terminal.backend().clone()
}

/// Returns the lines of a screen, without trailing spaces.
pub(super) fn text(model: &TopModel, width: u16, height: u16) -> String {
    let screen = screen(model, ColourUse::Plain, width, height).to_string();
    let lines = screen.lines().map(|line| line.trim_matches('"').trim_end());
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn press(model: &mut TopModel, keys: &str) -> Vec<TopAction> {
    let keys = keys.chars().map(|key| match key {
        '\n' => Key::Enter,
        '\x1b' => Key::Escape,
        other => Key::Char(other),
    });
    keys.flat_map(|key| model.update(TopMessage::Key(key))).collect()
}

fn logged(text: &str) -> TopMessage {
    let (task, run) = (id(3), Some(RunId(7)));
    TopMessage::Logged(LogPart { task, run, format: None, text: text.to_owned(), ended: false })
}

/// Returns a model in each mode, with hostile text in place of all text of others.
fn every_mode() -> Vec<TopModel> {
    let mut hostile = picture();
    for row in hostile.groups.iter_mut().flat_map(|group| &mut group.rows) {
        (row.title, row.says, row.assignee) = (HOSTILE.to_owned(), HOSTILE.to_owned(), HOSTILE.to_owned());
        row.tenant = Some(HOSTILE.to_owned());
        row.details = vec![("body", HOSTILE.to_owned())];
        if let Some(question) = &mut row.question {
            (question.text, question.choices) = (HOSTILE.to_owned(), vec![HOSTILE.to_owned()]);
        }
    }
    hostile.troubles = vec![HOSTILE.to_owned()];
    let with = |keys: &str| {
        let mut model = TopModel::default();
        model.update(TopMessage::Picture(Box::new(hostile.clone())));
        press(&mut model, keys);
        model
    };
    let mut all = ["", "?", "a", "a2x", "t", "/x", "c", "jA", "jAc"].map(with).to_vec();
    let mut approving = with("jA");
    approving.update(TopMessage::Facts { task: id(2), facts: vec![HOSTILE.to_owned()] });
    let mut peeking = with("jj\n");
    peeking.update(logged(HOSTILE));
    peeking.update(logged(&format!("{HOSTILE}\n")));
    let mut lost = with("");
    lost.update(TopMessage::Lost(HOSTILE.to_owned()));
    let mut refused = with("");
    refused.update(TopMessage::Acted(Err(HOSTILE.to_owned())));
    let mut done = with("");
    done.update(TopMessage::Acted(Ok(HOSTILE.to_owned())));
    all.extend([approving, peeking, lost, refused, done, TopModel::default()]);
    all
}

#[test]
fn eighty_columns_show_who_needs_a_person_first() {
    insta::assert_snapshot!(text(&model(), 80, 18), @r"
    ● supervisor 1.2.3  up 2h 5m  2 of 2 slots taken  board default
      2 need a person · 2 running · 9950 ready · 1 done
    NEEDS A PERSON (2)                 SINCE TITLE
    > t_00000001 question  critic       1m1s Store the figures o…  Which database s…
      t_00000002 review    shell        2m2s Draft the release notes

    RUNNING (2)                        SINCE   CPU     MEM TITLE
      t_00000003 running   shell        3m3s   98%  340MiB Port the parser to the n…
      t_00000004 running   shell        4m4s     -       - Wait for the build

    READY (9950)                       SINCE TITLE
      t_00000005 ready     shell        5m5s Read the logs of th…  waits for a slot…
      … and 9949 more

    DONE (1)                           SINCE TITLE
      t_00000006 done      shell        6m6s Tidy the attic

     Enter log  a answer  c cancel  t tenant  / search  ? help  q quit
    ");
}

#[test]
fn more_columns_show_tenants_and_reasons() {
    insta::assert_snapshot!(text(&model(), 120, 18), @r"
    ● supervisor 1.2.3  up 2h 5m  2 of 2 slots taken  board default
      2 need a person · 2 running · 9950 ready · 1 done
    NEEDS A PERSON (2)                            SINCE PRIO TITLE
    > t_00000001 question  critic     -            1m1s    0 Store the figures of May  Which database should hold the figur…
      t_00000002 review    shell      -            2m2s    0 Draft the release notes

    RUNNING (2)                                   SINCE PRIO   CPU     MEM TOKENS TITLE
      t_00000003 running   shell      -            3m3s    0   98%  340MiB    12k Port the parser to the new grammar
      t_00000004 running   shell      acme         4m4s    0     -       -      - Wait for the build

    READY (9950)                                  SINCE PRIO TITLE
      t_00000005 ready     shell      -            5m5s    5 Read the logs of the night  waits for a slot: 2 of 2 are taken
      … and 9949 more

    DONE (1)                                      SINCE PRIO TITLE
      t_00000006 done      shell      -            6m6s    0 Tidy the attic

     Enter log  a answer  c cancel  t tenant  / search  ? help  q quit
    ");
}

#[test]
fn a_wide_screen_describes_the_task_with_the_mark_beside_the_list() {
    insta::assert_snapshot!(text(&model(), 200, 18), @r"
    ● supervisor 1.2.3  up 2h 5m  2 of 2 slots taken  board default
      2 need a person · 2 running · 9950 ready · 1 done
    NEEDS A PERSON (2)                            SINCE PRIO TITLE                                                          │ Store the figures of May
    > t_00000001 question  critic     -            1m1s    0 Store the figures of May  Which database should hold the figur…│ t_00000001  question  critic
      t_00000002 review    shell      -            2m2s    0 Draft the release notes                                        │
                                                                                                                            │ Which database should hold the figures?
    RUNNING (2)                                   SINCE PRIO   CPU     MEM TOKENS TITLE                                     │   1. PostgreSQL
      t_00000003 running   shell      -            3m3s    0   98%  340MiB    12k Port the parser to the new grammar        │   2. SQLite
      t_00000004 running   shell      acme         4m4s    0     -       -      - Wait for the build                        │
                                                                                                                            │ body
    READY (9950)                                  SINCE PRIO TITLE                                                          │   first line
      t_00000005 ready     shell      -            5m5s    5 Read the logs of the night  waits for a slot: 2 of 2 are taken │   second line
      … and 9949 more                                                                                                       │
                                                                                                                            │
    DONE (1)                                      SINCE PRIO TITLE                                                          │
      t_00000006 done      shell      -            6m6s    0 Tidy the attic                                                 │

     Enter log  a answer  c cancel  t tenant  / search  ? help  q quit
    ");
}

#[test]
fn a_question_is_shown_with_its_choices_and_answered_by_a_number_in_words() {
    let mut model = model();
    assert_eq!(press(&mut model, "a"), []);
    insta::assert_snapshot!(text(&model, 80, 19), @r"
    ● supervisor 1.2.3  up 2h 5m  2 of 2 slots taken  board default
      2 need a person · 2 running · 9950 ready · 1 done
    NEEDS A PERSON (2)                 SINCE TITLE
    > t_00000001 question  critic       1m1s Store the figures o…  Which database s…
      t_00000002 review    shell        2m2s Draft the release notes
    ┌ Answer ──────────────────────────────────────────────────────────────────────┐
    │ t_00000001  Store the figures of May                                         │
    │                                                                              │
    │ Which database should hold the figures?                                      │
    │                                                                              │
    │ > 1. PostgreSQL                                                              │
    │   2. SQLite                                                                  │
    │   3. something else …                                                        │
    └──────────────────────────────────────────────────────────────────────────────┘
    DONE (1)                           SINCE TITLE
      t_00000006 done      shell        6m6s Tidy the attic


     1-9 Enter choose  j k move  Esc leave
    ");
    let answer = TopAction::Act(TaskVerb::Answer { task: id(1), answer: "SQLite".to_owned() });
    assert_eq!(press(&mut model, "2"), [answer]);
    assert_eq!(model.mode, ScreenMode::Browse);
}

#[test]
fn a_question_is_answered_by_the_mark_or_in_other_words_and_can_be_left() {
    let answered = |keys: &str| press(&mut model(), keys);
    let answer = |text: &str| TopAction::Act(TaskVerb::Answer { task: id(1), answer: text.to_owned() });
    assert_eq!(answered("a\n"), [answer("PostgreSQL")]);
    assert_eq!(answered("aj\n"), [answer("SQLite")]);
    assert_eq!(answered("ak\na file\n"), [answer("a file")]);
    assert_eq!(answered("a3a file\n"), [answer("a file")]);
    for left in ["a\x1b", "aq", "a9", "a3\n", "a3x\x1b"] {
        assert_eq!(answered(left), [], "{left:?}");
    }
    assert_eq!(answered("ja"), [], "a review asks nothing");
}

#[test]
fn work_is_approved_or_sent_back_and_only_what_waits_for_it() {
    let done = |keys: &str| press(&mut model(), keys);
    let changes = TaskVerb::RequestChanges { task: id(2), reason: "no tests".to_owned() };
    assert_eq!(done("jAy"), [TopAction::Find(id(2)), TopAction::Act(TaskVerb::Approve { task: id(2) })]);
    assert_eq!(done("jAcno tests\n"), [TopAction::Find(id(2)), TopAction::Act(changes)]);
    assert_eq!(done("jAc\n"), [TopAction::Find(id(2))], "without a reason");
    assert_eq!(done("jA\n"), [TopAction::Find(id(2))], "Enter decides nothing");
    assert_eq!(done("A"), [], "a question waits for no approval");
}

#[test]
fn a_task_is_cancelled_only_after_a_yes() {
    let done = |keys: &str| press(&mut model(), keys);
    assert_eq!(done("jjcy"), [TopAction::Act(TaskVerb::Cancel { task: id(3) })]);
    for left in ["jjc", "jjcn", "jjc\n", "jjc\x1b", "jjcx"] {
        assert_eq!(done(left), [], "{left:?}");
    }
    let mut moved = model();
    press(&mut moved, "jjc");
    moved.update(TopMessage::Picture(Box::new(Picture { groups: Vec::new(), ..picture() })));
    assert_eq!(
        press(&mut moved, "y"),
        [TopAction::Act(TaskVerb::Cancel { task: id(3) })],
        "the task that was named"
    );
}

#[test]
fn tasks_are_retried_and_get_another_priority() {
    let mut model = model();
    assert_eq!(press(&mut model, "jr"), [TopAction::Act(TaskVerb::Retry { task: id(2) })]);
    let priority = |priority| TopAction::Act(TaskVerb::Prioritize { task: id(5), priority });
    press(&mut model, "jjj");
    assert_eq!(press(&mut model, "+"), [priority(6)]);
    assert_eq!(press(&mut model, "-"), [priority(4)]);
}

#[test]
fn the_list_is_narrowed_by_tenant_and_text_and_widened_by_escape() {
    let mut model = model();
    let asked = |orders: Vec<TopAction>| match orders.as_slice() {
        [TopAction::Read(query)] => (query.tenant.as_ref().map(ToString::to_string), query.search.clone()),
        other => panic!("{other:?}"),
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(asked(press(&mut model, "tacme\n")), (some("acme"), None));
    assert_eq!(asked(press(&mut model, "/q c\n")), (some("acme"), some("q c")));
    assert!(text(&model, 120, 19).contains("tenant acme  search “q c”"));
    assert_eq!(asked(press(&mut model, "\x1b")), (some("acme"), None));
    assert_eq!(asked(press(&mut model, "\x1b")), (None, None));
    assert_eq!(press(&mut model, "\x1b"), []);
    assert_eq!(press(&mut model, "tno such!/\n"), []);
    assert!(text(&model, 120, 19).contains("refused: no such!/"));
}

#[test]
fn pasted_text_is_no_command() {
    let mut model = model();
    let paste = |model: &mut TopModel, text: &str| model.update(TopMessage::Pasted(text.to_owned()));
    assert_eq!(paste(&mut model, "jjcy\nq"), []);
    press(&mut model, "a3");
    paste(&mut model, "a\nfile\t2");
    let answer = TaskVerb::Answer { task: id(1), answer: "a file 2".to_owned() };
    assert_eq!(press(&mut model, "\n"), [TopAction::Act(answer)]);
}

#[test]
fn the_mark_stays_on_its_task_and_where_it_was_when_that_is_gone() {
    let mut model = model();
    press(&mut model, "jj");
    let mut next = picture();
    next.groups[1].rows.insert(0, row(9, TaskKind::Running, "new"));
    model.update(TopMessage::Picture(Box::new(next.clone())));
    assert_eq!(model.row().map(|row| row.id.clone()), Some(id(3)));
    next.groups[1].rows.remove(1);
    model.update(TopMessage::Picture(Box::new(next.clone())));
    assert_eq!(model.row().map(|row| row.id.clone()), Some(id(4)), "what has come to its place");
    next.groups.clear();
    model.update(TopMessage::Picture(Box::new(next)));
    assert_eq!(model.row(), None);
    assert_eq!(press(&mut model, "acrA+\nj"), []);
}

#[test]
fn only_pages_are_read_and_another_one_near_the_end() {
    let mut model = model();
    let mut next = picture();
    next.groups[2].rows = (100..150).map(|number| row(number, TaskKind::Ready, "one of many")).collect();
    model.update(TopMessage::Picture(Box::new(next)));
    assert!(text(&model, 80, 80).contains("… and 9900 more"));
    press(&mut model, "jjjj");
    let mut asked = 0;
    for _ in 0..1000 {
        asked += press(&mut model, "j").len();
        press(&mut model, "k");
        if asked == 0 {
            press(&mut model, "j");
        }
    }
    let section = TaskKind::Ready.section();
    assert_eq!(model.query.limit(section), 500, "{asked} pages");
}

#[test]
fn what_was_read_last_stays_while_the_connection_is_lost() {
    let mut model = model();
    model.update(TopMessage::Lost("no daemon answers".to_owned()));
    let lost = text(&model, 120, 19);
    assert!(lost.contains("connection lost, trying again"), "{lost}");
    assert!(lost.contains("Store the figures of May"), "{lost}");
    model.update(TopMessage::Picture(Box::new(picture())));
    assert!(!text(&model, 80, 19).contains("connection lost"));
    let offline = Picture { daemon: None, ..picture() };
    model.update(TopMessage::Picture(Box::new(offline)));
    assert!(text(&model, 80, 19).contains("no daemon is running"));
}

#[test]
fn the_log_of_a_task_fills_the_screen_and_is_followed() {
    let mut model = model();
    assert_eq!(press(&mut model, "jj\n"), [TopAction::Follow(id(3))]);
    model.update(logged("compiling\nlinking\nall tests pass, and this line is longer than eighty columns, so it goes on below\n"));
    model.update(TopMessage::Logged(LogPart {
        task: id(4),
        run: Some(RunId(8)),
        format: None,
        text: "of another task\n".to_owned(),
        ended: false,
    }));
    insta::assert_snapshot!(text(&model, 80, 12), @r"
    ● supervisor 1.2.3  up 2h 5m  2 of 2 slots taken  board default
      2 need a person · 2 running · 9950 ready · 1 done
     t_00000003  Port the parser to the new grammar ────────────────────────────────
    compiling
    linking
    all tests pass, and this line is longer than eighty columns, so it goes on below



    ────────────────────────────────────────────────────────────── run 7, following

     j k line  PgUp PgDn page  g start  G follow  q back
    ");
    press(&mut model, "kk");
    assert!(text(&model, 80, 12).contains("2 lines below"));
    assert_eq!(press(&mut model, "q"), [TopAction::Unfollow]);
    assert_eq!(model.mode, ScreenMode::Browse);
}

#[test]
fn the_help_names_the_keys() {
    let mut model = model();
    press(&mut model, "?");
    insta::assert_snapshot!(text(&model, 80, 24), @r"
    ● supervisor 1.2.3  up 2h 5m  2 of 2 slots taken  board default
      2 need a person · 2 running · 9950 ready · 1 done
    ┌ Help ────────────────────────────────────────────────────────────────────────┐
    │ j k arrows  move; g and G go to the ends, Tab to the next group              │
    │ Enter       the log of the latest run, as it is written                      │
    │ a           answer the question of a task                                    │
    │ A           approve, or send work back                                       │
    │ r           try the task again at once                                       │
    │ c           cancel the task; asks first                                      │
    │ + -         raise or lower the priority                                      │
    │ t           only the tasks of a tenant                                       │
    │ /           only tasks with a text in the title or the body                  │
    │ Esc         all tasks again                                                  │
    │ Ctrl-L      redraw the screen                                                │
    │ Ctrl-Z      stop; `fg` continues                                             │
    │ q Ctrl-C    quit                                                             │
    │                                                                              │
    │ SINCE       how long the task runs, or is in its state                       │
    │ CPU MEM     of all processes of a run; 100% is one processor                 │
    │ TOKENS      what the agent of a run was given and has made                   │
    └──────────────────────────────────────────────────────────────────────────────┘


     any key back
    ");
    press(&mut model, "x");
    assert_eq!(model.mode, ScreenMode::Browse);
}

#[test]
fn nothing_of_others_drives_a_terminal() {
    for model in every_mode() {
        for (width, height) in [(80, 24), (200, 50)] {
            let screen = screen(&model, ColourUse::Coloured, width, height);
            for cell in screen.buffer().content() {
                assert_eq!(base::terminal::printable(cell.symbol()), cell.symbol(), "{:?}", model.mode);
            }
        }
    }
}

#[test]
fn no_colour_means_none() {
    for model in every_mode() {
        let screen = screen(&model, ColourUse::Plain, 200, 50);
        for cell in screen.buffer().content() {
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset), "{:?}", model.mode);
        }
    }
}

#[test]
fn a_terminal_of_any_size_is_drawn_on() {
    for model in every_mode() {
        for width in (0..24).chain([79, 149, 150]) {
            for height in 0..10 {
                screen(&model, ColourUse::Coloured, width, height);
            }
        }
    }
}

#[test]
fn no_tasks_are_said_to_be_none() {
    let mut model = TopModel::default();
    model.update(TopMessage::Picture(Box::new(Picture { groups: Vec::new(), ..picture() })));
    assert!(text(&model, 100, 10).contains("No tasks. Create one with: supervisor create"));
    press(&mut model, "/x\n");
    model.update(TopMessage::Picture(Box::new(Picture { groups: Vec::new(), ..picture() })));
    assert!(text(&model, 100, 10).contains("No task matches; Esc shows all."));
}
