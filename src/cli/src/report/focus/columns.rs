//! The columns of the dataset Cost and Usage, and their values. `rules.csv` has the rules of the specification.

use poolwright_report::ledger::row::PodSpan;

use super::line::{self, Line};
use crate::args::FocusVersion;

/// A column: its name and its value.
pub type Column = (&'static str, fn(&Line<'_>) -> String);

/// The columns that 1.4 no longer has.
const REMOVED: [&str; 2] = ["ProviderName", "PublisherName"];

/// Returns whether a version has a column.
pub fn is_in(version: FocusVersion, name: &str) -> bool {
    version == FocusVersion::V1_3 || !REMOVED.contains(&name)
}

/// Returns a known text, or nothing.
fn known(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

/// Returns a text if the charge has a commitment.
fn committed(line: &Line<'_>, text: &str) -> String {
    line.commitment().map_or_else(String::new, |_| text.to_owned())
}

/// Returns a value of the pod.
fn of_pod(line: &Line<'_>, value: fn(&PodSpan) -> Option<&str>) -> String {
    known(line.pod.and_then(value))
}

/// All columns, in the order of the specification, and then ours.
pub const COLUMNS: &[Column] = &[
    ("AllocatedMethodDetails", line::details),
    ("AllocatedMethodId", |line| format!("poolwright:{}:v1", line.method)),
    ("AllocatedResourceId", line::allocated_id),
    ("AllocatedResourceName", |line| of_pod(line, |pod| Some(&pod.name))),
    ("AllocatedTags", line::labels),
    ("AvailabilityZone", |line| line.instance.zone.clone()),
    // Poolwright sends no invoice: the lines of the cloud have what is billed.
    ("BilledCost", |_| "0.00".to_owned()),
    ("BillingAccountId", |line| line.instance.span.cluster.clone()),
    ("BillingAccountName", |line| line.instance.span.cluster.clone()),
    ("BillingCurrency", |_| "USD".to_owned()),
    ("BillingPeriodEnd", line::month_end),
    ("BillingPeriodStart", line::month_start),
    ("CapacityReservationId", |line| known(line.reservation())),
    ("CapacityReservationStatus", |line| line.reservation().map_or_else(String::new, |_| "Used".to_owned())),
    ("ChargeCategory", |_| "Usage".to_owned()),
    ("ChargeClass", |_| String::new()),
    ("ChargeDescription", line::description),
    ("ChargeFrequency", |_| "Usage-Based".to_owned()),
    ("ChargePeriodEnd", line::end),
    ("ChargePeriodStart", line::start),
    ("CommitmentDiscountCategory", |line| committed(line, "Spend")),
    ("CommitmentDiscountId", |line| known(line.commitment())),
    ("CommitmentDiscountName", |line| known(line.commitment())),
    ("CommitmentDiscountQuantity", |line| committed(line, &line.cost.decimal())),
    ("CommitmentDiscountStatus", |line| committed(line, "Used")),
    ("CommitmentDiscountType", |line| committed(line, "Commitment")),
    ("CommitmentDiscountUnit", |line| committed(line, "USD")),
    ("ConsumedQuantity", line::hours),
    ("ConsumedUnit", |_| "Hours".to_owned()),
    ("ContractApplied", line::contract),
    ("ContractedCost", |line| line.cost.decimal()),
    ("ContractedUnitPrice", |line| line.price.decimal()),
    ("EffectiveCost", |line| line.cost.decimal()),
    ("HostProviderName", |line| line.instance.provider.clone()),
    ("InvoiceIssuerName", |line| line.instance.provider.clone()),
    ("ListCost", |line| line.list.decimal()),
    ("ListUnitPrice", |line| line.list_price.decimal()),
    ("PricingCategory", |line| line.pricing_category().to_owned()),
    ("PricingQuantity", line::hours),
    ("PricingUnit", |_| "Hours".to_owned()),
    ("ProviderName", |line| line.instance.provider.clone()),
    ("PublisherName", |line| line.instance.provider.clone()),
    ("RegionId", |line| line.instance.region.clone()),
    ("RegionName", |line| line.instance.region.clone()),
    ("ResourceId", |line| known(Some(line.instance.instance_id.as_ref().unwrap_or(&line.instance.uid)))),
    ("ResourceName", |line| known(Some(line.instance.node.as_ref().unwrap_or(&line.instance.name)))),
    ("ResourceType", |_| "Virtual Machine".to_owned()),
    ("ServiceCategory", |_| "Compute".to_owned()),
    ("ServiceName", |_| "Virtual machines".to_owned()),
    ("ServiceProviderName", |line| line.instance.provider.clone()),
    ("ServiceSubcategory", |_| "Virtual Machines".to_owned()),
    ("SkuId", line::sku),
    ("SkuMeter", |_| "Instance hours".to_owned()),
    ("SkuPriceId", line::sku_price),
    ("SubAccountId", |line| known(line.instance.pool.as_deref())),
    ("SubAccountName", |line| known(line.instance.pool.as_deref())),
    ("Tags", line::tags),
    ("x_CapacityType", |line| line.instance.capacity_type.clone()),
    ("x_Class", |line| line.class.name().to_owned()),
    ("x_GpuHours", line::gpu_hours),
    ("x_Idle", |line| line.class.is_idle().to_string()),
    ("x_Namespace", |line| of_pod(line, |pod| Some(&pod.namespace))),
    ("x_PriceAsOf", |one| one.instance.price_at.map_or_else(String::new, line::second)),
    ("x_PriceSource", |line| known(line.instance.price_source.as_deref())),
    ("x_Workload", |line| of_pod(line, |pod| pod.workload.as_deref())),
    ("x_WorkloadKind", |line| of_pod(line, |pod| pod.workload_kind.as_deref())),
];
