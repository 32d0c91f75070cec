//! One row of a catalogue: an instance type and its offerings.

use std::time::Duration;

use csv::StringRecord;
use jiff::civil::Date;
use poolwright_terms::{CapacityType, labels};

use super::columns::{self as column, Columns};
use super::problem::CsvProblem;
use crate::instance::{Arch, Gpu, GpuModel, InstanceType, InstanceTypeName, ProviderName};
use crate::interruptions::Interruptions;
use crate::money::{MoneyError, UsdPerHour};
use crate::offering::{Offering, OfferingId, Zone};
use crate::price::{Price, PriceSource, UnknownPrice};
use crate::resources::{ResourceList, ResourceName};
use crate::sanity::{self, Claim};

/// The default local disk of a node: 17 GiB, the allocatable part of a 20 GiB root disk, which is the size on AWS unless
/// the image has another (Karpenter's figure for every type in its instance type reference, release 1.14). A value that
/// is too low is safer: a pod that requests more stays pending with a reason. With a value that is too high, Poolwright
/// would buy a node that the pod does not fit.
pub const DEFAULT_EPHEMERAL_STORAGE_MIB: u64 = 17 * 1024;

/// The provider of a type if the catalogue names none.
pub const UNSPECIFIED_PROVIDER: &str = "unspecified";

/// The most GPUs of one instance. The largest known have 72.
const MOST_GPUS: u64 = 1_024;

/// Kubernetes holds quantities in 63 bits.
const MOST: u64 = i64::MAX as u64;
const MOST_MIB: u64 = MOST >> 20;

/// One interruption per minute; a higher rate cannot be real.
const MOST_INTERRUPTIONS: u32 = 60_000_000;

/// A day; no cloud gives notice earlier.
const MOST_NOTICE_SECONDS: u64 = 86_400;

const LABEL_REMEDY: &str = "it becomes a node label: write at most 63 letters, digits, `-`, `_` and `.`, and begin and end with a letter or digit";

/// Reads the cells of one row and collects their problems.
pub(super) struct RowReader<'r, 'f> {
    pub(super) file: &'f str,
    pub(super) line: u64,
    pub(super) problems: Vec<CsvProblem>,
    columns: &'r Columns,
    record: &'r StringRecord,
}

impl<'r, 'f> RowReader<'r, 'f> {
    pub(super) fn new(file: &'f str, line: u64, columns: &'r Columns, record: &'r StringRecord) -> Self {
        Self { file, line, problems: Vec::new(), columns, record }
    }

    pub(super) fn problem(&mut self, column: &str, cause: String, remedy: impl Into<String>) {
        // A missing column is reported once, for the header.
        if self.columns.index(column).is_none() {
            return;
        }
        self.problems.push(CsvProblem::of_column(self.file, self.line, column, cause, remedy));
    }

    /// Returns the name of the type, if the row has one, even if other cells are wrong.
    pub(super) fn instance_type(&self) -> Option<InstanceTypeName> {
        let name = self.cell(column::INSTANCE_TYPE);
        (self.is_whole() && !name.is_empty()).then(|| InstanceTypeName::from(name))
    }

    /// Returns whether the row is about only one zone or one capacity type.
    pub(super) fn is_split(&self) -> bool {
        !self.cell(column::ZONE).is_empty() || !self.cell(column::CAPACITY_TYPE).is_empty()
    }

