//! `roost run`: one command as a worker, from launch to exit code. Here: its arguments and what follows from the events;
//! the calls are in `run/session.rs`, what is said of a failure in `run/view.rs`.

mod session;
mod view;

use std::ffi::OsString;
use std::sync::mpsc::{self, Receiver, Sender};

use clap::Args;
use roost::proto::message::launch::{Allowance, Rest};
use roost::{Config, Error};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::commands::progress::Line;
use crate::commands::result::note_leftovers;
use crate::conf::Conf;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, note};
use crate::settings::SettingsArgs;
use crate::setup::Setup;
use crate::tasks::TaskArgs;

use session::{Done, Place, Plan};

/// Run a command as a worker: its answer on standard output, its exit code as ours
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost run -- ./job.sh\n  roost run --cap 2 --budget 500 -- examples/tally ~/src\n  \
    echo 'a task text' | roost run --task-file - --timeout 10m -- ./agent\n  \
    roost run --agent pi --model MODEL --task 'what to do'\n\n\
    It opens a tree for the command and closes it afterwards; inside a worker it launches a child in the same tree and waits \
    for it, and with --tree ID it does so in that tree (after `roost open`: --tree $ROOST_TREE). Either way it \
    hands on all descendants that are left, unless --descendants says how many.\n\
    Ctrl-C stops the tree, a second Ctrl-C leaves at once. Progress is for terminals alone; `roost watch` shows more. Settings that no \
    flag says come from the configuration (roost config explain).")]
pub struct RunArgs {
    #[command(flatten)]
    task: TaskArgs,
    #[command(flatten)]
    settings: SettingsArgs,
    /// No progress on the terminal
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments; with --agent further arguments of its program
    #[arg(value_name = "CMD", trailing_var_arg = true, required_unless_present = "agent")]
    command: Vec<OsString>,
}

/// What the threads of a run have to say to its main one.
enum Event {
    /// The connection speaks for a tree: this is how another one can.
    InTree(Config),
    /// The worker is accepted, under this name.
    Launched(String),
    Signal,
    /// The stop that a signal asked for was refused.
    NotStopped(Error),
    Ended(Box<Result<Done, Error>>),
}

impl RunArgs {
    /// The program and its arguments.
    #[cfg(test)]
    pub fn command(&self) -> &[OsString] {
        &self.command
    }

    /// Runs it.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let plan = self.plan(setup)?;
        let (tell, events) = mpsc::channel();
        signals(tell.clone())?;
        let owns_tree = matches!(plan.place, Place::NewTree(_));
        let worker_tell = tell.clone();
        std::thread::spawn(move || {
            let done = session::work(&plan, &worker_tell);
            send(&worker_tell, Event::Ended(Box::new(done)));
        });
        let follower =
            Follower { tell, owns_tree, line: Line::new(!out.json && !self.quiet), config: None, name: None, signals: 0, stopping: false };
        match follower.follow(&events)? {
            Some(done) => finish(&done, out),
            None => Ok(Exit::Interrupted),
        }
    }

    fn plan(&self, setup: &Setup) -> Result<Plan, Failure> {
        let member = setup.tree.is_some() || setup.in_worker()?;
        if member && let Some(flag) = self.settings.given() {
            let message = format!("{flag} is a setting of a new tree, and this command runs in a tree that is open already");
            return Err(Failure::usage(message, Some("`roost cap` changes the cap of a tree; its other settings are fixed")));
        }
        let conf = Conf::default();
        let place = match setup.tree {
            Some(tree) => Place::Attached(tree),
            None if member => Place::SameTree,
            None => Place::NewTree(self.settings.settings(conf.loaded()?)),
        };
        let config = setup.config()?;
        let config = if matches!(place, Place::NewTree(_)) { config.without_identity() } else { config };
        let task = self.task.task(&self.command, Allowance::Rest(Rest::Rest), &conf)?;
        Ok(Plan { config, place, task })
    }
}

/// Hands each Ctrl-C and TERM over as an event; from now on neither ends the process by itself.
fn signals(tell: Sender<Event>) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Error::io("cannot take signals"))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            send(&tell, Event::Signal);
        }
    });
    Ok(())
}

/// The receiver ends before its senders when the run is left early; nobody misses the rest.
fn send(tell: &Sender<Event>, event: Event) {
    tell.send(event).ok();
}

struct Follower {
    tell: Sender<Event>,
    owns_tree: bool,
    line: Line,
    config: Option<Config>,
    name: Option<String>,
    signals: u32,
    stopping: bool,
}

impl Follower {
    /// Until the worker has ended; `None` when a second signal came first.
    fn follow(mut self, events: &Receiver<Event>) -> Result<Option<Done>, Error> {
        while let Ok(event) = events.recv() {
            match event {
                Event::InTree(config) => {
                    if let Some(identity) = config.identity.as_ref().filter(|_| self.owns_tree) {
                        self.line.follow(config.clone(), identity.tree);
                    }
                    self.config = Some(config);
                }
                Event::Launched(name) => {
                    self.name = Some(name);
                    self.stop_if_asked();
                }
                Event::Signal => {
                    self.signals += 1;
                    if self.signals > 1 {
                        self.line.clear();
                        return Ok(None);
                    }
                    self.stop_if_asked();
                }
                Event::NotStopped(error) => note(&format!("roost: cannot stop it: {error} ({})", error.kind())),
                Event::Ended(done) => {
                    self.line.clear();
                    return done.map(Some);
                }
            }
        }
        Ok(None)
    }

    /// A signal before the launch was accepted waits for that: there is nothing to stop yet, and soon there would be.
    fn stop_if_asked(&mut self) {
        let (Some(config), Some(name)) = (&self.config, &self.name) else { return };
        if self.signals == 0 || self.stopping {
            return;
        }
        self.stopping = true;
        let (config, name, tell) = (config.clone(), name.clone(), self.tell.clone());
        let owns_tree = self.owns_tree;
        std::thread::spawn(move || {
            if let Err(error) = session::stop(config, owns_tree, name) {
                send(&tell, Event::NotStopped(error));
            }
        });
    }
}

fn finish(done: &Done, out: &mut Out) -> Result<Exit, Failure> {
    if out.json {
        out.json(&done.result)?;
    } else {
        out.copy(&mut roost::open_answer(&done.result)?, "the answer")?;
    }
    out.flush()?;
    note_leftovers(&done.result);
    view::failure(done);
    if let Some(error) = &done.not_closed {
        note(&format!("roost: the tree is still open: {error} ({})", error.kind()));
    }
    Ok(Exit::Own(done.result.end.outcome.exit_code()))
}
