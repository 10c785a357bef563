//! `roost watch`: a tree on a terminal, as it changes. Here: its threads and the loop that brings their news to the view.
//!
//! ```text
//!   feed.rs   the tree: a snapshot, then its events       calls.rs  what is asked and done
//!   tail.rs   the files of the worker that is looked at   terminal.rs  takes the screen, gives it back
//!   state.rs, news.rs, keys.rs  what is known, what news and keys change (pure)   draw.rs  the view as cells (pure)
//! ```

mod calls;
mod conversation;
mod draw;
mod editor;
mod feed;
mod keys;
mod layout;
mod news;
mod pane;
mod state;
mod tail;
mod terminal;
mod text;
mod words;

#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::crossterm::event::{self, Event};
use roost::proto::id::TreeId;
use roost::proto::paths::Paths;
use roost::{Connection, Error};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, is_dumb};
use crate::setup::Setup;
use crate::values;

pub use feed::begin;

use draw::Paint;
use state::{Order, View, What};

/// How much news may wait for the screen. The stream of a tree that is faster is cut by the daemon and gone on with by number.
const NEWS_MAX: usize = 256;
const SECOND: Duration = Duration::from_secs(1);

/// Watch the tree live: who runs, who waits and why; follow, steer and stop workers
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost watch\n  roost watch --tree t123\n\n\
    It shows every worker below its lead with its state, its place in the queue and why it waits, and of the one that is selected its \
    output, conversation and events. Words (m) and stops (s) are for children of the root; `?` lists the keys, q leaves and touches \
    nothing. A tree that has ended stays on the screen. NO_COLOR and TERM=dumb are respected.")]
pub struct WatchArgs {}

/// What the threads tell.
enum News {
    Terminal(Event),
    /// Nothing more can be typed.
    TerminalOver(std::io::Error),
    /// A signal that ends the view.
    Signal,
    Feed(feed::Feed),
    Answer(calls::Answer),
    Piece(tail::Piece),
}

/// Where threads tell it.
#[derive(Clone)]
struct Tell(SyncSender<News>);

impl Tell {
    /// When the view is gone nobody misses it.
    fn tell(&self, news: News) {
        self.0.send(news).ok();
    }
}

impl WatchArgs {
    /// Watches until somebody leaves.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let next = Some("`roost status` shows the tree once, `roost events -f` prints what happens");
        if out.json {
            return Err(Failure::usage("what is watched live is no JSON", next));
        }
        if !out.is_terminal() || !std::io::stdin().is_terminal() {
            return Err(Failure::usage("standard input and output must be a terminal", next));
        }
        let (mut connection, tree) = looking(setup)?;
        let begun = feed::begin(&mut connection, tree)?;
        let (tell, news) = mpsc::sync_channel(NEWS_MAX);
        let tell = Tell(tell);
        let outside = Outside {
            setup: Setup { tree: Some(tree), ..setup.clone() },
            tree,
            before: begun.next,
            paths: connection.config().paths.clone(),
            calls: calls::Calls::start(setup.clone(), tree, looking(setup)?.0, tell.clone()),
            tail: tail::Tail::start(tell.clone())?,
            tell: tell.clone(),
        };
        feed::follow(connection, tree, begun.next, tell.clone());
        signals(tell.clone())?;
        let mut screen = terminal::Screen::take()?;
        input(tell);
        let size = screen.terminal.size().map(|size| (size.width, size.height)).unwrap_or(layout::SMALLEST);
        let view = View::new(begun.rows, begun.totals, values::now_ms(), size);
        outside.show(view, &mut screen, Paint { colour: out.colour() && !is_dumb() }, &news)
    }
}

