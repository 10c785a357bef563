//! Scenarios with a name: those of `tests/scenarios/*.txt`, one test each, and those that need many workers.

use roost_tests::sim::table::{play, whole};

macro_rules! scenarios {
    ($($name:ident)*) => {
        const PLAYED: &[&str] = &[$(concat!(stringify!($name), ".txt")),*];
        $(
        #[test]
        fn $name() {
            let played = play(include_str!(concat!("../scenarios/", stringify!($name), ".txt")));
            assert!(played.is_ok(), "{}", played.unwrap_err());
        }
    )*};
}

/// A file that nobody plays shows nothing.
#[test]
fn every_file_is_played() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios")).unwrap();
    let mut files: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let mut played = PLAYED.to_vec();
    files.sort_unstable();
    played.sort_unstable();
    assert_eq!(files, played);
}

scenarios! {
    k1_k2_cap_one_chain k3_refuse_deadlock k8_cap_lowered k9_last_child_stopped k11_k12_k50_stop_of_parked k13_k14_k15_stop_rules
    k16_start_fails k19_k20_crashes k22_child_ends_while_parking k34_k36_budget_and_repeats k48_k49_interrupt parent_of_nothing
    foreign_control_matrix name_reuse pause_holds_no_return full_group_final_wakes
    k4_unrelated_head old_acks k11_stop_while_parking k6_k7_early_wakes k21_orphans k35_budget_races k39_deadline_while_waiting k40_no_circle k41_every_end_arrives repeats_of_waits calls_of_the_gone settled_with_a_client other_call_goes_on two_timers stop_without_grace kept_leftovers early_wake_of_a_full_group hellos drain_and_back drain_called_off ephemeral_tree
    parked_in_a_call late_in_a_call words no_old_answer stopped_when_answered watchdogs notices earlier_ends ready_taken_back
    ancestor_gives_way_first final_wakes_in_order newest_wait_fails
}

/// Cap 1, fan-out 3, depth 3: all 39 workers finish; that no more than one is live is checked after every step.
#[test]
fn tree_wider_than_cap() {
    for (how, seed) in [("gather-wait", 1), ("gather-park", 2), ("gather-settle", 3)] {
        let ops = format!("launch 3, {how}");
        let mut plans: Vec<(String, &str)> = vec![("r0".into(), "open, launch 3, gather-wait")];
        for first in 20..23 {
            plans.push((format!("r0.{first}+12"), &ops));
            plans.extend((0..3).map(|second| (format!("r0.{first}.{second}+3"), ops.as_str())));
        }
        let plans: Vec<(&str, &str)> = plans.iter().map(|(name, ops)| (name.as_str(), *ops)).collect();
        assert_eq!(whole(&plans, 1, 39, seed).map(|(workers, _)| workers), Ok(39), "{how}");
    }
}

/// Every worker launches 5: it stops exactly at the budget.
#[test]
fn fanout_bomb() {
    let plans =
        [("r0", "open, launch 1, gather-wait"), ("r0.20+11", "launch 5, launch 5, launch 5, gather-wait"), ("*", "launch 5, gather-wait")];
    assert_eq!(whole(&plans, 2, 12, 1).map(|(workers, _)| workers), Ok(11));
}

/// 200 children of one lead end; its every gather knows each end once (checked by the world).
#[test]
fn fan_in_200() {
    let launches = ["launch 20"; 10].join(", ");
    for how in ["gather-wait", "gather-park", "gather-settle"] {
        let ops = format!("{launches}, {how}");
        let plans = [("r0", "open, launch 1, gather-wait"), ("r0.20+200", ops.as_str())];
        assert_eq!(whole(&plans, 4, 201, 1).map(|(workers, _)| workers), Ok(201), "{how}");
    }
}

/// A parked lead whose subtree has settled is passed over by so many starts and no more, however long the queue is.
#[test]
fn k5_bounded_bypass() {
    let names = |from: u64, to: u64| (from..=to).map(|n| format!(" a{n}")).collect::<String>();
    for (group, leads) in [("", "p+1"), (" group=1", "p@+1")] {
        let name = leads.split(['@', '+']).next().unwrap();
        let mut text = format!("tree cap=1 budget=200{group}\nroot launch {leads}\n{name} launch c\n{name} parks\n{name} exits 0\n");
        text += &format!("root launch{}\nroot launch{}\nc exits 0\nexpect a1=running p=wakeready\n", names(1, 20), names(21, 40));
        let passed = roost_proto::limits::WAKE_BYPASS;
        (1..passed).for_each(|n| text += &format!("a{n} exits 0\nexpect a{}=running p=wakeready\n", n + 1));
        text += &format!("a{passed} exits 0\nexpect p=running p-epoch=2 a{}=queued\n", passed + 1);
        let played = play(&text);
        assert!(played.is_ok(), "{}", played.unwrap_err());
    }
}

/// 200 children end within one millisecond, in an order of their own: the parked lead gets all ends in that order with one wake.
#[test]
fn fan_in_200_in_one_millisecond() {
    let mut text = "tree cap=300 budget=300\nroot launch p+200\n".to_owned();
    (0..10).for_each(|job| text += &format!("p launch{}\n", (0..20).map(|n| format!(" c{}", job * 20 + n)).collect::<String>()));
    text += "p parks\np exits 0\n";
    let order: Vec<u64> = (0..200).map(|n| n * 77 % 200).collect();
    order.iter().for_each(|n| text += &format!("c{n} exits 0\n"));
    text += "expect p=running p-epoch=2 p-owed=0 live=1\np waits timeout=0\ntold p\n";
    let played = play(&text);
    assert!(played.is_ok(), "{}", played.unwrap_err());
}

/// Two trees under a cap over all trees: one floods, and the other's first worker starts as soon as one slot was given back.
#[test]
fn flood_does_not_starve() {
    for cap in 1..=4 {
        let played = roost_tests::sim::table::flood(cap);
        assert_eq!(played, Ok(1), "cap {cap}: slots given back before the other tree's first worker had started");
    }
}
