//! What a model has used, from the messages of its provider to cumulative reports: contract section 11.
//!
//! Providers repeat a message while it grows, say the same tool result in two shapes, and count cached tokens in two ways. Here
//! each message counts once, as it was last seen, and each cached token once. It knows no provider and sends nothing.

use std::collections::BTreeMap;

use roost_proto::usage::{USAGE_MAX, Usage, UsageReport, nano_dollars};

/// Counts what one process uses.
///
/// ```
/// use roost::{UsageMeter, cached_apart, cached_within};
///
/// let mut meter = UsageMeter::default();
/// // The same message while it grows: only the last snapshot counts.
/// for output in [1, 8, 20] {
///     meter.message("msg_1", cached_apart(100, output, 900, 50), Some(0.25));
/// }
/// // A provider whose prompt count contains the cached part, and no price.
/// meter.message("msg_2", cached_within(1_000, 900, 20), None);
/// let report = meter.report();
/// assert_eq!((report.sequence, report.usage.tokens()), (1, 1_070 + 1_020));
/// assert_eq!((report.usage.cost, report.usage.cost_unknown, report.usage.turns), (250_000_000, true, 2));
/// ```
#[derive(Debug, Clone, Default)]
pub struct UsageMeter {
    messages: BTreeMap<String, Usage>,
    tools: BTreeMap<String, Usage>,
    context_tokens: Option<u64>,
    sequence: u64,
    /// What the last report said: counters never go back.
    reported: Usage,
}

impl UsageMeter {
    /// A message of the model, as it stands now. The last snapshot of an id counts. No price, or one that is no amount of money,
    /// is an unknown one and not 0.
    pub fn message(&mut self, id: &str, usage: Usage, cost_usd: Option<f64>) {
        let usage = priced(usage, cost_usd);
        self.messages.insert(id.to_owned(), Usage { turns: usage.turns.max(1), ..usage });
    }

    /// A message of the model whose provider says nothing of its use: the total is known to be too low from now on.
    pub fn message_without_usage(&mut self, id: &str) {
        let unknown = Usage { turns: 1, cost_unknown: true, ..Usage::default() };
        self.messages.entry(id.to_owned()).or_insert(unknown);
    }

    /// A tool call, by its id; delegation counts as well.
    pub fn tool_call(&mut self, id: &str) {
        self.tools.entry(id.to_owned()).or_insert(Usage { tool_calls: 1, ..Usage::default() });
    }

    /// What a tool itself says that it used. It may come in several shapes of event: the call's id says that it is one.
    pub fn tool_result(&mut self, id: &str, usage: Usage, cost_usd: Option<f64>) {
        let usage = priced(usage, cost_usd);
        self.tools.insert(id.to_owned(), Usage { tool_calls: usage.tool_calls.max(1), ..usage });
    }

    /// How large the context is now.
    pub fn context(&mut self, tokens: u64) {
        self.context_tokens = Some(tokens.min(USAGE_MAX));
    }

    /// All that was used so far.
    pub fn total(&self) -> Usage {
        let now = self.messages.values().chain(self.tools.values()).fold(Usage::default(), |sum, usage| sum.with(*usage));
        at_least(now, self.reported)
    }

    /// A report with the next number.
    pub fn report(&mut self) -> UsageReport {
        self.sequence += 1;
        self.reported = self.total();
        UsageReport { sequence: self.sequence, usage: self.reported, context_tokens: self.context_tokens }
    }
}

/// Use of a message by a provider that counts cached tokens apart from the input.
pub fn cached_apart(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
    Usage { input, output, cache_read, cache_write, ..Usage::default() }
}

/// Use of a message by a provider whose prompt count contains the cached tokens.
pub fn cached_within(prompt: u64, cached: u64, completion: u64) -> Usage {
    let cache_read = cached.min(prompt);
    Usage { input: prompt - cache_read, output: completion, cache_read, ..Usage::default() }
}

fn priced(usage: Usage, cost_usd: Option<f64>) -> Usage {
    match cost_usd.and_then(nano_dollars) {
        Some(cost) => Usage { cost, ..usage },
        None => Usage { cost_unknown: true, ..usage },
    }
}

