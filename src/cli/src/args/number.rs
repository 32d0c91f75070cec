//! Parses the whole numbers of flags, with messages that say what to write.

use std::ops::RangeInclusive;

/// Returns a parser for whole numbers in `range`. Its messages give `example`.
pub fn whole<T>(range: RangeInclusive<T>, example: T) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: Copy + Into<i128> + TryFrom<i128>,
{
    let (least, most, example) = ((*range.start()).into(), (*range.end()).into(), example.into());
    move |text: &str| {
        let number: i128 = text.parse().map_err(|_| format!("not a whole number; write e.g. {example}"))?;
        if number < least {
            return Err(format!("too small; write {least} or more"));
        }
        let fitting = T::try_from(number).ok().filter(|_| number <= most);
        fitting.ok_or_else(|| format!("too large; write {most} or less"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_does_not_fit_is_refused_with_one_that_does() {
        let parse = whole(1..=64_u16, 8);
        assert_eq!((parse("1"), parse("64")), (Ok(1), Ok(64)));
        for wrong in ["", "many", "1.5", "8x"] {
            assert_eq!(parse(wrong), Err("not a whole number; write e.g. 8".to_owned()), "{wrong}");
        }
        for small in ["0", "-1"] {
            assert_eq!(parse(small), Err("too small; write 1 or more".to_owned()), "{small}");
        }
        for large in ["65", "99999999999999999999999"] {
            assert_eq!(parse(large), Err("too large; write 64 or less".to_owned()), "{large}");
        }
    }
}
