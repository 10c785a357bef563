//! What is kept of closed trees: by age, by number, on request. What nobody has read stays.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod bench;

use bench::{Bench, ROOT, TREE, refusal, settings};
use roost_core::broker::{Broker, Outcome as Stepped};
use roost_core::command::{Caller, Command, Open, Sweep};
use roost_core::effect::{Effect, Reply, Swept};
use roost_proto::id::{ExecutionId, Token, TreeId};

const OTHER: TreeId = TreeId(8);

/// One more tree.
fn open(bench: &mut Bench, tree: TreeId) -> Caller {
    let open = Open {
        tree,
        token: Token::new([3; 16]),
        request_id: tree.to_string(),
        key: Some("k".into()),
        ephemeral: false,
        settings: settings(),
    };
    let stepped = bench.ask(|call| Command::Open { call, open: Box::new(open) });
    assert_eq!(refusal(&stepped), None);
    Caller::Root(tree)
}

/// A worker of the root that ends, and whose end is read or not; then the tree is closed.
fn closes(bench: &mut Bench, root: Caller, name: &str, is_read: bool) -> ExecutionId {
    let worker = bench.launch(root, name);
    bench.exits(worker);
    if is_read {
        bench.waits(root, name, None);
    }
    let stepped = bench.ask(|call| Command::Close { call, caller: root, now: false });
    assert_eq!(refusal(&stepped), None);
    worker.execution
}

fn trees(bench: &Bench) -> Vec<TreeId> {
    bench.broker.state().trees.keys().copied().collect()
}

/// The next life of the broker, under another rule.
fn rule(bench: &mut Bench, rule: impl FnOnce(Broker) -> Broker) {
    bench.broker = rule(Broker::restore(bench.broker.state().clone(), None));
}

fn gc(bench: &mut Bench, sweep: Sweep) -> (Swept, Stepped) {
    let stepped = bench.ask(|call| Command::Gc { call, sweep: Box::new(sweep) });
    let found = stepped.effects.iter().find_map(|effect| {
        let Effect::Reply { reply: Reply::Swept(swept), .. } = effect else { return None };
        Some((**swept).clone())
    });
    (found.expect("an answer"), stepped)
}

#[test]
fn no_timer_drops_a_tree_with_an_unread_result_and_those_after_it_go_all_the_same() {
    let mut bench = Bench::new(4);
    closes(&mut bench, ROOT, "a", false);
    let other = open(&mut bench, OTHER);
    closes(&mut bench, other, "b", true);
    rule(&mut bench, |broker| broker.retaining(1_000));
    bench.pass(500);
    assert_eq!(trees(&bench), [TREE, OTHER]);
    let deadline = bench.broker.next_deadline().unwrap();
    bench.pass(deadline.0 - bench.now);
    // The first deadline is that of the tree that stays; it is not asked for again.
    let next = bench.broker.next_deadline();
    assert!(next.is_none_or(|next| next > deadline), "{next:?}");
    bench.pass(1_000);
    assert_eq!(trees(&bench), [TREE]);
    assert_eq!(bench.broker.next_deadline(), None);
    // Read, it goes when somebody looks again.
    bench.waits(ROOT, "a", None);
    assert_eq!(trees(&bench), [TREE]);
    rule(&mut bench, |broker| broker.retaining(1_000));
    bench.pass(1);
    assert_eq!(trees(&bench), []);
}

#[test]
fn a_tree_whose_time_runs_out_while_it_is_ending_goes_when_it_has_ended() {
    let mut bench = Bench::new(4);
    rule(&mut bench, |broker| broker.retaining(1_000));
    let worker = bench.launch(ROOT, "a");
    bench.ask(|call| Command::Close { call, caller: ROOT, now: true });
    bench.pass(2_000);
    assert_eq!(trees(&bench), [TREE]);
    bench.exits(worker);
    assert_eq!(trees(&bench), []);
}

#[test]
fn the_number_of_workers_drops_what_was_read_first() {
    let mut bench = Bench::new(4);
    closes(&mut bench, ROOT, "a", false);
    let other = open(&mut bench, OTHER);
    closes(&mut bench, other, "b", true);
    rule(&mut bench, |broker| broker.keeping(1));
    bench.pass(1);
    assert_eq!(trees(&bench), [TREE]);
    // It is a bound all the same.
    rule(&mut bench, |broker| broker.keeping(0));
    bench.pass(1);
    assert_eq!(trees(&bench), []);
}

#[test]
fn a_sweep_takes_what_is_old_and_read_and_a_dry_run_nothing() {
    let mut bench = Bench::new(4);
    closes(&mut bench, ROOT, "a", false);
    let other = open(&mut bench, OTHER);
    let execution = closes(&mut bench, other, "b", true);
    open(&mut bench, TreeId(9));
    bench.pass(1_000);
    let all = Sweep { older_than_ms: Some(0), sizes: [(execution, 70)].into(), ..Sweep::default() };
    let (swept, stepped) = gc(&mut bench, Sweep { dry_run: true, ..all.clone() });
    assert!(stepped.records.is_empty() && swept.dry_run && !swept.more);
    assert_eq!((swept.total, swept.workers, swept.bytes, swept.unread), (1, 1, 70, 1));
    assert_eq!((swept.trees[0].tree, swept.trees[0].key.as_deref(), swept.trees[0].bytes), (OTHER, Some("k"), 70));
    // Younger than asked, and by what retention says.
    for sweep in [Sweep { older_than_ms: Some(5_000), ..all.clone() }, Sweep::default()] {
        let (swept, _) = gc(&mut bench, sweep);
        assert_eq!((swept.total, swept.unread), (0, 0));
    }
    let (swept, stepped) = gc(&mut bench, all.clone());
    assert_eq!((swept.total, trees(&bench)), (1, vec![TREE, TreeId(9)]));
    assert!(stepped.effects.iter().any(|effect| matches!(effect, Effect::RemoveFiles { tree: OTHER, unread: false, .. })));
    assert_eq!(gc(&mut bench, all).0.total, 0);
}

#[test]
fn a_sweep_by_size_takes_the_oldest_until_the_rest_fits() {
    let mut bench = Bench::new(4);
    let mut sizes = std::collections::BTreeMap::new();
    for number in 10..14 {
        let root = open(&mut bench, TreeId(number));
        sizes.insert(closes(&mut bench, root, "a", number != 10), 100);
    }
    let sweep = |most| Sweep { bytes_max: Some(most), sizes: sizes.clone(), ..Sweep::default() };
    assert_eq!(gc(&mut bench, sweep(400)).0.total, 0);
    // The first one stays for its reader, and what it takes counts.
    let (swept, _) = gc(&mut bench, sweep(250));
    assert_eq!((swept.trees.iter().map(|tree| tree.tree.0).collect::<Vec<_>>(), swept.unread), (vec![11, 12], 1));
    assert_eq!(gc(&mut bench, sweep(0)).0.total, 1);
    assert_eq!(trees(&bench), [TREE, TreeId(10)]);
}
