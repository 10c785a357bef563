//! The queue in the second book-keeping: places, and who was passed over.

use roost_core::effect::Placed;
use roost_proto::id::WorkerId;

use super::super::Checked;
use super::Model;

impl Model {
    /// A start goes before everybody who is ready and whose group has room: so often and no more (I9).
    pub(super) fn passes_over(&mut self, worker: WorkerId) -> Checked {
        let Some(tree) = self.workers.get(&worker).map(|known| known.tree) else { return Ok(()) };
        let used =
            |group: u16| self.workers.values().filter(|known| known.tree == tree && known.slot && known.group == Some(group)).count();
        let caps = self.groups.get(&tree).cloned().unwrap_or_default();
        let bypass = self.bypasses.get(&tree).copied().unwrap_or_default();
        let full: Vec<bool> = (0..).zip(&caps).map(|(group, cap)| used(group) >= *cap as usize).collect();
        for (id, known) in self.workers.iter_mut().filter(|(_, known)| known.tree == tree) {
            let fits = known.group.is_none_or(|group| !full.get(usize::from(group)).copied().unwrap_or(false));
            if let Some(passed) = known.ready.as_mut().filter(|_| fits) {
                *passed += 1;
                if *passed > bypass {
                    return Err(format!("{id} was passed over by {passed} starts (I9)"));
                }
            }
        }
        Ok(())
    }

    /// The places of a receipt are those of the queue at its acceptance, without those of the same launch that started at once.
    pub(crate) fn places(&self, tasks: &[Placed]) -> Checked {
        let mut started = 0;
        for task in tasks {
            let Some(known) = self.workers.get(&task.worker) else {
                return Err(format!("a receipt of {}, whom nobody accepted", task.name));
            };
            let place = (!known.at_once).then_some(known.place - started);
            started += usize::from(known.at_once);
            if task.place.map(|place| place as usize) != place || task.name != known.name || task.reason.is_some() != place.is_some() {
                return Err(format!("a receipt says {task:?}, and the place is {place:?} (L1, I4)"));
            }
        }
        Ok(())
    }
}
