//! Trees: opening, attaching, cap, pause, closing.

use roost_proto::id::TreeId;
use roost_proto::limits;

use crate::command::{CallId, Caller, Open};
use crate::effect::Reply;
use crate::event::{Event, Settings, Timing, TreeOpened};
use crate::lifecycle::bounds::{label, range, time};
use crate::lifecycle::{authority, close_out};
use crate::rejection::Rejection;
use crate::state::State;
use crate::state::tree::Tree;
use crate::step::Step;
use crate::view;

/// Opens a tree, or finds the open one of the same key or request.
pub fn open(step: &mut Step<'_>, call: CallId, open: Open) -> Result<(), Rejection> {
    label("the request id", &open.request_id)?;
    if let Some(key) = &open.key {
        label("the key", key)?;
    }
    check(&open.settings)?;
    let is_same = |tree: &&Tree| tree.request_id == open.request_id || (tree.key.is_some() && tree.key == open.key);
    let known = step.state.open_trees().find(is_same).map(|tree| opened(tree, false));
    if let Some(reply) = known {
        step.reply(call, reply);
        return Ok(());
    }
    if step.state.open.len() >= limits::TREES_OPEN_MAX {
        return Err(Rejection::Limit {
            what: "open trees",
            limit: limits::TREES_OPEN_MAX,
            next: "close some with `roost close --tree ID`; `roost status` outside of a tree lists them",
        });
    }
    if step.state.trees.contains_key(&open.tree) {
        // Two random ids of 64 bits were the same; the client may simply ask again.
        return Err(Rejection::Limit { what: "trees of one id", limit: 1, next: "open it again" });
    }
    let Open { tree, token, request_id, key, ephemeral, settings } = open;
    step.record(Event::TreeOpened(Box::new(TreeOpened { tree, token, request_id, key, ephemeral, settings })));
    if let Some(tree) = step.state.trees.get(&tree) {
        let reply = opened(tree, true);
        step.reply(call, reply);
    }
    Ok(())
}

/// Speaks as the root of an open tree. The daemon's user may; processes of one user are no boundary (`docs/security.md`).
pub fn attach(step: &mut Step<'_>, call: CallId, tree: TreeId) -> Result<(), Rejection> {
    let tree = step.state.tree(tree)?;
    let reply = opened(tree, false);
    step.reply(call, reply);
    Ok(())
}

/// Reads the cap, or sets it: only the root may.
pub fn cap(step: &mut Step<'_>, call: CallId, caller: Caller, cap: Option<u32>) -> Result<(), Rejection> {
    let (tree, _) = authority::asker(step.state, caller)?;
    if let Some(cap) = cap {
        let tree = open_root(step.state, caller, "change the cap")?;
        range("the cap", cap, 1, limits::CAP_MAX)?;
        step.record(Event::CapSet { tree, cap });
    }
    let counts = view::counts(step.state.tree(tree)?);
    step.reply(call, Reply::Cap(counts));
    Ok(())
}

/// Holds or releases admissions.
pub fn pause(step: &mut Step<'_>, call: CallId, caller: Caller, paused: bool) -> Result<(), Rejection> {
    let tree = open_root(step.state, caller, "pause or resume the tree")?;
    if step.state.tree(tree)?.paused != paused {
        step.record(Event::PauseSet { tree, paused });
    }
    step.reply(call, Reply::Paused(paused));
    Ok(())
}

/// Closes a tree: refuses while something is active, or stops it. Returns how many were stopped and the tree.
pub fn close(step: &mut Step<'_>, caller: Caller, now: bool) -> Result<(TreeId, Vec<roost_proto::id::WorkerId>), Rejection> {
    let tree = authority::root(step.state, caller, "close the tree")?;
    let active: Vec<_> = active_workers(step.state, tree);
    if !active.is_empty() && !now {
        return Err(Rejection::Active { active: u32::try_from(active.len()).unwrap_or(u32::MAX) });
    }
    if step.state.tree(tree)?.closed_at.is_none() {
        step.record(Event::TreeClosed { tree });
    }
    for child in step.state.active_children(tree, crate::event::Owner::Root) {
        close_out::end_subtree(step, child, crate::event::StopCause::Stop);
    }
    let active = active.into_iter().filter(|worker| step.state.workers.get(worker).is_some_and(|worker| !worker.has_ended())).collect();
    Ok((tree, active))
}

/// The workers of a tree that have not ended.
pub fn active_workers(state: &State, tree: TreeId) -> Vec<roost_proto::id::WorkerId> {
    let children = state.active_children(tree, crate::event::Owner::Root);
    children.iter().flat_map(|child| std::iter::once(*child).chain(state.active_below(*child))).collect()
}

/// The tree of a root that may still change it.
fn open_root(state: &State, caller: Caller, what: &'static str) -> Result<TreeId, Rejection> {
    let tree = authority::root(state, caller, what)?;
    if state.tree(tree)?.closed_at.is_some() { Err(Rejection::TreeClosed { tree }) } else { Ok(tree) }
}

fn opened(tree: &Tree, created: bool) -> Reply {
    Reply::Opened { tree: tree.id, token: tree.token, created, settings: tree.settings.clone() }
}

fn check(settings: &Settings) -> Result<(), Rejection> {
    range("the cap", settings.cap, 1, limits::CAP_MAX)?;
    range("the budget", settings.budget, 0, limits::BUDGET_MAX)?;
    range("the depth", settings.depth_max, 1, limits::DEPTH_MAX)?;
    time("stop_grace", settings.stop_grace_ms, limits::STOP_GRACE_MS_MAX)?;
    check_timing(&settings.timing)?;
    if settings.group_caps.len() > limits::GROUPS_MAX {
        return Err(Rejection::Limit { what: "groups with a cap", limit: limits::GROUPS_MAX, next: "leave some out" });
    }
    for (group, cap) in &settings.group_caps {
        label("the name of a group", group)?;
        range("the cap of a group", *cap, 1, limits::CAP_MAX)?;
    }
    Ok(())
}

fn check_timing(timing: &Timing) -> Result<(), Rejection> {
    let Timing {
        settle_to_exit_ms,
        leftovers_grace_ms,
        start_retries,
        start_retry_ms,
        early_wake_dwell_ms,
        wake_bypass,
        park_deadline_ms,
        park_again_ms,
        startup_ms,
        idle_ms,
        hold_ms,
        join_window_ms,
        join_hold_ms,
        join_straggler_ms,
    } = *timing;
    for (what, value) in [
        ("settle_to_exit", settle_to_exit_ms),
        ("leftovers_grace", leftovers_grace_ms),
        ("start_retry", start_retry_ms),
        ("early_wake_dwell", early_wake_dwell_ms),
        ("park_deadline", park_deadline_ms),
        ("park_again", park_again_ms),
        ("startup", startup_ms),
        ("idle", idle_ms),
        ("hold", hold_ms),
        ("join_window", join_window_ms),
        ("join_hold", join_hold_ms),
        ("join_straggler", join_straggler_ms),
    ] {
        time(what, value, limits::TIMING_MS_MAX)?;
    }
    range("start_retries", start_retries, 0, limits::START_RETRIES_MAX)?;
    range("wake_bypass", wake_bypass, 1, limits::WAKE_BYPASS_MAX)
}
