//! The view on screens of several sizes, as text; what keys come to; what ten thousand workers cost.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use roost::Error;
use roost::proto::id::WorkerId;
use roost::proto::message::events::NumberedEvent;
use roost::proto::message::status::StatusReply;
use roost::proto::rpc::{ErrorData, ErrorKind, ErrorObject};
use roost::proto::usage::{Usage, UsageTotals};
use roost::rows::Rows;
use serde_json::{Value, json};

use super::calls::{Answer, Wish};
use super::draw::{Drawn, Paint, draw};
use super::feed::Feed;
use super::state::{Link, Mode, Order, View};
use super::tail::Piece;
use crate::failure::Failure;

const NOW_MS: u64 = 100_000;

fn worker(id: u64, lead: Option<u64>, name: &str, more: &Value) -> Value {
    let mut worker = json!({"name": name, "worker": format!("w{id}"), "execution": format!("x{id}"), "job": "j1", "task_index": 0, "depth": 1,
        "state": "running", "epoch": 1, "active_children": 0, "budget_remaining": 0, "accepted_at_ms": 0, "started_at_ms": 40_000,
        "stdout_paths": ["/s/x.out"], "stderr_paths": []});
    if let Some(lead) = lead {
        worker["lead"] = json!(format!("w{lead}"));
    }
    for (field, value) in more.as_object().unwrap() {
        worker[field] = value.clone();
    }
    worker
}

fn rows(cap: u32, workers: &[Value]) -> Rows {
    let tree = json!({"tree": "t7", "cap": cap, "live": 0, "queued": 0, "parked": 0, "blocked": 0, "finishing": 0, "completed": 4, "failed": 1,
        "stopped": 0, "paused": false, "key": "night", "group_caps": {"writers": 1}, "budget": 50, "budget_remaining": 9, "opened_at_ms": 10_000});
    let reply: StatusReply = serde_json::from_value(json!({"trees": [tree], "workers": workers})).unwrap();
    Rows::new(reply).unwrap()
}

/// A tree in which everybody waits for something else.
fn view() -> View {
    let queued = |more: Value| {
        let mut queued = json!({"state": "queued", "epoch": 0, "started_at_ms": null});
        more.as_object().unwrap().iter().for_each(|(field, value)| queued[field] = value.clone());
        queued
    };
    let ended = |outcome: Value| json!({"state": "ended", "outcome": outcome, "ended_at_ms": 50_500});
    let workers = [
        worker(1, None, "planner", &json!({"state": "parked"})),
        worker(2, Some(1), "reviewer", &json!({})),
        worker(3, Some(1), "writer 漢字", &queued(json!({"group": "writers"}))),
        worker(4, None, "job\u{1b}[2J", &json!({"state": "blocked", "pid": 77})),
        worker(5, Some(4), "scan", &json!({"group": "writers"})),
        worker(6, Some(4), "late", &queued(json!({}))),
        worker(7, None, "broken", &ended(json!({"status": "failed", "kind": "exit", "code": 3}))),
        worker(8, None, "good", &ended(json!({"status": "completed"}))),
    ];
    let usage = |input, cost| Usage { input, cost, ..Usage::default() };
    let totals = UsageTotals { own: usage(1_500, 20_000_000), total: usage(250_000, 1_250_000_000), ..UsageTotals::default() };
    let mut view = View::new(rows(2, &workers), totals, NOW_MS, (80, 24));
    let spent = UsageTotals { own: usage(12_000, 30_000_000), total: usage(248_000, 1_230_000_000), ..UsageTotals::default() };
    view.rows.set_usage_of(WorkerId(1), spent);
    view.begin();
    view
}

