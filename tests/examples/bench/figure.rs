//! What a row yields: figures, each with what it is measured against, its quotient, and its target.
//!
//! Numbers only: it knows neither how they were taken nor how they are shown.

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Seconds,
    PerSecond,
    Bytes,
}

/// What a quotient must be, in the median over the rounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
}

/// One line of the table. Every list has a number per round; both sides of a round were measured one right after the other.
#[derive(Clone, Debug)]
pub struct Figure {
    pub row: &'static str,
    pub what: String,
    pub unit: Unit,
    pub measured: Vec<f64>,
    /// The limit, and what it is in words. Empty where the target is a number of its own.
    pub limit: Vec<f64>,
    pub against: String,
    /// What is held against the target.
    pub quotients: Vec<f64>,
    pub target: Target,
}

impl Figure {
    /// Measured over limit, round by round.
    pub fn ratio(what: impl Into<String>, rounds: &[(f64, f64)], against: impl Into<String>, target: Target) -> Self {
        let (measured, limit) = rounds.iter().copied().unzip();
        let quotients = rounds.iter().map(|(measured, limit)| measured / limit).collect();
        Self { row: "", what: what.into(), unit: Unit::Seconds, measured, limit, against: against.into(), quotients, target }
    }

    /// A number that is its own target.
    pub fn alone(what: impl Into<String>, unit: Unit, measured: Vec<f64>, target: Target) -> Self {
        let quotients = measured.clone();
        Self { row: "", what: what.into(), unit, measured, limit: Vec::new(), against: String::new(), quotients, target }
    }

    /// In another unit than seconds.
    pub fn counted_in(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    pub fn is_met(&self) -> bool {
        let quotient = Summary::of(&self.quotients).median;
        match self.target {
            Target::AtMost(most) => quotient <= most,
            Target::AtLeast(least) => quotient >= least,
        }
    }
}

/// Some numbers in three.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Summary {
    pub fn of(numbers: &[f64]) -> Self {
        Self { least: quantile(numbers, 0.0), median: quantile(numbers, 0.5), most: quantile(numbers, 1.0) }
    }
}

/// The number below which this part of them lies; between two of them the mean by distance.
pub fn quantile(numbers: &[f64], part: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = part * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}
