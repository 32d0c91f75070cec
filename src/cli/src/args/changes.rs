//! The values of the flags of `poolwright what-if`: objects, factors, prices and limits.

use std::fmt;
use std::str::FromStr;

use poolwright_catalog::{Usd, UsdPerHour};

/// An object as kubectl names it: `deploy/web`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The kind in lower case, without its group: singular, plural or short.
    pub kind: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// A workload and its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replicas {
    /// The workload.
    pub of: Named,
    /// The number.
    pub number: u32,
}

/// A GPU model, and the one to use instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The model.
    pub from: String,
    /// The other one.
    pub to: String,
}

/// A factor above zero, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor(u64);

impl Factor {
    /// Half as much again.
    pub const HALF_MORE: Self = Self(1_500_000);
    const ONE: u64 = 1_000_000;
    /// The largest factor.
    const MOST: u64 = 1_000;

    /// Returns a number times the factor, rounded up.
    pub fn of(self, number: u64) -> u64 {
        let product = u128::from(number) * u128::from(self.0);
        u64::try_from(product.div_ceil(u128::from(Self::ONE))).unwrap_or(u64::MAX)
    }
}

impl FromStr for Factor {
    type Err = String;

    /// Parses a factor as a flag takes it.
    fn from_str(text: &str) -> Result<Self, String> {
        factor(text)
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / Self::ONE, self.0 % Self::ONE);
        let rest = format!("{rest:06}");
        match rest.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            rest => write!(f, "{whole}.{rest}"),
        }
    }
}

/// A change of prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceChange {
    /// The instance types; `*` stands for any text.
    pub types: String,
    /// What happens to their prices.
    pub to: NewPrice,
    /// The change as the user wrote it.
    pub written: String,
}

/// What happens to a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewPrice {
    /// It rises by millionths of a percent.
    Rise(u64),
    /// It falls by millionths of a percent, less than all of it.
    Fall(u64),
    /// It becomes this.
    Be(UsdPerHour),
}

/// A limit of a rise of cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// An amount in a month.
    Monthly(Usd),
    /// Millionths of a percent.
    Percent(u64),
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Monthly(amount) => write!(f, "{amount:#}/month"),
            Self::Percent(millionths) => write!(f, "{} %", Factor(*millionths)),
        }
    }
}

/// Parses `KIND/NAME`.
pub fn named(text: &str) -> Result<Named, String> {
    let wrong = || "is not KIND/NAME; write such as deploy/web, and the namespace with -n".to_owned();
    let (kind, name) = text.split_once('/').ok_or_else(wrong)?;
    let kind = kind.split('.').next().unwrap_or_default().to_lowercase();
    if kind.is_empty() || name.is_empty() || name.contains('/') {
        return Err(wrong());
    }
    Ok(Named { kind, name: name.to_owned() })
}

/// Parses `KIND/NAME=NUMBER`.
pub fn replicas(text: &str) -> Result<Replicas, String> {
    let wrong = || "is not KIND/NAME=NUMBER; write such as deploy/web=20".to_owned();
    let (of, number) = text.split_once('=').ok_or_else(wrong)?;
    let number = number.parse().map_err(|_| wrong())?;
    Ok(Replicas { of: named(of)?, number })
}

/// Parses a decimal number into millionths; `None` if it is negative, too large, or no number.
fn decimal(text: &str) -> Option<u64> {
    text.parse::<UsdPerHour>().ok().map(UsdPerHour::micros)
}

/// Parses a factor: `1.5` or `x2`.
pub fn factor(text: &str) -> Result<Factor, String> {
    let digits = text.strip_prefix('x').unwrap_or(text);
    let factor = decimal(digits).ok_or("is not a factor; write such as 1.5 or x2")?;
    match factor {
        0 => Err("is zero; write a factor above zero, such as 1.5".to_owned()),
        more if more > Factor::MOST * Factor::ONE => {
            Err(format!("is too large; write {} or less", Factor::MOST))
        }
        fits => Ok(Factor(fits)),
    }
}

/// The most that a price may rise, in percent.
const MOST_PERCENT: u64 = 100_000;

/// All of a price, in millionths of a percent.
pub const WHOLE: u64 = 100_000_000;

/// Parses `TYPE=PRICE`.
pub fn price(text: &str) -> Result<PriceChange, String> {
    let wrong = || "is not TYPE=PRICE; write such as 'g5.*=+20%', or g5.xlarge=1.10".to_owned();
    let (types, to) = text.rsplit_once('=').filter(|(types, _)| !types.is_empty()).ok_or_else(wrong)?;
    let percent = |digits: &str| digits.strip_suffix('%').and_then(decimal).ok_or_else(wrong);
    let to = if let Some(digits) = to.strip_prefix('+') {
        let rise = percent(digits)?;
        if rise > MOST_PERCENT * Factor::ONE {
            return Err(format!("is too large; write +{MOST_PERCENT}% or less"));
        }
        NewPrice::Rise(rise)
    } else if let Some(digits) = to.strip_prefix('-') {
        let fall = percent(digits)?;
        if fall >= WHOLE {
            return Err("makes a price zero or less, and nothing is free; write a fall below 100%".to_owned());
        }
        NewPrice::Fall(fall)
    } else {
        let amount: UsdPerHour = to.parse().map_err(|_| wrong())?;
        if amount == UsdPerHour::ZERO {
            return Err("makes a price zero, and nothing is free; write a price above zero".to_owned());
        }
        NewPrice::Be(amount)
    };
    Ok(PriceChange { types: types.to_owned(), to, written: text.to_owned() })
}

