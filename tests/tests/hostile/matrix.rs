//! Scenario `foreign_control_matrix`: every (caller, target) pair of a small real tree, and of a stranger's. A worker that is not the
//! caller's own child is unknown to it, in the very words in which a name that never was is unknown; the audit log knows better.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

use roost_tests::real::{Fifo, Home, Tree, kind_of};
use serde_json::json;

/// Does what is written to its pipe, one command per line.
const OBEYS: &str = r#"echo up >"$F/ups"
while read -r line; do [ -z "$line" ] || { sh -c "$line" >"$F/out" 2>&1; echo done >"$F/dones"; }; done <"$F/pipe.NAME""#;

/// Name, lead, allowance. A root's name is that of its tree.
const WORKERS: [(&str, &str, u32); 6] =
    [("a", "root", 3), ("b", "root", 0), ("aa", "a", 1), ("ab", "a", 0), ("aaa", "aa", 0), ("s", "stranger", 0)];
const NEVER: &str = "never";
const VERBS: [&str; 3] = ["stop", "wait", "result --wait"];

struct Actors<'a> {
    home: &'a Home,
    trees: BTreeMap<&'static str, Tree<'a>>,
    ups: Fifo,
    dones: Fifo,
    /// Open at our end, so that no worker ever reads an end of file.
    _pipes: Vec<Fifo>,
}

impl<'a> Actors<'a> {
    fn new(home: &'a Home) -> Self {
        let trees = BTreeMap::from(["root", "stranger"].map(|name| (name, Tree::open(home, &[]))));
        let pipes = WORKERS.iter().map(|(name, _, _)| home.fifo(&format!("pipe.{name}"))).collect();
        for (name, _, _) in WORKERS {
            home.script(&format!("obeys.{name}"), &OBEYS.replace("NAME", name));
        }
        let mut actors = Self { home, trees, ups: home.fifo("ups"), dones: home.fifo("dones"), _pipes: pipes };
        for (name, lead, allowance) in WORKERS {
            let said = actors.asks(lead, &format!(r#"roost spawn --json --name {name} --descendants {allowance} -- sh "$F/obeys.{name}""#));
            assert!(said.contains("\"job\""), "{said}");
            assert_eq!(actors.ups.line(), "up");
        }
        actors
    }

    /// Has somebody run a line of shell, and returns what it wrote.
    fn asks(&mut self, caller: &str, line: &str) -> String {
        if let Some(tree) = self.trees.get(caller) {
            let done = tree.as_root(self.home.sh(line)).run();
            return done.text().to_owned() + &done.err();
        }
        let mut pipe = OpenOptions::new().write(true).open(self.home.file(&format!("pipe.{caller}"))).unwrap();
        pipe.write_all(format!("{line}\n").as_bytes()).unwrap();
        assert_eq!(self.dones.line(), "done");
        self.home.read("out")
    }
}

#[test]
fn foreign_control_matrix() {
    let home = Home::new();
    let mut actors = Actors::new(&home);
    let targets: Vec<&str> = WORKERS.iter().map(|(name, _, _)| *name).chain([NEVER]).collect();
    let mut callers: Vec<&str> = WORKERS.iter().map(|(name, _, _)| *name).collect();
    callers.extend(["root", "stranger"]);
    let mut refused = 0;
    for caller in callers {
        let foreign: Vec<&str> =
            targets.iter().copied().filter(|target| !WORKERS.iter().any(|(n, l, _)| n == target && *l == caller)).collect();
        let line: Vec<String> = VERBS
            .iter()
            .flat_map(|verb| foreign.iter().map(move |target| format!("roost {verb} {target} --json 2>&1 | tr '\\n' ' '; echo")))
            .collect();
        let said = actors.asks(caller, &line.join("; "));
        let answers: Vec<&str> = said.lines().collect();
        assert_eq!(answers.len(), line.len(), "{caller}: {said}");
        for (verb, answers) in VERBS.iter().zip(answers.chunks(foreign.len())) {
            let unknown = answers.last().unwrap();
            assert!(unknown.contains("unknown_worker") && unknown.contains("`never`"), "{caller} {verb}: {unknown}");
            for (target, answer) in foreign.iter().zip(answers) {
                assert_eq!(answer.replace(&format!("`{target}`"), "`never`"), **unknown, "{caller}: {verb} {target}");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 3 * (8 * 7 - 6));
    for (name, tree) in &actors.trees {
        let status = tree.status();
        let running = status["workers"].as_array().unwrap().iter().filter(|worker| worker["state"] == "running").count();
        assert_eq!(running, if *name == "root" { 5 } else { 1 }, "{status}");
    }
    let log = home.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(" audit: ")).collect();
    assert_eq!(lines.len(), refused, "{log}");
    let having = |words: &[&str]| lines.iter().filter(|line| words.iter().all(|word| line.contains(word))).count();
    // Every caller and verb tried one name that never was; the stranger's worker is elsewhere for six callers, and five are for two.
    assert_eq!(having(&["name=never", "exists=nowhere"]), 3 * 8);
    assert_eq!(having(&["exists=in another tree"]), 3 * (6 + 2 * 5));
    let root = &actors.trees["root"].id;
    assert_eq!(having(&[&format!("tree={root} "), "caller=root ", "verb=\"stop\"", "name=aaa ", "exists=w", ", of w"]), 1);
    assert_eq!(having(&["verb=\"wait\"", "name=b ", ", of the root"]), 5);
}

// An answer that took longer would say what its words do not. A ratio within one run: how busy the machine is does not matter to it.
#[test]
fn a_foreign_worker_is_no_slower_to_refuse_than_a_name_that_never_was() {
    let home = Home::new();
    let actors = Actors::new(&home);
    let mut wire = actors.trees["root"].wire();
    for method in ["stop", "result"] {
        let params = |name: &str| if method == "stop" { json!({"names": [name]}) } else { json!({"name": name, "wait": true}) };
        let mut took = [Vec::new(), Vec::new()];
        for _ in 0..200 {
            for (took, name) in took.iter_mut().zip([NEVER, "aaa"]) {
                let since = Instant::now();
                let error = wire.call(method, &params(name)).unwrap_err();
                took.push(since.elapsed());
                assert_eq!(kind_of(&error), "unknown_worker", "{error}");
            }
        }
        let [never, foreign] = took.map(|mut took| {
            took.sort();
            took[took.len() / 2]
        });
        assert!(never < foreign * 3 && foreign < never * 3, "{method}: {never:?} for what never was, {foreign:?} for a foreign one");
    }
}
