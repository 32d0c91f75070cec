//! Flags of `poolwright job`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use jiff::SignedDuration;
use poolwright_catalog::UsdPerHour;

use super::number::whole;
use super::plan::duration;
use super::{CapacityChoice, ClusterFlags, InputFlags, PoolRules, PriceFlags};

/// The most hours that a job may take: ten years.
const MOST_HOURS: u64 = 87_600;

/// The word that is no GPU model, although users may take it for one.
const MIG: &str = "mig";

/// Flags of `job`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 priced, 1 failed, 2 bad usage or input.",
    after_long_help = "Examples:\n  \
        # What do 8 nodes with 8 H100s each cost for 40 hours?\n  \
        poolwright job 8x8xh100 --hours 40 --checkpoint 30m\n\n  \
        # Which GPU model is cheapest for this job, if it takes 6 hours on each?\n  \
        poolwright job job.yaml --hours 6 --compare l4,a100,h100\n\n\
        Exit codes: 0 priced, 1 failed, 2 bad usage or input."
)]
pub struct JobFlags {
    /// The job: its shape, such as 8xh100 or 8x8xh100, or a file with its manifest
    ///
    /// A shape is GPUSxMODEL, for one pod, or NODESxGPUSxMODEL, for so many pods with so many whole GPUs each. The pods request nothing
    /// else. A name with a dot or a slash is a file, and - is stdin.
    #[arg(value_name = "SHAPE|FILE", value_parser = asked)]
    pub job: Asked,

    /// The hours that the job takes without interruptions: 40 or 1.5
    #[arg(long, value_name = "HOURS", value_parser = hours, allow_negative_numbers = true)]
    pub hours: Duration,

    /// The time between checkpoints of the job (30m, 1h) [default: none, so an interrupted job starts over]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub checkpoint: Option<SignedDuration>,

    /// The time from an interruption until the job works again: the start of a node and of the job
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m")]
    pub restart: SignedDuration,

    /// Price the job on these GPU models, too: l4,a100
    ///
    /// For a file, on these instead of those that its pods ask for.
    #[arg(long, value_name = "MODEL", value_delimiter = ',', value_parser = model)]
    pub compare: Vec<String>,

    /// Instance types and prices: a CSV file, or `builtin` [default: builtin]
    ///
    /// Repeat the flag to combine catalogues; later ones override earlier ones, type by type.
    #[arg(long, value_name = "FILE|builtin")]
    pub catalogue: Vec<String>,

    /// Buy from this provider [default: the provider of the node class, else the first cloud in the catalogue]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// Use what you have paid for, too: reservations, savings plans, commitments (YAML or JSON)
    ///
    /// The format is in docs/cli/plan.md.
    #[arg(long, value_name = "FILE")]
    pub commitments: Option<PathBuf>,

    /// How to print the prices
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = JobFormat::Table)]
    pub output: JobFormat,
}

impl JobFlags {
    /// Returns the flags of a plan for the job, which may buy every capacity type.
    pub fn input(&self) -> InputFlags {
        let prices = PriceFlags { catalogue: self.catalogue.clone(), at_risk: UsdPerHour::ZERO };
        InputFlags {
            provider: self.provider.clone(),
            capacity_type: vec![CapacityChoice::Any],
            commitments: self.commitments.clone(),
            ..InputFlags::of(ClusterFlags::default(), prices, PoolRules::without_limit())
        }
    }
}

/// The job to price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Pods that are alike.
    Shape(Shape),
    /// A file with objects that make pods.
    File(PathBuf),
}

/// Pods that are alike and request whole GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of pods.
    pub pods: u32,
    /// The GPUs of each.
    pub gpus: u32,
    /// The model, in lower case.
    pub model: String,
}

impl fmt::Display for Shape {
    /// Writes the shape as a user does: `8x8xh100`, or `8xh100` for one pod.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pods, gpus, model } = self;
        f.pad(&if *pods == 1 { format!("{gpus}x{model}") } else { format!("{pods}x{gpus}x{model}") })
    }
}

/// How to print prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JobFormat {
    /// A table, one line for each row in a pipe or file
    Table,
    /// One document
    Json,
    /// One line for each way to run the job
    Csv,
    /// A page in one file, for a browser or for paper; it loads nothing
    Html,
}

impl fmt::Display for JobFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Html => "html",
        })
    }
}

