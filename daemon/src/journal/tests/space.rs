//! A full disk: what does not fit is not in, and goes in once there is room.

use std::process::Command;

use super::*;

fn context(worker: u64, bytes: usize) -> Batch {
    Batch { contexts: vec![(WorkerId(worker), vec![7; bytes])], ..Batch::default() }
}

#[test]
fn a_file_at_its_limit_refuses_a_batch_whole_and_takes_it_later() {
    let dir = TempDir::new().unwrap();
    drop(open(dir.path()));
    let (journal, _) = Journal::open_with(dir.path(), &Options { pages_max: Some(60), ..options() }).unwrap();
    commit(&journal, Batch { specs: vec![(WorkerId(1), spec(""))], ..context(1, 100_000) });
    let asked = Batch { specs: vec![(WorkerId(2), spec("two"))], ..records(1..=3) };
    let too_much = Batch { contexts: vec![(WorkerId(2), vec![1; 200_000])], ..asked.clone() };
    let back = match wait(journal.commit(too_much.clone())) {
        Err(CommitError::NoSpace(batch)) => *batch,
        other => panic!("{other:?}"),
    };
    assert_eq!(back, too_much);
    // Nothing of it is in, and what fits goes in.
    assert_eq!(loaded(&journal, 2), Err(LoadError::NoSpec { worker: WorkerId(2) }));
    commit(&journal, asked);
    assert_eq!(loaded(&journal, 2).unwrap().spec, spec("two"));
    commit(&journal, Batch { forget: vec![WorkerId(1)], ..Batch::default() });
    commit(&journal, context(2, 90_000));
    drop(journal);
    assert_eq!(open(dir.path()).1.records, records(1..=3).records);
}

/// Forgets these workers, and asks for the room.
fn sweep(workers: std::ops::RangeInclusive<u64>) -> Batch {
    Batch { forget: workers.map(WorkerId).collect(), shrink: true, ..Batch::default() }
}

#[test]
fn what_is_forgotten_gives_its_room_back_and_the_rest_is_read_as_before() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    commit(&journal, Batch { specs: vec![(WorkerId(20), spec("twenty"))], ..records(1..=3) });
    (1..=20).for_each(|worker| drop(commit(&journal, context(worker, 100_000))));
    // A twentieth is not worth it.
    commit(&journal, sweep(1..=1));
    let before = journal.bytes();
    assert!(before > 2_000_000, "{before}");
    commit(&journal, sweep(2..=19));
    assert!(journal.bytes() < 300_000, "{}", journal.bytes());
    let kept = |journal: &Journal| loaded(journal, 20).unwrap();
    assert_eq!((kept(&journal).spec, kept(&journal).context), (spec("twenty"), Some(vec![7; 100_000])));
    commit(&journal, records(4..=5));
    drop(journal);
    let (journal, found) = open(dir.path());
    assert_eq!(found.records, records(1..=5).records);
    assert_eq!(kept(&journal).context, Some(vec![7; 100_000]));
}

#[test]
fn a_disk_without_room_for_a_smaller_file_breaks_nothing() {
    let Some(disk) = Small::mount(14 << 20) else { return };
    let dir = disk.0.path();
    let (journal, _) = open(dir);
    (1..=40).for_each(|worker| drop(commit(&journal, context(worker, 100_000))));
    // Begun anew its log is empty, so a second copy needs room.
    drop(journal);
    let (journal, _) = open(dir);
    let free = fs2::available_space(dir).unwrap();
    fs::write(dir.join("filler"), vec![0; usize::try_from(free).unwrap() - (400 << 10)]).unwrap();
    commit(&journal, sweep(1..=10));
    assert!(journal.bytes() > 4_000_000, "{}", journal.bytes());
    commit(&journal, records(1..=3));
    fs::remove_file(dir.join("filler")).unwrap();
    commit(&journal, sweep(11..=11));
    assert!(journal.bytes() < 3_200_000, "{}", journal.bytes());
    drop(journal);
    assert_eq!(open(dir).1.records, records(1..=3).records);
}

