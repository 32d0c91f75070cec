//! `--rates`: prices of GPUs, vCPUs and memory.

use std::collections::BTreeMap;
use std::path::Path;

use poolwright_catalog::UsdPerHour;
use poolwright_report::bill::{Method, Rates, Split};
use serde::Deserialize;
use serde_json::Value;

use crate::args::ReportFlags;
use crate::exit::Failure;
use crate::source;

/// The highest price per hour.
const MOST: u64 = 1_000_000_000_000;

/// The file. Amounts are numbers or text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the fields of the file name their unit")]
struct File {
    #[serde(default)]
    gpu_usd_per_hour: BTreeMap<String, Value>,
    cpu_usd_per_hour: Option<Value>,
    memory_gib_usd_per_hour: Option<Value>,
}

/// Returns how the flags split nodes.
pub fn split(flags: &ReportFlags) -> Result<Split, Failure> {
    let mut split = Split::by(flags.method);
    let takes_rates = matches!(flags.method, Method::Marginal | Method::RateCard);
    match &flags.rates {
        Some(_) if !takes_rates => {
            let message = format!(
                "--rates: the method {} needs no prices; remove it, or use --method rate-card",
                flags.method
            );
            return Err(Failure::bad_input(message));
        }
        None if flags.method == Method::RateCard => {
            let message = "--method rate-card: the prices are missing; name their file with --rates (docs/cli/report.md)";
            return Err(Failure::bad_input(message));
        }
        Some(path) => split.rates = read(path, flags.method)?,
        None => {}
    }
    if takes_rates {
        let catalogue = poolwright_catalog::builtin();
        let models = catalogue.types().values().filter_map(|kind| {
            let gpu = kind.gpu.as_ref()?;
            Some((kind.name.as_str().to_owned(), gpu.model.as_str().to_owned()))
        });
        split.models = models.collect();
    }
    Ok(split)
}

fn read(path: &Path, method: Method) -> Result<Rates, Failure> {
    let source = source::file(path).map_err(Failure::bad_input)?;
    parse(&source.text, method).map_err(|why| Failure::bad_input(format!("{}: {why}", source.name)))
}

fn parse(text: &str, method: Method) -> Result<Rates, String> {
    let file: File = serde_saphyr::from_str(text).map_err(|error| {
        format!(
            "{error}; write gpuUsdPerHour, cpuUsdPerHour and memoryGibUsdPerHour as in docs/cli/report.md"
        )
    })?;
    let mut rates = match method {
        // A rate card has what it says, and no more.
        Method::RateCard => Rates { gpus: BTreeMap::new(), cpu: 0, memory: 0 },
        _ => Rates::default(),
    };
    for (name, price) in &file.gpu_usd_per_hour {
        let price = amount(&format!("gpuUsdPerHour.{name}"), price)?;
        if rates.gpus.insert(name.to_lowercase(), price).is_some() {
            return Err(format!("gpuUsdPerHour.{name}: the same name has another price; keep one of them"));
        }
    }
    if let Some(price) = &file.cpu_usd_per_hour {
        rates.cpu = amount("cpuUsdPerHour", price)?;
    }
    if let Some(price) = &file.memory_gib_usd_per_hour {
        rates.memory = amount("memoryGibUsdPerHour", price)?;
    }
    Ok(rates)
}

/// Reads an amount of dollars per hour.
pub fn amount(field: &str, value: &Value) -> Result<u64, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(format!("{field}: it is no number; write such as 2.50")),
    };
    let price = text.parse::<UsdPerHour>().map_err(|why| format!("{field}: {why}; write such as 2.50"))?;
    let fits = price.micros() <= MOST;
    fits.then_some(price.micros()).ok_or_else(|| format!("{field}: it is above a million dollars; check it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_card_has_what_it_says_and_marginal_prices_have_defaults() {
        let text = "gpuUsdPerHour: {H100: 2.50, l4: '0.70'}\ncpuUsdPerHour: 0.01\n";
        let card = parse(text, Method::RateCard).unwrap();
        let gpus = [("h100".to_owned(), 2_500_000), ("l4".to_owned(), 700_000)].into();
        assert_eq!(card, Rates { gpus, cpu: 10_000, memory: 0 });
        assert_eq!(parse("{}", Method::Marginal), Ok(Rates::default()));
        for (text, told) in [
            ("gpus: {h100: 1}", "gpus"),
            ("gpuUsdPerHour: {h100: -1}", "gpuUsdPerHour.h100: `-1` is negative"),
            ("gpuUsdPerHour: {H100: 2.50, h100: 2.60}", "the same name has another price"),
            ("cpuUsdPerHour: cheap", "cpuUsdPerHour: `cheap` is not a decimal number"),
            ("cpuUsdPerHour: 99999999", "above a million"),
        ] {
            let said = parse(text, Method::RateCard).unwrap_err();
            assert!(said.contains(told), "{said}");
        }
    }
}