/// Parses a shape or the name of a file.
fn asked(text: &str) -> Result<Asked, String> {
    let is_name = text.contains(['.', '/']);
    let Some((first, rest)) = number(text).filter(|_| !is_name) else {
        return Ok(Asked::File(PathBuf::from(text)));
    };
    let (pods, gpus, model) = match number(rest) {
        Some((second, model)) => (first, second, model),
        None => ("1", first, rest),
    };
    let is_model = model.starts_with(|one: char| one.is_ascii_alphabetic())
        && model.bytes().all(|one| one.is_ascii_alphanumeric() || one == b'-' || one == b'_');
    if !is_model {
        return Err("not a shape; write GPUSxMODEL, such as 8xh100, or NODESxGPUSxMODEL, such as 8x8xh100, \
                    or write ./ before the name of a file"
            .to_owned());
    }
    let pods = whole(1..=1_000_u32, 8)(pods).map_err(|why| format!("the number of nodes is {why}"))?;
    let gpus = whole(1..=1_000_u32, 8)(gpus).map_err(|why| format!("the number of GPUs is {why}"))?;
    Ok(Asked::Shape(Shape { pods, gpus, model: self::model(model)? }))
}

/// Splits a text at the `x` behind its first digits.
fn number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|one: char| !one.is_ascii_digit()).filter(|end| *end > 0)?;
    let rest = text[end..].strip_prefix(['x', 'X'])?;
    Some((&text[..end], rest))
}

/// Parses the name of a GPU model.
fn model(text: &str) -> Result<String, String> {
    let model = text.trim().to_lowercase();
    if model == MIG || model.starts_with("mig-") {
        return Err(
            "MIG instances are not supported: jobs are priced on whole GPUs; write a GPU model, or see \
                    `poolwright plan --sharing mig`"
                .to_owned(),
        );
    }
    Ok(model)
}

/// Parses hours above zero, by the thousandth.
fn hours(text: &str) -> Result<Duration, String> {
    let wrong = || "not a number of hours; write such as 40 or 1.5, with three decimals at most".to_owned();
    let (hours, thousandths) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    if !is_number(hours) || !is_number(thousandths) || thousandths.len() > 3 {
        return Err(wrong());
    }
    let thousandths: u64 = format!("{thousandths:0<3}").parse().map_err(|_| wrong())?;
    let hours = hours.parse::<u64>().ok().filter(|hours| *hours < MOST_HOURS);
    let hours =
        hours.ok_or_else(|| format!("too long; write less than {MOST_HOURS} hours, which are ten years"))?;
    match hours * 3_600_000 + thousandths * 3_600 {
        0 => Err("a job takes some time; write such as 40 or 1.5".to_owned()),
        millis => Ok(Duration::from_millis(millis)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(pods: u32, gpus: u32, model: &str) -> Asked {
        Asked::Shape(Shape { pods, gpus, model: model.to_owned() })
    }

    #[test]
    fn a_shape_is_told_from_the_name_of_a_file() {
        assert_eq!(asked("8x8xh100"), Ok(shape(8, 8, "h100")));
        assert_eq!(asked("8xH100"), Ok(shape(1, 8, "h100")));
        assert_eq!(asked("2x1xrtx-pro-4500"), Ok(shape(2, 1, "rtx-pro-4500")));
        for file in ["job.yaml", "8x8.yaml", "./8xh100", "jobs/8xh100", "-", "job", "xh100"] {
            assert_eq!(asked(file), Ok(Asked::File(PathBuf::from(file))), "{file}");
        }
        for (wrong, told) in [
            ("8x", "not a shape"),
            ("8x8", "not a shape"),
            ("8x8x8xh100", "not a shape"),
            ("0x8xh100", "number of nodes is too small"),
            ("8x0xh100", "number of GPUs is too small"),
            ("1001x8xh100", "number of nodes is too large"),
            ("8xmig", "MIG instances are not supported"),
        ] {
            let said = asked(wrong).expect_err(wrong);
            assert!(said.contains(told), "{wrong}: {said}");
        }
    }

    #[test]
    fn hours_are_decimal_and_above_zero() {
        assert_eq!(hours("40"), Ok(Duration::from_hours(40)));
        assert_eq!(hours("1.5"), Ok(Duration::from_mins(90)));
        assert_eq!(hours("0.001"), Ok(Duration::from_millis(3_600)));
        for (wrong, told) in [
            ("", "not a number"),
            ("-1", "not a number"),
            ("1h", "not a number"),
            ("1.", "not a number"),
            ("1.2345", "three decimals at most"),
            ("0", "takes some time"),
            ("87600", "too long"),
            ("99999999999999999999", "too long"),
        ] {
            let said = hours(wrong).expect_err(wrong);
            assert!(said.contains(told), "{wrong}: {said}");
        }
    }

    #[test]
    fn mig_is_no_model() {
        assert_eq!(model("L4"), Ok("l4".to_owned()));
        assert!(model("mig").expect_err("no model").contains("poolwright plan --sharing mig"));
    }
}