#[test]
fn the_ballast_takes_real_room_and_can_be_given_up_and_taken_again() {
    use std::os::unix::fs::MetadataExt;
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    let blocks = || fs::metadata(dir.path().join("ballast")).map(|it| it.blocks() * 512).ok();
    assert!(blocks().is_some_and(|bytes| bytes >= 4 << 20), "{:?}", blocks());
    assert!(journal.release_ballast());
    assert!(!journal.release_ballast());
    assert_eq!(blocks(), None);
    assert!(journal.restore_ballast());
    assert!(journal.restore_ballast());
    assert!(blocks().is_some_and(|bytes| bytes >= 4 << 20));
}

/// A small file system in memory. `None` where this test may not mount one.
struct Small(TempDir);

impl Small {
    fn mount(bytes: u64) -> Option<Small> {
        let dir = TempDir::new().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o"]).arg(format!("size={bytes}")).arg("tmpfs").arg(dir.path()).output();
        mounted.is_ok_and(|it| it.status.success()).then_some(Small(dir))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).output();
        assert!(std::thread::panicking() || unmounted.unwrap().status.success());
    }
}

#[test]
fn on_a_full_disk_the_ballast_makes_room_for_what_must_be_written() {
    let Some(disk) = Small::mount(18 << 20) else { return };
    let dir = disk.0.path();
    let (journal, begun) = open(dir);
    assert_eq!(begun.notes.len(), 1, "{:?}", begun.notes);
    fs::write(dir.join("filler"), vec![0; 8 << 20]).unwrap();
    assert!(journal.space_is_low() && dir.join("ballast").exists());
    let mut fitted = 0;
    let refused = loop {
        match wait(journal.commit(context(fitted, 100_000))) {
            Ok(_) => fitted += 1,
            Err(CommitError::NoSpace(batch)) => break *batch,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(fitted > 3, "{fitted}");
    // What a batch that did not fit has left in the log is room for smaller ones, until that is full too.
    let mut last = 0;
    let must_be_written = loop {
        match wait(journal.commit(records(last + 1..=last + 50))) {
            Ok(_) => last += 50,
            Err(CommitError::NoSpace(batch)) => break *batch,
            Err(error) => panic!("{error}"),
        }
    };
    // A crash now: what the failed batches have left in the log is neither read nor taken for damage.
    let crashed = TempDir::new().unwrap();
    for name in ["roost.db", "roost.db-wal"] {
        fs::copy(dir.join(name), crashed.path().join(name)).unwrap();
    }
    assert_eq!(open(crashed.path()).1.records, records(1..=last).records);

    assert!(journal.release_ballast());
    commit(&journal, must_be_written);
    commit(&journal, refused);
    last += 50;
    drop(journal);

    // Full again while nobody was there: it still opens, says that there is no ballast, and has lost nothing.
    fs::write(dir.join("more"), vec![0; 8 << 20]).unwrap_err();
    let (journal, found) = open(dir);
    assert_eq!(found.records, records(1..=last).records);
    assert!(found.notes.iter().any(|note| note.contains("no ballast")), "{:?}", found.notes);
    assert!(!journal.restore_ballast() && !dir.join("ballast").exists());
    fs::remove_file(dir.join("filler")).unwrap();
    assert!(journal.restore_ballast());
    commit(&journal, records(last + 1..=last + 1));
}

#[test]
fn a_damaged_journal_on_a_full_disk_is_refused_all_the_same() {
    let Some(disk) = Small::mount(1 << 20) else { return };
    let dir = disk.0.path();
    fs::write(dir.join("roost.db"), vec![1; 600_000]).unwrap();
    let error = refusal(dir);
    assert!(matches!(error, OpenError::Damaged { copy: DamageCopy::Failed(_), .. }), "{error}");
    assert_eq!(fs::read_dir(dir).unwrap().count(), 1);
    fs::write(dir.join("filler"), vec![1; 1 << 20]).unwrap_err();
    fs::remove_file(dir.join("roost.db")).unwrap();
    fs::write(dir.join("filler2"), vec![1; 1 << 20]).unwrap_err();
    let error = refusal(dir);
    assert!(matches!(error, OpenError::NoSpace { .. }), "{error}");
}
