//! What a sweep of closed trees has forgotten, as a message.

use roost_core::effect::{self, Swept};
use roost_proto::message::daemon::{DaemonGcReply, SweptTree};

/// With what the journal took before and takes now, which the core does not know.
pub fn swept(swept: Swept, journal: (u64, u64)) -> DaemonGcReply {
    let Swept { trees, total, workers, bytes, unread, more, dry_run: _ } = swept;
    DaemonGcReply {
        trees: trees.into_iter().map(tree).collect(),
        more,
        total: total as u64,
        workers: workers as u64,
        bytes,
        kept_unread: unread as u64,
        journal_bytes_before: journal.0,
        journal_bytes: journal.1,
    }
}

fn tree(tree: effect::SweptTree) -> SweptTree {
    let effect::SweptTree { tree, key, closed_at_ms, workers, bytes } = tree;
    SweptTree { tree, key, closed_at_ms, workers: workers as u64, bytes }
}