    /// Returns the type and its offerings; `None` when there are problems.
    pub(super) fn read(&mut self) -> Option<(InstanceType, Vec<Offering>)> {
        if !self.is_whole() {
            let cause =
                format!("the row has {} cells and the header {}", self.record.len(), self.columns.count());
            let remedy =
                "give every column a cell, empty where nothing is known; quote a cell that holds a comma";
            self.problems.push(CsvProblem::of_line(self.file, self.line, cause, remedy));
            return None;
        }
        let kind = self.kind();
        let zones = self.zones();
        let sold_as = self.sold_as();
        let available = match self.cell(column::AVAILABLE) {
            "" => None,
            _ => self.number(column::AVAILABLE, 0, u32::MAX.into()).map(|number| number as u32),
        };
        let interruptions = self.interruptions();
        let notice = match self.cell(column::NOTICE) {
            "" => None,
            _ => self.number(column::NOTICE, 1, MOST_NOTICE_SECONDS).map(Duration::from_secs),
        };
        let on_demand = self.price(column::ON_DEMAND, column::PRICE_SOURCE, column::PRICE_AS_OF);
        let spot = self.price(column::SPOT, column::SPOT_SOURCE, column::SPOT_AS_OF);
        if sold_as == Some(CapacityType::Spot) && self.cell(column::SPOT).is_empty() {
            let cause = "the row is a spot offering and has no spot price".to_owned();
            self.problem(column::CAPACITY_TYPE, cause, "give spot_usd_per_hour, or leave this cell empty");
        }
        if !self.problems.is_empty() {
            return None;
        }
        let (kind, on_demand) = (kind?, on_demand.unwrap_or(Price::Unknown(UnknownPrice::Missing)));
        let region = Some(self.cell(column::REGION)).filter(|region| !region.is_empty()).map(str::to_owned);
        let mut offerings = Vec::new();
        for zone in zones {
            let mut offer = |capacity_type, price: &Price| {
                if sold_as.is_some_and(|only| only != capacity_type) {
                    return;
                }
                let id = OfferingId { instance_type: kind.name.clone(), zone: zone.clone(), capacity_type };
                let is_spot = capacity_type == CapacityType::Spot;
                let interruptions = interruptions.clone().filter(|_| is_spot);
                let notice = notice.filter(|_| is_spot);
                let (region, price) = (region.clone(), price.clone());
                offerings.push(Offering { id, region, price, available, interruptions, notice });
            };
            offer(CapacityType::OnDemand, &on_demand);
            if let Some(spot) = &spot {
                offer(CapacityType::Spot, spot);
            }
        }
        Some((kind, offerings))
    }

    fn is_whole(&self) -> bool {
        self.record.len() == self.columns.count()
    }

