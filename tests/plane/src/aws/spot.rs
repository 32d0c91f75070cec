//! The prices of spot capacity. moto's are years old, and Poolwright does not buy at prices that old.
//!
//! Shape: <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html>.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Front;
use super::answers::whole;

/// Prices in dollars per hour, by type and zone.
pub(super) type SpotPrices = BTreeMap<(String, String), String>;

impl Front {
    /// Sells spot capacity of these types in these zones at these dollars per hour, and no other. The controller learns the
    /// prices at its next query.
    pub fn sell_spot(&self, prices: impl IntoIterator<Item = (&'static str, &'static str, &'static str)>) {
        let owned =
            prices.into_iter().map(|(kind, zone, usd)| ((kind.to_owned(), zone.to_owned()), usd.to_owned()));
        self.inner().spot = Some(owned.collect());
    }
}

/// Answers a query for prices with those set, valid since a minute ago.
pub(super) fn history(prices: &SpotPrices) -> String {
    let since = now() - jiff::SignedDuration::from_mins(1);
    let mut items = String::new();
    for ((kind, zone), usd) in prices {
        let _ = write!(
            items,
            "<item><instanceType>{kind}</instanceType><productDescription>Linux/UNIX</productDescription><spotPrice>{usd}</spotPrice>\
             <timestamp>{since}</timestamp><availabilityZone>{zone}</availabilityZone></item>"
        );
    }
    whole(
        "DescribeSpotPriceHistory",
        &format!("<spotPriceHistorySet>{items}</spotPriceHistorySet><nextToken/>"),
    )
}

#[expect(clippy::disallowed_methods, reason = "the edge: prices have the time of day")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
