//! The benchmark: each row of `docs/performance.md`, as a quotient to a limit that is measured in the same run.
//!
//! `cargo run --release -p roost-tests --example bench` builds what it needs and measures everything; see `--help`. It knows Roost
//! through its programs, its socket, its files and `/proc`.

mod daemon;
mod figure;
mod journal;
mod limits;
mod machine;
mod plan;
mod played;
mod report;
mod rows;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use figure::Figure;
use plan::{Counts, Plan};
use report::Table;
use rows::ROWS;

const HELP: &str = "\
usage: bench [--quick] [--only ROW]... [--rounds N] [--dir DIR] [--csv FILE] [--svg FILE] [--write PAGE]

  --quick       small counts: shows that every row works, and measures nothing of worth
  --only ROW    only this row, more than once for several
  --rounds N    how often both sides of a row are measured in turn [default: 5, with --quick 1]; `nested` and `queue`, which take long,
                a third as often, `memory` and `journal`, which are no times, once
  --dir DIR     where state directories are made, on the file system to measure [default: /var/tmp]
  --csv FILE    writes the figures as CSV
  --svg FILE    writes a plot
  --write PAGE  writes the figures into this page, between its markers, with CSV and plot beside it

rows:";

struct Asked {
    is_quick: bool,
    only: Vec<String>,
    rounds: Option<usize>,
    below: PathBuf,
    csv: Option<PathBuf>,
    svg: Option<PathBuf>,
    page: Option<PathBuf>,
    words: String,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if played::play(&words) {
        return ExitCode::SUCCESS;
    }
    match asked(&words).and_then(|asked| bench(&asked)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn asked(words: &[String]) -> Result<Asked, String> {
    let help = || ROWS.iter().fold(HELP.to_owned(), |text, (name, _)| format!("{text} {name}"));
    let mut asked = Asked {
        is_quick: false,
        only: Vec::new(),
        rounds: None,
        below: "/var/tmp".into(),
        csv: None,
        svg: None,
        page: None,
        words: words.join(" "),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--quick" {
            asked.is_quick = true;
            continue;
        }
        let Some(value) = words.next() else { return Err(help()) };
        match word.as_str() {
            "--only" if ROWS.iter().any(|(name, _)| name == value) => asked.only.push(value.clone()),
            "--rounds" => asked.rounds = Some(value.parse().map_err(|_| help())?),
            "--dir" => asked.below = value.into(),
            "--csv" => asked.csv = Some(value.into()),
            "--svg" => asked.svg = Some(value.into()),
            "--write" => asked.page = Some(value.into()),
            _ => return Err(help()),
        }
    }
    Ok(asked)
}

fn bench(asked: &Asked) -> Result<(), String> {
    build()?;
    let machine = machine::machine(&asked.below);
    let (counts, rounds) = if asked.is_quick { (Counts::QUICK, 1) } else { (Counts::FULL, 5) };
    let plan = Plan { below: asked.below.clone(), rounds: asked.rounds.unwrap_or(rounds).max(1), counts };
    let mut figures: Vec<Figure> = Vec::new();
    for (name, measure) in ROWS {
        if asked.only.is_empty() || asked.only.iter().any(|only| only == name) {
            eprintln!("{name} ...");
            figures.extend(measure(&plan).into_iter().map(|figure| Figure { row: name, ..figure }));
        }
    }
    println!("{}", report::table(&figures, Table::Even));
    write(asked.csv.as_deref(), &report::csv(&figures))?;
    write(asked.svg.as_deref(), &report::svg(&figures))?;
    asked.page.as_deref().map_or(Ok(()), |page| write_page(page, asked, &plan, &machine, &figures))
}

/// The programs that are measured, as this one was built. Under `cargo run` alone: else they are there.
fn build() -> Result<(), String> {
    let Some(cargo) = std::env::var_os("CARGO") else { return Ok(()) };
    let mut command = Command::new(cargo);
    command.args(["build", "--locked", "--quiet", "-p", "roostd", "-p", "roost", "--bins"]);
    command.args((!cfg!(debug_assertions)).then_some("--release"));
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the programs to measure cannot be built".into()) }
}

fn write(file: Option<&Path>, text: &str) -> Result<(), String> {
    let Some(file) = file else { return Ok(()) };
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// The figures into a page, and what it links to beside it.
fn write_page(page: &Path, asked: &Asked, plan: &Plan, machine: &[(&str, String)], figures: &[Figure]) -> Result<(), String> {
    let failed = |why: String| format!("{}: {why}", page.display());
    let text = fs::read_to_string(page).map_err(|error| failed(error.to_string()))?;
    let (csv, svg) = (page.with_extension("csv"), page.with_extension("svg"));
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut said = format!("`bench {}`, version {}, {}.\n\n", asked.words, env!("CARGO_PKG_VERSION"), plan.rounds());
    for (part, what) in machine {
        writeln!(said, "* {part}: {what}").expect("a string takes it");
    }
    write!(
        said,
        "\n{}\n[As CSV]({}).\n\n![How far each is from its target]({})\n",
        report::table(figures, Table::Plain),
        name(&csv),
        name(&svg)
    )
    .expect("a string takes it");
    write(Some(&csv), &report::csv(figures))?;
    write(Some(&svg), &report::svg(figures))?;
    write(Some(page), &report::replace(&text, &said).map_err(failed)?)
}