    /// Returns the text of a cell; empty if the file does not have the column.
    fn cell(&self, column: &str) -> &'r str {
        self.columns.index(column).and_then(|index| self.record.get(index)).unwrap_or("")
    }

    fn kind(&mut self) -> Option<InstanceType> {
        // Reads every cell before the first `?`, so that all their problems are found.
        let name = self.label_value(column::INSTANCE_TYPE).map(InstanceTypeName::from);
        let provider = match self.cell(column::PROVIDER) {
            "" => Some(UNSPECIFIED_PROVIDER),
            _ => self.label_value(column::PROVIDER),
        };
        let arch = self.arch();
        let cpu = self.number(column::CPU, 1, MOST);
        let memory = self.number(column::MEMORY, 1, MOST_MIB);
        let pods = self.number(column::PODS, 1, MOST);
        let ephemeral_storage = match self.cell(column::EPHEMERAL_STORAGE) {
            "" => Some(DEFAULT_EPHEMERAL_STORAGE_MIB),
            _ => self.number(column::EPHEMERAL_STORAGE, 0, MOST_MIB),
        };
        let gpu = self.gpu();
        let allocatable = ResourceList::new()
            .with(ResourceName::CPU, cpu?)
            .with(ResourceName::MEMORY, memory? << 20)
            .with(ResourceName::PODS, pods?)
            .with(ResourceName::EPHEMERAL_STORAGE, ephemeral_storage? << 20)
            .with(ResourceName::NVIDIA_GPU, gpu.as_ref().map_or(0, |gpu| u64::from(gpu.count)));
        let kind = InstanceType {
            name: name?,
            provider: ProviderName::from(provider?),
            arch: arch?,
            allocatable,
            gpu,
        };
        if !labels::is_value(kind.family()) {
            let cause = format!("the family of \"{}\" would be \"{}\"", kind.name, kind.family());
            self.problem(column::INSTANCE_TYPE, cause, LABEL_REMEDY);
        }
        Some(kind)
    }

    fn arch(&mut self) -> Option<Arch> {
        match self.cell(column::ARCH) {
            "amd64" => Some(Arch::Amd64),
            "arm64" => Some(Arch::Arm64),
            other => {
                self.problem(
                    column::ARCH,
                    format!("\"{other}\" is not an architecture"),
                    "use amd64 or arm64",
                );
                None
            }
        }
    }

    /// Returns the GPUs. A model without whole GPUs (a slice of a GPU, or another vendor's GPU) is no `nvidia.com/gpu`
    /// for the scheduler, so it does not count.
    fn gpu(&mut self) -> Option<Gpu> {
        let (model, memory) = (self.cell(column::GPU_MODEL), self.cell(column::GPU_MEMORY));
        let count = match self.cell(column::GPU_COUNT) {
            "" if model.is_empty() => 0,
            _ => self.number(column::GPU_COUNT, 0, MOST_GPUS)?,
        };
        let memory_mib = if memory.is_empty() { None } else { self.number(column::GPU_MEMORY, 0, MOST_MIB) };
        if count == 0 {
            return None;
        }
        let model = self.label_value(column::GPU_MODEL)?;
        Some(Gpu {
            model: GpuModel::new(model.to_lowercase()),
            count: u32::try_from(count).unwrap_or(u32::MAX),
            memory_mib: memory_mib.filter(|memory| *memory > 0),
        })
    }

    /// Returns the only capacity type that the row is about; `None` for both.
    fn sold_as(&mut self) -> Option<CapacityType> {
        match self.cell(column::CAPACITY_TYPE) {
            "" => None,
            "on-demand" => Some(CapacityType::OnDemand),
            "spot" => Some(CapacityType::Spot),
            other => {
                let cause = format!("\"{other}\" is not a capacity type that has a price");
                let remedy = "use on-demand or spot, or leave the cell empty for both; a catalogue lists no reservations";
                self.problem(column::CAPACITY_TYPE, cause, remedy);
                None
            }
        }
    }

    fn interruptions(&mut self) -> Option<Interruptions> {
        let as_of = self.date(column::INTERRUPTIONS_AS_OF);
        let source = match self.cell(column::INTERRUPTIONS_SOURCE) {
            "" => self.file,
            source => source,
        };
        let per_million_hours = self.interruption_rate()?;
        Some(Interruptions { per_million_hours, source: PriceSource::from(source), as_of })
    }

    /// Returns the interruptions in a million node-hours.
    fn interruption_rate(&mut self) -> Option<u32> {
        let text = self.cell(column::INTERRUPTIONS);
        if text.is_empty() {
            return None;
        }
        // Parsed like a price: its six decimals are the millionths of the result.
        match text.parse::<UsdPerHour>().map(|rate| u32::try_from(rate.micros())) {
            Ok(Ok(rate)) if rate <= MOST_INTERRUPTIONS => Some(rate),
            Ok(_) => {
                let remedy =
                    "give interruptions of one node in one hour, 60 or less: 5 % in a day are 0.0021";
                self.problem(column::INTERRUPTIONS, format!("\"{text}\" is too large"), remedy);
                None
            }
            Err(_) => {
                let remedy = "give interruptions of one node in one hour as a plain decimal, 0 or more: 5 % in a day are 0.0021";
                self.problem(column::INTERRUPTIONS, format!("\"{text}\" is not a rate"), remedy);
                None
            }
        }
    }

    /// Returns the zones; the region's name if none is listed, and [`Zone::ANY`] without a region. Empty after a problem.
    fn zones(&mut self) -> Vec<Zone> {
        let region = match self.cell(column::REGION) {
            "" => Zone::ANY,
            _ => self.label_value(column::REGION).unwrap_or_default(),
        };
        let listed = self.cell(column::ZONES);
        if !self.cell(column::ZONE).is_empty() {
            if !listed.is_empty() {
                let cause = "the row has both zones and zone".to_owned();
                self.problem(column::ZONE, cause, "keep one of the two cells");
            }
            return self.label_value(column::ZONE).map(Zone::from).into_iter().collect();
        }
        if listed.is_empty() {
            return vec![Zone::from(region)];
        }
        let mut zones: Vec<Zone> = Vec::new();
        for zone in listed.split('|').map(str::trim) {
            if !labels::is_value(zone) || zone.is_empty() {
                self.problem(column::ZONES, format!("\"{zone}\" cannot be the name of a zone"), LABEL_REMEDY);
            } else if zones.iter().any(|known| known.as_str() == zone) {
                self.problem(column::ZONES, format!("\"{zone}\" is listed twice"), "list each zone once");
            } else {
                zones.push(Zone::from(zone));
            }
        }
        zones
    }

    /// Returns a price with its source and date; `None` if the cell is empty or invalid.
    fn price(&mut self, column: &str, source: &str, as_of: &str) -> Option<Price> {
        // A spot price without its own source or date has those of the on-demand price.
        let source = [self.cell(source), self.cell(column::PRICE_SOURCE), self.file]
            .into_iter()
            .find(|source| !source.is_empty())
            .map_or_else(|| PriceSource::from(self.file), PriceSource::from);
        let as_of = self.date(if self.cell(as_of).is_empty() { column::PRICE_AS_OF } else { as_of });
        let text = self.cell(column);
        if text.is_empty() {
            return None;
        }
        let amount = match text.parse::<UsdPerHour>() {
            Ok(amount) => amount,
            Err(error) => {
                let cause = match error {
                    MoneyError::NotANumber(_) => {
                        format!("\"{text}\" is not a decimal number of US dollars per hour")
                    }
                    MoneyError::Negative(_) => format!("\"{text}\" is negative"),
                    MoneyError::TooLarge(_) => format!("\"{text}\" is too large for a price"),
                };
                let remedy = "a price is a plain decimal above zero, like 1.006: leave the cell empty if it is not known";
                self.problem(column, cause, remedy);
                return None;
            }
        };
        // A file without the column states the currency in the names of its price columns.
        let currency =
            if self.columns.index(column::CURRENCY).is_some() { self.cell(column::CURRENCY) } else { "USD" };
        Some(sanity::admit(Claim { text, amount, currency }, source, as_of))
    }

    fn date(&mut self, column: &str) -> Option<Date> {
        let text = self.cell(column);
        if text.is_empty() {
            return None;
        }
        let date = text.parse::<Date>();
        if date.is_err() {
            let remedy = "write it as YYYY-MM-DD, or leave the cell empty if it is not known";
            // Both prices may share one date; its problem is reported once.
            let problem = CsvProblem::of_column(
                self.file,
                self.line,
                column,
                format!("\"{text}\" is not a date"),
                remedy,
            );
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        date.ok()
    }

    /// Returns a whole number between `least` and `most`.
    fn number(&mut self, column: &str, least: u64, most: u64) -> Option<u64> {
        let text = self.cell(column);
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let parsed = text.parse::<u64>();
        if let Ok(number) = parsed
            && (least..=most).contains(&number)
        {
            return Some(number);
        }
        let (cause, is_too_large) = if text.is_empty() {
            ("the cell is empty".to_owned(), false)
        } else if !is_integer {
            (format!("\"{text}\" is not a whole number"), false)
        } else if text.starts_with('-') {
            (format!("\"{text}\" is negative"), false)
        } else if parsed.is_ok_and(|number| number < least) {
            (format!("\"{text}\" is too small"), false)
        } else {
            (format!("\"{text}\" is too large"), true)
        };
        let remedy = if is_too_large {
            format!("use a whole number, {most} or less")
        } else {
            format!("use a whole number, {least} or more")
        };
        self.problem(column, cause, remedy);
        None
    }

    /// Returns a cell that becomes the value of a node label and may not be empty.
    fn label_value(&mut self, column: &str) -> Option<&'r str> {
        let text = self.cell(column);
        if text.is_empty() {
            self.problem(column, "the cell is empty".to_owned(), LABEL_REMEDY);
            None
        } else if labels::is_value(text) {
            Some(text)
        } else {
            self.problem(column, format!("\"{text}\" cannot be the value of a label"), LABEL_REMEDY);
            None
        }
    }
}
