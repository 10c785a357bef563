//! What a service manager sees of the broker: that its loop turns, and one line about its work.
//!
//! Without a manager there is nobody to tell, and no timer.

use std::time::Duration;

use roost_proto::link::{Manager, ToSupervisor};
use tokio::time::Instant;

use super::Driver;
use crate::link::SupervisorGone;

/// The line tells people, who read no faster.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// When to say what.
#[derive(Debug)]
pub(super) struct Heartbeat {
    beat: Option<(Duration, Instant)>,
    /// The last line, and when there may be another; `None` when nobody reads it.
    line: Option<(String, Instant)>,
    /// Whether something has happened since the last line.
    news: bool,
}

impl Heartbeat {
    pub fn new(manager: Option<Manager>, now: Instant) -> Self {
        let beat = manager.and_then(|manager| manager.beat_ms).map(|ms| (Duration::from_millis(ms.max(1)), now));
        Self { beat, line: manager.map(|_| (String::new(), now)), news: true }
    }

    /// Something has happened that the line may tell of.
    pub fn note(&mut self) {
        self.news = true;
    }

    /// When there is something to say, whatever else happens.
    pub fn next(&self) -> Option<Instant> {
        let line = self.line.as_ref().filter(|_| self.news).map(|(_, at)| *at);
        line.into_iter().chain(self.beat.map(|(_, at)| at)).min()
    }

    fn is_beat_due(&mut self, now: Instant) -> bool {
        let Some((every, at)) = &mut self.beat else { return false };
        let is_due = *at <= now;
        if is_due {
            *at = now + *every;
        }
        is_due
    }

    fn new_line(&mut self, now: Instant, text: impl FnOnce() -> String) -> Option<String> {
        let (last, at) = self.line.as_mut().filter(|(_, at)| self.news && *at <= now)?;
        self.news = false;
        *at = now + LINE_EVERY;
        let text = text();
        let is_new = text != *last;
        last.clone_from(&text);
        is_new.then_some(text)
    }
}

impl Driver {
    /// Once a turn, after its effects.
    pub(super) async fn beat(&mut self) -> Result<(), SupervisorGone> {
        let now = Instant::now();
        if self.heartbeat.is_beat_due(now) {
            self.link.send(&ToSupervisor::Alive).await?;
        }
        let (broker, connections) = (&self.broker, self.connections.len());
        let line = || {
            let state = broker.state();
            let (queued, parked) =
                state.open_trees().fold((0, 0), |(queued, parked), tree| (queued + tree.queued(), parked + tree.counts.parked));
            let (trees, live) = (state.open.len(), state.live);
            format!("trees {trees}, live {live}, queued {queued}, parked {parked}, connections {connections}")
        };
        if let Some(line) = self.heartbeat.new_line(now, line) {
            self.link.send(&ToSupervisor::Status { line }).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_beats_on_time_and_tells_news_no_more_than_once_a_second() {
        let start = Instant::now();
        let mut heart = Heartbeat::new(Some(Manager { beat_ms: Some(300) }), start);
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(heart.next(), Some(start));
        assert!(heart.is_beat_due(start) && !heart.is_beat_due(at(299)));
        assert_eq!(heart.new_line(start, || "a".into()), Some("a".into()));
        assert_eq!(heart.next(), Some(at(300)));
        heart.note();
        assert_eq!(heart.new_line(at(999), || unreachable!()), None);
        assert_eq!(heart.new_line(at(1_000), || "a".into()), None);
        assert!(heart.is_beat_due(at(1_000)));
        heart.note();
        assert_eq!(heart.next(), Some(at(1_300)));
        assert_eq!(heart.new_line(at(2_000), || "b".into()), Some("b".into()));
    }

    #[test]
    fn without_a_manager_it_is_silent() {
        let mut heart = Heartbeat::new(None, Instant::now());
        assert_eq!(heart.next(), None);
        assert!(!heart.is_beat_due(Instant::now()));
        assert_eq!(heart.new_line(Instant::now(), || unreachable!()), None);
    }
}