/// A connection that looks, and the tree. The root's identity says which tree; looked at is it as by an operator, who may still when it
/// is closed.
fn looking(setup: &Setup) -> Result<(Connection, TreeId), Failure> {
    let config = setup.config()?;
    let identity = config.identity.clone();
    let tree = setup.tree.or(identity.as_ref().map(|identity| identity.tree)).ok_or_else(Failure::no_tree)?;
    let is_worker = identity.is_some_and(|identity| identity.worker.is_some());
    let mut connection = Connection::dial(if is_worker { config } else { config.without_identity() })?;
    connection.start_no_more();
    Ok((connection, tree))
}

fn signals(tell: Tell) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Error::io("cannot take signals"))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            tell.tell(News::Signal);
        }
    });
    Ok(())
}

fn input(tell: Tell) {
    std::thread::spawn(move || {
        loop {
            match event::read() {
                Ok(event) => tell.tell(News::Terminal(event)),
                Err(error) => return tell.tell(News::TerminalOver(error)),
            }
        }
    });
}

/// All that a view has done outside of itself.
struct Outside {
    setup: Setup,
    tree: TreeId,
    /// The number of the first event that the view is told.
    before: u64,
    paths: Paths,
    calls: calls::Calls,
    tail: tail::Tail,
    tell: Tell,
}

impl Outside {
    /// Draws after all news that are there; sleeps when there are none.
    fn show(&self, mut view: View, screen: &mut terminal::Screen, paint: Paint, news: &Receiver<News>) -> Result<Exit, Failure> {
        self.carry_out(view.begin());
        let mut second = Instant::now() + SECOND;
        loop {
            screen.terminal.draw(|frame| {
                draw::draw(&mut view, paint, frame);
            })?;
            let first = if view.ticks() {
                news.recv_timeout(second.saturating_duration_since(Instant::now()))
            } else {
                news.recv().map_err(RecvTimeoutError::from)
            };
            let mut next = match first {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Ok),
            };
            if Instant::now() >= second {
                second = Instant::now() + SECOND;
                self.carry_out(view.tick(values::now_ms()));
            }
            while let Some(one) = next {
                match self.take(&mut view, one)? {
                    Some(exit) => return Ok(exit),
                    None => next = news.try_recv().ok(),
                }
            }
        }
    }

    /// One piece of news; how it ends, if it does.
    fn take(&self, view: &mut View, news: News) -> Result<Option<Exit>, Failure> {
        let orders = match news {
            News::Terminal(Event::Key(key)) => view.key(key),
            News::Terminal(Event::Paste(text)) => {
                view.paste(&text);
                Vec::new()
            }
            // Whatever else it was, the screen is drawn anew.
            News::Terminal(Event::Resize(..) | Event::FocusGained | Event::FocusLost | Event::Mouse(_)) => Vec::new(),
            News::TerminalOver(error) => return Err(Failure::Output(error)),
            News::Signal => return Ok(Some(Exit::Interrupted)),
            News::Feed(feed) => view.feed(feed),
            News::Answer(answer) => view.answered(answer),
            News::Piece(piece) => {
                view.piece(piece);
                Vec::new()
            }
        };
        view.now_ms = values::now_ms();
        if orders.contains(&Order::Leave) {
            return Ok(Some(Exit::Ok));
        }
        self.carry_out(orders);
        Ok(None)
    }

    fn carry_out(&self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Leave => {}
                Order::Wish(wish) => self.calls.wish(wish),
                Order::Follow(number, What::Files(paths)) => self.tail.follow(number, paths.into_iter().map(PathBuf::from).collect()),
                Order::Follow(number, What::Transcript(execution)) => self.tail.follow(number, vec![self.paths.transcript(execution)]),
                Order::History => self.history(),
            }
        }
    }

    /// Without it the list of events begins with the view.
    fn history(&self) {
        let (setup, tree, before, tell) = (self.setup.clone(), self.tree, self.before, self.tell.clone());
        std::thread::spawn(move || {
            if let Ok((connection, _)) = looking(&setup) {
                feed::history(connection, tree, before, &tell);
            }
        });
    }
}
