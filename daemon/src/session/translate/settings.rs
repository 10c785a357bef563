//! The settings of a tree, between the wire's words and the core's.
//!
//! It does not know which values are allowed; the core does.

use roost_core::event;
use roost_proto::message::session::DeliveryMode;
use roost_proto::message::tree::{BlockedWait, InterruptScope, Join, Leftovers, OnParentFailure, Settings, Timing};

/// The settings of a tree as the core keeps them.
pub fn settings_in(settings: Settings) -> event::Settings {
    event::Settings {
        cap: settings.cap,
        budget: settings.budget,
        lend_slots: match settings.blocked_wait {
            BlockedWait::Lend => true,
            BlockedWait::Refuse => false,
        },
        end_leftovers: match settings.leftovers {
            Leftovers::End => true,
            Leftovers::Keep => false,
        },
        adopt_orphans: match settings.on_parent_failure {
            OnParentFailure::Adopt => true,
            OnParentFailure::Stop => false,
        },
        stop_grace_ms: settings.stop_grace_ms,
        depth_max: settings.depth_max,
        interrupt_scope: match settings.interrupt_scope {
            InterruptScope::All => event::InterruptScope::All,
            InterruptScope::Foreground => event::InterruptScope::Foreground,
            InterruptScope::None => event::InterruptScope::None,
        },
        // A map of this kind is in the order of its names.
        group_caps: settings.group_caps.into_iter().collect(),
        delivery: match settings.delivery {
            DeliveryMode::Steer => event::Delivery::Steer,
            DeliveryMode::FollowUp => event::Delivery::FollowUp,
            DeliveryMode::NextTurn => event::Delivery::NextTurn,
            DeliveryMode::Passive => event::Delivery::Passive,
        },
        join: match settings.join {
            Join::Async => event::Join::Async,
            Join::Group | Join::Smart => event::Join::Group,
        },
        timing: timing_in(settings.timing),
    }
}

/// And back.
pub fn settings_out(settings: event::Settings) -> Settings {
    Settings {
        cap: settings.cap,
        budget: settings.budget,
        blocked_wait: if settings.lend_slots { BlockedWait::Lend } else { BlockedWait::Refuse },
        leftovers: if settings.end_leftovers { Leftovers::End } else { Leftovers::Keep },
        on_parent_failure: if settings.adopt_orphans { OnParentFailure::Adopt } else { OnParentFailure::Stop },
        stop_grace_ms: settings.stop_grace_ms,
        depth_max: settings.depth_max,
        interrupt_scope: match settings.interrupt_scope {
            event::InterruptScope::All => InterruptScope::All,
            event::InterruptScope::Foreground => InterruptScope::Foreground,
            event::InterruptScope::None => InterruptScope::None,
        },
        group_caps: settings.group_caps.into_iter().collect(),
        delivery: delivery_out(settings.delivery),
        join: match settings.join {
            event::Join::Async => Join::Async,
            event::Join::Group => Join::Group,
        },
        timing: timing_out(settings.timing),
    }
}

/// How completions reach a lead's model, in the wire's words.
pub fn delivery_out(delivery: event::Delivery) -> DeliveryMode {
    match delivery {
        event::Delivery::Steer => DeliveryMode::Steer,
        event::Delivery::FollowUp => DeliveryMode::FollowUp,
        event::Delivery::NextTurn => DeliveryMode::NextTurn,
        event::Delivery::Passive => DeliveryMode::Passive,
    }
}

/// The times have the same names on both sides, so each is named once.
macro_rules! timing {
    ($($field:ident),* $(,)?) => {
        fn timing_in(Timing { $($field),* }: Timing) -> event::Timing {
            event::Timing { $($field),* }
        }

        fn timing_out(event::Timing { $($field),* }: event::Timing) -> Timing {
            Timing { $($field),* }
        }
    };
}

timing!(
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
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_as_they_went() {
        let odd = Settings {
            interrupt_scope: InterruptScope::Foreground,
            cap: 1,
            budget: 2,
            blocked_wait: BlockedWait::Refuse,
            leftovers: Leftovers::Keep,
            on_parent_failure: OnParentFailure::Adopt,
            stop_grace_ms: 3,
            depth_max: 4,
            delivery: DeliveryMode::Passive,
            join: Join::Group,
            group_caps: [("b".to_owned(), 1), ("a".to_owned(), 2)].into(),
            timing: Timing {
                settle_to_exit_ms: 5,
                leftovers_grace_ms: 6,
                start_retries: 7,
                start_retry_ms: 8,
                early_wake_dwell_ms: 9,
                wake_bypass: 10,
                park_deadline_ms: 11,
                park_again_ms: 12,
                startup_ms: 13,
                idle_ms: 14,
                hold_ms: 15,
                join_window_ms: 16,
                join_hold_ms: 17,
                join_straggler_ms: 18,
            },
        };
        for settings in [odd, Settings::default()] {
            let kept = settings_in(settings.clone());
            assert!(kept.group_caps.is_sorted());
            assert_eq!(settings_out(kept), settings);
        }
    }

    #[test]
    fn a_client_that_is_older_than_a_setting_gets_its_default() {
        let settings: Settings = serde_json::from_str(r#"{"cap":3,"timing":{"settle_to_exit_ms":0}}"#).unwrap();
        assert_eq!(settings.timing, Timing { settle_to_exit_ms: 0, ..Timing::default() });
        let settings: Settings = serde_json::from_str(r#"{"cap":3}"#).unwrap();
        assert_eq!(settings.timing, Timing::default());
    }
}
