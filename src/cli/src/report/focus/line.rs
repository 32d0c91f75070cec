//! One line of FOCUS: a charge, and how its figures are written.

use jiff::Timestamp;
use jiff::civil::Date;
use poolwright_report::bill::{Charge, Class, Method, Micros, PARTS};
use poolwright_report::ledger::row::{InstanceSpan, PodSpan};
use poolwright_report::ledger::{day_of, midnight};
use poolwright_terms::CapacityType;
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::labels::CAPACITY_TYPE;
use serde_json::{Map, Value, json};

/// The decimals of quantities.
const DECIMALS: u32 = 12;

/// A charge with a known price.
pub struct Line<'a> {
    pub instance: &'a InstanceSpan,
    pub pod: Option<&'a PodSpan>,
    pub class: Class,
    pub method: Method,
    /// The cost.
    pub cost: Micros,
    /// The cost by the list price; the cost itself if that is unknown.
    pub list: Micros,
    /// The price of the instance per hour.
    pub price: Micros,
    /// Its list price.
    pub list_price: Micros,
    from: i64,
    to: i64,
    /// The part of the instance times milliseconds.
    parts: u128,
    /// The milliseconds of the instance.
    millis: u64,
    gpu_millis: u128,
}

impl<'a> Line<'a> {
    /// Returns the line of a charge; `None` if its price is unknown.
    pub fn of(charge: &Charge<'a>, method: Method) -> Option<Self> {
        let instance = &charge.instance.row;
        let (cost, price) = (charge.cost?, instance.price_micros_per_hour?);
        let list_price = instance.list_micros_per_hour.filter(|_| charge.list.is_some());
        Some(Self {
            instance,
            pod: charge.pod,
            class: charge.class,
            method,
            cost,
            list: charge.list.unwrap_or(cost),
            price: Micros(price.into()),
            list_price: Micros(list_price.unwrap_or(price).into()),
            from: charge.from,
            to: charge.to,
            parts: charge.parts,
            millis: charge.instance.millis(),
            gpu_millis: charge.gpu_millis,
        })
    }

    /// Returns the first days of the month and of the month after.
    fn month(&self) -> (Date, Date) {
        let day = day_of(of_millis(self.from));
        (day.first_of_month(), day.last_of_month().tomorrow().unwrap_or(Date::MAX))
    }

    /// Returns the commitment that pays the instance, unless it is a reservation.
    pub fn commitment(&self) -> Option<&'a str> {
        commitment(self.instance)
    }

    /// Returns the reservation that pays the instance.
    pub fn reservation(&self) -> Option<&'a str> {
        self.instance.commitment.as_deref().filter(|_| is_reserved(self.instance))
    }

    /// Returns the category of the price.
    pub fn pricing_category(&self) -> &'static str {
        match self.instance.capacity_type.parse() {
            _ if self.commitment().is_some() => "Committed",
            Ok(CapacityType::Spot) => "Dynamic",
            Ok(CapacityType::Reserved) => "Other",
            Ok(CapacityType::OnDemand) | Err(_) => "Standard",
        }
    }
}

/// Returns the commitment that pays an instance, unless it is a reservation.
pub fn commitment(instance: &InstanceSpan) -> Option<&str> {
    instance.commitment.as_deref().filter(|_| !is_reserved(instance))
}

fn is_reserved(instance: &InstanceSpan) -> bool {
    instance.capacity_type == CapacityType::Reserved.as_str()
}

/// Returns the hours of the instance that are charged. Their product with a price is the cost, up to its rounding.
pub fn hours(line: &Line<'_>) -> String {
    // The parts have as many decimals as quantities.
    decimal(line.parts / 3_600_000)
}

/// Returns the GPU-hours.
pub fn gpu_hours(line: &Line<'_>) -> String {
    decimal(line.gpu_millis * PARTS / 3_600_000_000)
}

/// Returns the start of the charge period.
pub fn start(line: &Line<'_>) -> String {
    second(of_millis(line.from))
}

/// Returns the end of the charge period, rounded up to the second.
pub fn end(line: &Line<'_>) -> String {
    second(of_millis(line.to.saturating_add(999)))
}

/// Returns the start of the billing period.
pub fn month_start(line: &Line<'_>) -> String {
    second(midnight(line.month().0))
}

/// Returns the end of the billing period.
pub fn month_end(line: &Line<'_>) -> String {
    second(midnight(line.month().1))
}

/// Returns the part of the instance as the details of the method.
pub fn details(line: &Line<'_>) -> String {
    let ratio = decimal(line.parts / u128::from(line.millis.max(1)));
    format!("{{\"Elements\":[{{\"AllocatedRatio\":{ratio}}}]}}")
}

/// Returns who gets the charge.
pub fn allocated_id(line: &Line<'_>) -> String {
    line.pod.map_or_else(String::new, |pod| format!("{}/{}/{}", pod.span.cluster, pod.namespace, pod.name))
}

/// Returns the labels of the pod.
pub fn labels(line: &Line<'_>) -> String {
    let of = |pod: &PodSpan| {
        let labels = pod.labels.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        Value::Object(labels.collect::<Map<_, _>>()).to_string()
    };
    line.pod.map_or_else(String::new, of)
}

/// Returns the tags of the instance.
pub fn tags(line: &Line<'_>) -> String {
    let mut tags = json!({(CAPACITY_TYPE): line.instance.capacity_type});
    if let Some(pool) = &line.instance.pool {
        tags[NODEPOOL_LABEL] = pool.as_str().into();
    }
    tags.to_string()
}

/// Returns a sentence.
pub fn description(line: &Line<'_>) -> String {
    let what = match line.class {
        Class::Pods => "held by a pod",
        Class::System => "held by a pod of a DaemonSet or of the node",
        Class::Unallocated => "held by no pod",
        Class::StartingOrDraining => "free while the node was not open to pods",
        Class::Difference => "difference to a rate card",
    };
    format!("{} ({}), {what}", line.instance.instance_type, line.instance.capacity_type)
}

/// Returns what the charge uses of a commitment.
pub fn contract(line: &Line<'_>) -> String {
    line.commitment().map_or_else(String::new, |name| {
        let name = Value::from(name);
        let cost = line.cost.decimal();
        format!(
            "{{\"Elements\":[{{\"ContractId\":{name},\"ContractCommitmentId\":{name},\"ContractCommitmentAppliedCost\":{cost}}}]}}"
        )
    })
}

/// Returns what the instance is sold as.
pub fn sku(line: &Line<'_>) -> String {
    format!("{}/{}", line.instance.provider, line.instance.instance_type)
}

/// Returns what its price is of.
pub fn sku_price(line: &Line<'_>) -> String {
    let InstanceSpan { provider, zone, instance_type, capacity_type, .. } = line.instance;
    format!("{provider}/{zone}/{instance_type}/{capacity_type}")
}

/// Writes a number with [`DECIMALS`] decimals, without zeros at the end.
fn decimal(number: u128) -> String {
    let whole = 10_u128.pow(DECIMALS);
    let digits = format!("{}.{:012}", number / whole, number % whole);
    let trimmed = digits.trim_end_matches('0');
    if trimmed.ends_with('.') { format!("{trimmed}0") } else { trimmed.to_owned() }
}

fn of_millis(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}

/// Formats a time as FOCUS wants it, by the second.
pub fn second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_decimals_that_they_need() {
        let of = |text: &str| decimal(text.parse().unwrap());
        assert_eq!(of("1500000000000"), "1.5");
        assert_eq!(of("0"), "0.0");
        assert_eq!(of("1"), "0.000000000001");
    }
}