/// A snapshot that was corrected downwards after it was reported does not take the report back.
fn at_least(now: Usage, before: Usage) -> Usage {
    Usage {
        input: now.input.max(before.input),
        output: now.output.max(before.output),
        cache_read: now.cache_read.max(before.cache_read),
        cache_write: now.cache_write.max(before.cache_write),
        cost: now.cost.max(before.cost),
        cost_unknown: now.cost_unknown,
        turns: now.turns.max(before.turns),
        tool_calls: now.tool_calls.max(before.tool_calls),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four(usage: Usage) -> [u64; 4] {
        [usage.input, usage.cache_read, usage.cache_write, usage.output]
    }

    #[test]
    fn b24_cached_tokens_count_once_in_either_way_of_counting() {
        let mut meter = UsageMeter::default();
        meter.message("a", cached_apart(100, 20, 900, 50), Some(0.0));
        assert_eq!((four(meter.total()), meter.total().tokens()), ([100, 900, 50, 20], 1_070));
        let within = cached_within(1_000, 900, 20);
        assert_eq!((four(within), within.tokens()), ([100, 900, 0, 20], 1_020));
        // A provider that says more cached tokens than tokens.
        assert_eq!(cached_within(5, 9, 1).tokens(), 6);
    }

    #[test]
    fn b24_snapshots_and_doubled_events_count_once() {
        let mut meter = UsageMeter::default();
        for output in [1, 8, 20] {
            meter.message("a", cached_apart(100, output, 900, 50), Some(0.5));
        }
        assert_eq!((four(meter.total()), meter.total().turns, meter.total().cost), ([100, 900, 50, 20], 1, 500_000_000));
        for _shape in ["message_end", "tool_result_end"] {
            meter.tool_call("call_1");
            meter.tool_result("call_1", cached_apart(7, 0, 0, 0), Some(0.0));
        }
        assert_eq!((meter.total().input, meter.total().tool_calls), (107, 1));
    }

    #[test]
    fn b24_what_is_not_known_is_marked_and_never_zero_or_nonsense() {
        let mut meter = UsageMeter::default();
        meter.message("a", cached_apart(1, 1, 0, 0), Some(0.25));
        assert!(!meter.total().cost_unknown);
        meter.message_without_usage("b");
        let cost_null: Option<f64> = serde_json::from_str("null").unwrap();
        meter.message("c", cached_apart(1, 1, 0, 0), cost_null);
        let total = meter.total();
        assert_eq!((total.cost, total.cost_unknown, total.turns), (250_000_000, true, 3));
        for nonsense in [f64::NAN, f64::INFINITY, -0.01, 1e300] {
            assert_eq!(nano_dollars(nonsense), None);
        }
        // A later snapshot that knows it all makes it known again.
        let mut late = UsageMeter::default();
        late.message_without_usage("b");
        late.message("b", cached_apart(3, 4, 0, 0), Some(0.1));
        late.message_without_usage("b");
        assert_eq!((late.total().cost, late.total().cost_unknown, late.total().input), (100_000_000, false, 3));
    }

    #[test]
    fn reports_are_numbered_cumulative_and_never_go_back() {
        let mut meter = UsageMeter::default();
        meter.context(9_000);
        meter.message("a", cached_apart(10, 8, 0, 0), Some(0.0));
        let first = meter.report();
        meter.message("a", cached_apart(10, 5, 0, 0), Some(0.0));
        meter.message("b", cached_apart(1, 1, 0, 0), Some(0.0));
        meter.context(800);
        let second = meter.report();
        assert_eq!((first.sequence, first.usage.output, first.context_tokens), (1, 8, Some(9_000)));
        assert_eq!((second.sequence, second.usage.input, second.usage.output, second.context_tokens), (2, 11, 8, Some(800)));
    }

    #[test]
    fn sums_stop_at_what_json_can_carry() {
        let mut meter = UsageMeter::default();
        meter.message("a", cached_apart(USAGE_MAX, 0, 0, 0), Some(0.0));
        meter.message("b", cached_apart(USAGE_MAX, 0, 0, 0), Some(0.0));
        assert_eq!(meter.report().usage.input, USAGE_MAX);
    }
}