/// The screen as text; times of day depend on where one is.
fn screen(view: &mut View, width: u16, height: u16) -> (Vec<String>, Drawn) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut drawn = Drawn::default();
    terminal.draw(|frame| drawn = draw(view, Paint { colour: false }, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| {
        let mut skip = 0;
        let mut line = String::new();
        for x in 0..width {
            let symbol = buffer[(x, y)].symbol();
            assert!(!symbol.chars().any(char::is_control), "{symbol:?}");
            assert_eq!((buffer[(x, y)].fg, buffer[(x, y)].modifier), (Color::Reset, Modifier::empty()), "without colour");
            if skip == 0 {
                line.push_str(symbol);
                skip = super::text::cells(symbol);
            }
            skip = skip.saturating_sub(1);
        }
        line.split("accepted ").next().unwrap().trim_end().to_owned()
    };
    ((0..height).map(line).collect(), drawn)
}

fn press(view: &mut View, keys: &str) -> Vec<Order> {
    let key = |c| match c {
        '\n' => KeyCode::Enter,
        '\u{1b}' => KeyCode::Esc,
        '\t' => KeyCode::Tab,
        c => KeyCode::Char(c),
    };
    keys.chars().flat_map(|c| view.key(KeyEvent::new(key(c), KeyModifiers::NONE))).collect()
}

fn event(number: u64, word: &str, id: u64, more: &Value) -> NumberedEvent {
    let mut event = json!({"number": number, "at_ms": NOW_MS, "event": word, "name": format!("n{id}"), "worker": format!("w{id}"),
        "execution": format!("x{id}"), "job": "j1", "task_index": 0, "resume": false, "epoch": 1});
    more.as_object().unwrap().iter().for_each(|(field, value)| event[field] = value.clone());
    serde_json::from_value(event).unwrap()
}

fn refused() -> Failure {
    let data = ErrorData { kind: ErrorKind::Parked, hint: Some("wait until it is woken".into()) };
    Error::Refused(ErrorObject { code: -32_000, message: "`planner` is parked".into(), data }).into()
}

fn same(lines: &[String], expected: &str) {
    let expected: Vec<&str> = expected.trim_matches('\n').lines().collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(lines, expected, "\n{}", lines.join("\n"));
}

#[test]
fn a_screen_of_80_by_24() {
    let mut view = view();
    view.pane.take("reading\nwriting\n漢字".as_bytes());
    let (lines, drawn) = screen(&mut view, 80, 24);
    assert_eq!(drawn, Drawn { workers: 8, lines: 3 });
    same(&lines, SCREEN_80);
}

#[test]
fn a_screen_of_120_by_40() {
    let (lines, _) = screen(&mut view(), 120, 40);
    same(&lines[..11], SCREEN_120);
    // Tree and pane stand side by side where there is room for both.
    let (lines, _) = screen(&mut view(), 170, 24);
    assert!(lines[3].starts_with("> planner") && lines[2].contains("|-- planner  [1 output] 2 errors"), "{lines:?}");
}

#[test]
fn a_screen_of_40_by_10_shows_one_thing_at_a_time_and_a_smaller_one_says_so() {
    let mut view = view();
    same(&screen(&mut view, 40, 10).0, SCREEN_40);
    press(&mut view, "\t");
    same(&screen(&mut view, 40, 10).0, SCREEN_40_PANE);
    for (width, height) in [(39, 10), (40, 9), (24, 1), (1, 1)] {
        let (lines, drawn) = screen(&mut view, width, height);
        assert_eq!(drawn, Drawn::default());
        assert!(lines[0].starts_with("too small") || width < 10, "{lines:?}");
    }
    // Every size between is drawn, with every mode, and nothing panics.
    for keys in ["", "?", "/", "m", "s", "\n", "e"] {
        press(&mut view, keys);
        for width in (1..200).step_by(7) {
            (1..50).step_by(3).for_each(|height| drop(screen(&mut view, width, height)));
        }
        press(&mut view, "n\u{1b}");
        view.mode = Mode::Look;
    }
}

#[test]
fn words_are_kept_until_they_are_taken() {
    let mut view = view();
    assert!(press(&mut view, "mgo on").is_empty());
    view.paste(" and\r\non");
    let text = "go on and\non".to_owned();
    let expected = Order::Wish(Wish::Say(WorkerId(1), "planner".into(), text.clone()));
    assert_eq!(press(&mut view, "\n"), [expected]);
    view.answered(Answer::NotSaid(WorkerId(1), text.clone(), refused()));
    let (lines, _) = screen(&mut view, 80, 24);
    let said = lines[21..23].join(" ");
    assert!(said.contains("`planner` is parked (parked) | wait until it is woken | the words are kept: m"), "{said}");
    // They come back with the next `m`, and stay after Esc and with another worker selected in between.
    press(&mut view, "m!\u{1b}j");
    press(&mut view, "km");
    assert!(matches!(&view.mode, Mode::Write(WorkerId(1), editor) if editor.text() == format!("{text}!")), "{:?}", view.mode);
    press(&mut view, "\n");
    let reply = json!({"message": "m4", "sent": {"status": "steering", "execution": "x1"}});
    view.answered(Answer::Said(WorkerId(1), serde_json::from_value(reply).unwrap()));
    press(&mut view, "m");
    assert!(matches!(&view.mode, Mode::Write(_, editor) if editor.text().is_empty()));
    // Blank words are none.
    assert!(press(&mut view, "  \n").is_empty());
}

#[test]
fn a_stop_is_confirmed_and_what_is_not_ours_is_not_offered() {
    let mut view = view();
    press(&mut view, "s");
    let (lines, _) = screen(&mut view, 80, 24);
    assert_eq!(lines[22], "stop planner and 2 below it? y stops, n does not");
    assert!(press(&mut view, "n").is_empty());
    assert_eq!(press(&mut view, "sy"), [Order::Wish(Wish::Stop("planner".into()))]);
    // A child of another worker: no key for it, and its key says why.
    press(&mut view, "j");
    let (lines, _) = screen(&mut view, 80, 24);
    assert!(!lines[23].contains("message") && !lines[23].contains("stop"), "{}", lines[23]);
    assert!(press(&mut view, "sy").is_empty() && press(&mut view, "mx").is_empty());
    press(&mut view, "s");
    assert!(view.said.as_ref().unwrap().0.contains("only its lead, planner"), "{:?}", view.said);
    press(&mut view, "G");
    press(&mut view, "s");
    assert!(view.said.as_ref().unwrap().0.contains("has ended"), "{:?}", view.said);
    // Of a closed tree nothing is ours, and the view stays.
    view.feed(Feed::Events(vec![event(90, "closed", 0, &json!({}))]));
    press(&mut view, "g");
    press(&mut view, "m");
    let (lines, _) = screen(&mut view, 80, 24);
    assert!(lines[0].contains("CLOSED") && lines[22].contains("the tree is closed") && lines.len() == 24, "{lines:?}");
}

#[test]
fn names_are_searched_and_the_ended_are_hidden() {
    let mut view = view();
    let name = |view: &View| view.row().unwrap().name.clone();
    press(&mut view, "/WRI\n");
    assert_eq!(name(&view), "writer 漢字");
    press(&mut view, "/e\n");
    let found: Vec<String> = (0..5).map(|_| (press(&mut view, "n"), name(&view)).1).collect();
    assert_eq!(found, ["late", "broken", "planner", "reviewer", "writer 漢字"]);
    press(&mut view, "N/nobody\n");
    assert_eq!((name(&view).as_str(), view.said.as_ref().unwrap().1), ("reviewer", true));
    press(&mut view, "e");
    assert_eq!(screen(&mut view, 80, 24).1.workers, 6);
    // Whoever is looked at stays when it ends.
    view.feed(Feed::Events(vec![event(91, "ended", 2, &json!({"outcome": {"status": "completed"}}))]));
    assert_eq!((screen(&mut view, 80, 24).1.workers, name(&view).as_str()), (6, "reviewer"));
    press(&mut view, "k");
    view.feed(Feed::Events(vec![event(92, "ended", 5, &json!({"outcome": {"status": "stopped"}}))]));
    assert_eq!(screen(&mut view, 80, 24).1.workers, 4);
}

#[test]
fn what_is_followed_is_the_worker_that_is_selected() {
    let mut view = view();
    let details = |id: u64| serde_json::from_value(worker(id, None, "x", &json!({}))).unwrap();
    let orders = view.answered(Answer::Looked(Box::new(details(1))));
    let [Order::Follow(first, _)] = orders[..] else { panic!("{orders:?}") };
    let piece = |request, bytes: &str| Piece { request, cut: false, bytes: bytes.into(), error: None };
    view.piece(piece(first, "mine\n"));
    // An answer about somebody else changes nothing, and a piece that is on its way is not the next one's.
    assert!(view.answered(Answer::Looked(Box::new(details(2)))).is_empty());
    assert_eq!(press(&mut view, "j"), [Order::Wish(Wish::Look(WorkerId(2), "reviewer".into()))]);
    view.piece(piece(first, "late\n"));
    assert_eq!(screen(&mut view, 80, 24).1.lines, 0);
    let events = press(&mut view, "4");
    assert_eq!(events, [Order::History]);
    view.feed(Feed::Events(vec![event(90, "stopping", 2, &json!({}))]));
    view.feed(Feed::History(vec![event(7, "created", 2, &json!({}))]));
    let (lines, drawn) = screen(&mut view, 80, 24);
    assert_eq!(drawn.lines, 2);
    assert!(lines[15].starts_with("7 ") && lines[16].starts_with("90 "), "{lines:?}");
}

#[test]
fn how_the_connection_is_stands_on_the_screen() {
    let mut view = view();
    let mut shows = |feed: Feed, text: &str| {
        view.feed(feed);
        let (lines, _) = screen(&mut view, 80, 24);
        assert!(lines[21..23].join(" ").contains(text), "{text}: {lines:?}");
    };
    shows(Feed::Lost, "reconnecting");
    shows(Feed::NoDaemon(Error::NoDaemon { socket: "/s".into() }.into()), "no daemon listens on /s");
    shows(Feed::Back, "");
    shows(Feed::Over(refused()), "nothing more will come");
    assert_ne!(view.link, Link::Up);
}

/// Counted, not timed: what one event touches, and what one screen draws, does not grow with the tree.
#[test]
fn ten_thousand_workers_cost_no_more_per_event_and_screen_than_ten() {
    const MANY: u64 = 10_000;
    let queued = json!({"state": "queued", "epoch": 0, "started_at_ms": null});
    let workers: Vec<Value> = (1..=MANY).map(|id| worker(id, None, &format!("n{id}"), &queued)).collect();
    let mut view = View::new(rows(2, &workers), UsageTotals::default(), NOW_MS, (80, 24));
    view.begin();
    assert_eq!(screen(&mut view, 80, 24).1, Drawn { workers: 9, lines: 0 });
    let before = view.rows.touched();
    let mut number = 0;
    for id in 1..=MANY / 2 {
        let ended = json!({"outcome": {"status": "completed"}});
        let events = [("started", json!({})), ("running", json!({})), ("ended", ended)].map(|(word, more)| {
            number += 1;
            event(number, word, id, &more)
        });
        view.feed(Feed::Events(events.to_vec()));
    }
    assert_eq!(view.rows.touched() - before, number, "each event touches its own row alone");
    press(&mut view, "G");
    let (lines, drawn) = screen(&mut view, 80, 24);
    assert_eq!(drawn.workers, 9);
    assert!(lines[0].contains("queued 5000") && lines[11].starts_with("> n10000          queued 5000"), "{lines:?}");
    // A chain: an end touches its lead as well, and use all above it.
    let chain: Vec<Value> = (1..=MANY).map(|id| worker(id, (id > 1).then(|| id - 1), &format!("n{id}"), &json!({}))).collect();
    let mut view = View::new(rows(2, &chain), UsageTotals::default(), NOW_MS, (80, 24));
    view.feed(Feed::Events(vec![event(1, "ended", MANY, &json!({"outcome": {"status": "completed"}}))]));
    assert_eq!((view.rows.touched(), screen(&mut view, 80, 24).1.workers), (2, 9));
}

const SCREEN_80: &str = "
tree t7 (night)  [##] live 2/2  queued 2  parked 1  blocked 1
1m30s  done 1  failed 1  stopped 0  total 250k tokens $1.25  root 1500 tokens $…
  WORKER          STATE        WHY                         TIME TOKENS      COST
> planner         parked       waits for reviewer, wr…    1m00s   248k     $1.23
    reviewer      running                                 1m00s
    writer 漢字   queued 1     all 2 slots are taken
  job\\x1b[2J      blocked      waits for scan, late       1m00s
    scan          running                                 1m00s
    late          queued 2     all 2 slots are taken
  broken          failed       exit code 3                10.5s
  good            completed                               10.5s

-- planner  [1 output] 2 errors 3 conversation 4 events ------------------------
parked: waits for reviewer, writer 漢字  x1 of w1
own 12k tokens $0.0300  total 248k tokens $1.23  2 children, 2 active  accepted…
reading
writing
漢字





q quit  ? help  / search  1-4 pane  m message  s stop  e active only";

const SCREEN_120: &str = "
tree t7 (night)  [##] live 2/2  queued 2  parked 1  blocked 1
1m30s  done 1  failed 1  stopped 0  total 250k tokens $1.25  root 1500 tokens $0.0200
  WORKER                          STATE        WHY                                                 TIME TOKENS      COST
> planner                         parked       waits for reviewer, writer 漢字                    1m00s   248k     $1.23
    reviewer                      running                                                         1m00s
    writer 漢字                   queued 1     all 2 slots are taken
  job\\x1b[2J                      blocked      waits for scan, late                               1m00s
    scan                          running                                                         1m00s
    late                          queued 2     all 2 slots are taken
  broken                          failed       exit code 3                                        10.5s
  good                            completed                                                       10.5s";

const SCREEN_40: &str = "
live 2/2  queued 2  parked 1  blocked 1
1m30s  done 1  failed 1  stopped 0  tot…
  WORKER           STATE            TIME
> planner          parked          1m00s
    reviewer       running         1m00s
    writer 漢字    queued 1
  job\\x1b[2J       blocked         1m00s
    scan           running         1m00s

q quit  ? help  / search  1-4 pane  m m…";

const SCREEN_40_PANE: &str = "
live 2/2  queued 2  parked 1  blocked 1
1m30s  done 1  failed 1  stopped 0  tot…
>  planner  [1 output] -----------------
parked: waits for reviewer, writer 漢字…
own 12k tokens $0.0300  total 248k toke…
(it has written nothing yet)



q quit  ? help  / search  1-4 pane  m m…";
