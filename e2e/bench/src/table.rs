//! The table, as Markdown: two lines a row, zit first, with the ratio of the two.
//!
//! Pure: what is printed depends on the samples alone.

use std::time::Duration;

use clap::ValueEnum;

use crate::load::Sample;
use crate::options::{Row, SideName};

/// What was measured of one row, on each side that was.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The row.
    pub(crate) row: Row,
    /// Each side's sample, zit first.
    pub(crate) samples: Vec<(SideName, Sample)>,
}

/// The whole table; the generator's share is that of `n_cpus` processors.
pub(crate) fn table(rows: &[Measured], n_cpus: usize) -> String {
    let mut text = HEAD.to_owned();
    for measured in rows {
        let peer = measured.samples.iter().find(|(side, _)| *side == SideName::Peer);
        for (side, sample) in &measured.samples {
            let peer = peer.filter(|_| *side == SideName::Zit).map(|(_, sample)| sample);
            text.push_str(&line(measured.row, *side, sample, peer, n_cpus));
        }
    }
    text
}

const HEAD: &str = "\
| row | server | ops/s | p50 ms | p99 ms | lost/op | server CPU ms/op | client CPU ms/op | clients' share | ops/s ratio | CPU ratio |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";

fn line(row: Row, side: SideName, sample: &Sample, peer: Option<&Sample>, n_cpus: usize) -> String {
    let n = float(sample.latencies.len());
    let share = sample.client_cpu.as_secs_f64() / (sample.span.as_secs_f64() * float(n_cpus));
    let faster = peer.map(|peer| rate(sample) / rate(peer));
    let cheaper = peer.and_then(|peer| Some(server_cpu(peer)? / server_cpu(sample)?));
    let ratio = |ratio: Option<f64>| ratio.map_or_else(String::new, |ratio| number(ratio) + "x");
    let cells = [
        name(&row),
        name(&side),
        number(rate(sample)),
        number(millis(percentile(&sample.latencies, 50))),
        number(millis(percentile(&sample.latencies, 99))),
        number(float(sample.n_lost) / n),
        server_cpu(sample).map_or_else(|| "-".to_owned(), number),
        number(millis(sample.client_cpu) / n),
        format!("{:.0} %", share * 100.0),
        ratio(faster),
        ratio(cheaper),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn rate(sample: &Sample) -> f64 {
    float(sample.latencies.len()) / sample.span.as_secs_f64()
}

/// Milliseconds of the server's processor time per operation, if it is known.
fn server_cpu(sample: &Sample) -> Option<f64> {
    Some(millis(sample.server_cpu?) / float(sample.latencies.len()))
}

/// The smallest value that `percent` of `sorted` do not exceed; of few values the 99th percentile is the largest.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Three significant digits, and no exponent.
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value if value > 0.0 => format!("{value:.3}"),
        _ => "0".to_owned(),
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[allow(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn float(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: u64, server_ms: u64) -> Sample {
        Sample {
            span: Duration::from_secs(2),
            latencies: (1..=n).map(Duration::from_millis).collect(),
            n_lost: 100,
            server_cpu: Some(Duration::from_millis(server_ms)),
            client_cpu: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_row_compares_rate_and_processor_time_with_the_peers() {
        let samples = vec![(SideName::Zit, sample(200, 100)), (SideName::Peer, sample(100, 1000))];
        let text = table(&[Measured { row: Row::PushFiles, samples }], 2);
        let lines = text.lines().skip(2).collect::<Vec<_>>();
        assert_eq!(
            lines,
            [
                "| push-50 | zit | 100 | 100 | 198 | 0.500 | 0.500 | 5.00 | 25 % | 2.00x | 20.0x |",
                "| push-50 | peer | 50.0 | 50.0 | 99.0 | 1.00 | 10.0 | 10.0 | 25 % |  |  |",
            ]
        );
    }

    #[test]
    fn of_few_values_the_99th_percentile_is_the_largest() {
        let values = [1, 2, 3].map(Duration::from_secs);
        assert_eq!(percentile(&values, 99), Duration::from_secs(3));
        assert_eq!(percentile(&values, 50), Duration::from_secs(2));
        assert_eq!(percentile(&values[..1], 50), Duration::from_secs(1));
    }
}
