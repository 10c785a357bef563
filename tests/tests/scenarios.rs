//! Scenarios with a name: those of `tests/scenarios/*.txt`, one test each, and those that need many workers.

use roost_tests::sim::table::{play, whole};

macro_rules! scenarios {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let played = play(include_str!(concat!("../scenarios/", stringify!($name), ".txt")));
            assert!(played.is_ok(), "{}", played.unwrap_err());
        }
    )*};
}

scenarios! {
    k1_k2_cap_one_chain k3_refuse_deadlock k8_cap_lowered k9_last_child_stopped k11_k12_k50_stop_of_parked k13_k14_k15_stop_rules
    k16_start_fails k19_k20_crashes k22_child_ends_while_parking k34_k36_budget_and_repeats k48_k49_interrupt parent_of_nothing
    foreign_control_matrix name_reuse pause_holds_no_return full_group_final_wakes
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
