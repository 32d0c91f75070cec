//! Rule: a price names US dollars as its currency.

use super::Claim;
use crate::price::UnknownPrice;

/// Rejects other currencies. They are not converted, because that needs an exchange rate.
pub(super) fn check(claim: Claim<'_>) -> Option<UnknownPrice> {
    let is_usd = claim.currency.trim().eq_ignore_ascii_case("USD");
    (!is_usd).then(|| UnknownPrice::NotUsd { currency: claim.currency.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::UsdPerHour;

    fn in_currency(currency: &str) -> Option<UnknownPrice> {
        check(Claim { text: "1", amount: UsdPerHour::from_micros(1_000_000), currency })
    }

    #[test]
    fn a_price_in_euros_or_in_no_currency_is_not_taken_for_dollars() {
        assert_eq!(in_currency("EUR"), Some(UnknownPrice::NotUsd { currency: "EUR".into() }));
        assert_eq!(in_currency(" "), Some(UnknownPrice::NotUsd { currency: String::new() }));
    }

    #[test]
    fn a_price_in_dollars_is_admitted_however_the_code_is_written() {
        assert_eq!(in_currency("USD"), None);
        assert_eq!(in_currency(" usd "), None);
    }
}
