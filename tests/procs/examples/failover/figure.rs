//! One figure as a line of the table.

/// Runs of one measurement, and what it should be.
pub(crate) struct Figure {
    name: String,
    unit: &'static str,
    runs: Vec<f64>,
    aim: Option<f64>,
    theirs: Option<f64>,
}

impl Figure {
    /// `runs` is not empty.
    pub(crate) fn new(name: impl Into<String>, unit: &'static str, mut runs: Vec<f64>) -> Self {
        runs.sort_by(f64::total_cmp);
        Self { name: name.into(), unit, runs, aim: None, theirs: None }
    }

    pub(crate) fn aim(self, aim: f64) -> Self {
        Self { aim: Some(aim), ..self }
    }

    pub(crate) fn theirs(self, theirs: f64) -> Self {
        Self { theirs: Some(theirs), ..self }
    }

    pub(crate) fn print(&self) {
        let Self { name, unit, runs, aim, theirs } = self;
        let (least, most) = (runs.first().copied().unwrap_or(f64::NAN), runs.last().copied().unwrap_or(f64::NAN));
        let median = runs.get(runs.len() / 2).copied().unwrap_or(f64::NAN);
        let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        let (ratio, aim, theirs) = (optional(aim.map(|aim| median / aim)), optional(*aim), optional(*theirs));
        println!("{name:<62} {median:>9.3} {least:>9.3} {most:>9.3} {unit:<3} {aim:>7} {ratio:>6} {theirs:>7}");
    }
}

/// The first line.
pub(crate) fn heading(runs: usize) {
    let name = format!("medians of {runs} runs");
    let [median, least, most, unit] = ["median", "least", "most", ""];
    println!("{name:<62} {median:>9} {least:>9} {most:>9} {unit:<3} {:>7} {:>6} {:>7}", "aim", "ratio", "theirs");
}