/// Parses `MODEL=MODEL`.
pub fn replaced(text: &str) -> Result<Replaced, String> {
    let models = text.split_once('=').filter(|(from, to)| !from.is_empty() && !to.is_empty() && from != to);
    let (from, to) = models.ok_or("is not MODEL=MODEL with two models; write such as l4=a10g")?;
    Ok(Replaced { from: from.to_lowercase(), to: to.to_lowercase() })
}

/// Parses `zone=ZONE`.
pub fn zone(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("zone=").filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| "is not zone=ZONE; write such as zone=us-east-1a".to_owned())
}

/// Parses a limit of a rise.
pub fn threshold(text: &str) -> Result<Threshold, String> {
    let wrong = || "is not a limit; write usd=500 (a month) or percent=10".to_owned();
    let (unit, number) = text.split_once('=').ok_or_else(wrong)?;
    let number = decimal(number).ok_or_else(wrong)?;
    match unit {
        "usd" => Ok(Threshold::Monthly(Usd(number.into()))),
        "percent" => Ok(Threshold::Percent(number)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_as_kubectl_names_it() {
        let web = |kind: &str| Named { kind: kind.to_owned(), name: "web".to_owned() };
        assert_eq!(named("deploy/web"), Ok(web("deploy")));
        assert_eq!(named("Deployment.apps/web"), Ok(web("deployment")));
        assert_eq!(replicas("deploy/web=20"), Ok(Replicas { of: web("deploy"), number: 20 }));
        for wrong in ["web", "/web", "deploy/", "ml/deploy/web"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
        for wrong in ["deploy/web", "deploy/web=", "deploy/web=-1", "deploy/web=many", "web=3"] {
            assert!(replicas(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_factor_is_above_zero_and_multiplies_rounding_up() {
        assert_eq!(factor("1.5"), Ok(Factor::HALF_MORE));
        assert_eq!(factor("x2").map(|factor| factor.of(3)), Ok(6));
        assert_eq!([1, 2, 3].map(|number| Factor::HALF_MORE.of(number)), [2, 3, 5]);
        assert_eq!(Factor::HALF_MORE.to_string(), "1.5");
        for wrong in ["", "x", "0", "-1", "twice", "1001"] {
            assert!(factor(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_price_rises_falls_or_is_set_and_is_never_zero() {
        let to = |text: &str| price(text).map(|change| (change.types, change.to));
        assert_eq!(to("g5.*=+20%"), Ok(("g5.*".to_owned(), NewPrice::Rise(20_000_000))));
        assert_eq!(to("g5.xlarge=-2.5%"), Ok(("g5.xlarge".to_owned(), NewPrice::Fall(2_500_000))));
        let set = NewPrice::Be(UsdPerHour::from_micros(1_100_000));
        assert_eq!(to("g5.xlarge=1.10"), Ok(("g5.xlarge".to_owned(), set)));
        for free in ["g5.xlarge=0", "g5.xlarge=-100%"] {
            assert!(price(free).is_err_and(|told| told.contains("nothing is free")), "{free}");
        }
        for wrong in ["g5.xlarge", "=1", "g5.xlarge=", "g5.xlarge=+20", "g5.xlarge=cheap", "g5=+200000%"] {
            assert!(price(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_zones_and_models_are_read() {
        assert_eq!(threshold("usd=500"), Ok(Threshold::Monthly(Usd(500_000_000))));
        assert_eq!(threshold("percent=2.5"), Ok(Threshold::Percent(2_500_000)));
        assert_eq!(Threshold::Monthly(Usd(500_000_000)).to_string(), "$500.00/month");
        assert_eq!(Threshold::Percent(10_000_000).to_string(), "10 %");
        for wrong in ["500", "usd=", "usd=-1", "eur=5", "percent=ten"] {
            assert!(threshold(wrong).is_err(), "{wrong}");
        }
        assert_eq!(zone("zone=us-east-1a"), Ok("us-east-1a".to_owned()));
        assert!(zone("us-east-1a").is_err() && zone("zone=").is_err());
        assert_eq!(replaced("L4=a10g").map(|one| one.from), Ok("l4".to_owned()));
        assert!(["l4", "l4=", "=l4", "l4=l4"].into_iter().all(|wrong| replaced(wrong).is_err()));
    }
}
