//! What spot capacity costs: moto's prices are years old, and too old for anybody to buy at.
//!
//! Shape: <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html>.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Front;
use super::answers::whole;

/// Prices in dollars per hour, by type and zone.
pub(super) type SpotPrices = BTreeMap<(String, String), String>;

impl Front {
    /// From now on spot capacity is sold, of these types in these zones, for so many dollars per hour, and nothing else. Nobody hears of
    /// other prices before he asks again.
    pub fn sell_spot(&self, prices: impl IntoIterator<Item = (&'static str, &'static str, &'static str)>) {
        let owned =
            prices.into_iter().map(|(kind, zone, usd)| ((kind.to_owned(), zone.to_owned()), usd.to_owned()));
        self.inner().spot = Some(owned.collect());
    }
}

/// The answer to a question about prices: those that hold now, since a moment ago.
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
