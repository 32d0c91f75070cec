//! Rule: a price is above zero.

use super::Claim;
use crate::money::UsdPerHour;
use crate::price::UnknownPrice;

/// Rejects zero, which sources write for "not sold by the hour" or "unknown".
pub(super) fn check(claim: Claim<'_>) -> Option<UnknownPrice> {
    (claim.amount == UsdPerHour::ZERO).then(|| UnknownPrice::NotPositive { quoted: claim.text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_of_zero_is_not_the_cheapest_price() {
        let claim = Claim { text: "0.0", amount: UsdPerHour::ZERO, currency: "USD" };
        assert_eq!(check(claim), Some(UnknownPrice::NotPositive { quoted: "0.0".into() }));
        assert_eq!(check(Claim { amount: UsdPerHour::from_micros(1), ..claim }), None);
    }
}
