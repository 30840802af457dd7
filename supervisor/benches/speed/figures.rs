//! Samples, and the table of their figures.

use std::fmt;
use std::time::Duration;

/// Durations of one measurement.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// Adds a sample.
    pub(crate) fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// Returns the smallest sample that is not exceeded by this percentage of the samples.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(at).copied().unwrap_or_default()
    }

    /// Returns the median.
    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// Formats the median and the 99th percentile for the table.
    pub(crate) fn brief(&self) -> String {
        format!("p50 {}, p99 {}", millis(self.median()), millis(self.percentile(99)))
    }
}

/// Formats a duration in milliseconds for the table.
pub(crate) fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

/// Returns a rate per second.
pub(crate) fn rate(count: usize, took: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / took.as_secs_f64()
}

/// Table of measured values and their targets.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<[String; 3]>);

impl Table {
    /// Adds a line.
    pub(crate) fn row(&mut self, what: &str, figure: impl Into<String>, target: &str) {
        self.0.push([what.to_owned(), figure.into(), target.to_owned()]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["measure", "figure", "target"].map(str::to_owned);
        let rows = || std::iter::once(&head).chain(&self.0);
        let width = |column: usize| rows().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let (first, second) = (width(0), width(1));
        for [what, figure, target] in rows() {
            let line = format!("{what:first$}  {figure:second$}  {target}");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
