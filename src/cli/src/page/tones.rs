//! The colours of plots. A drawing has those for a light ground, and a rule of the page replaces each on a dark one.

use std::fmt::Write as _;

use plotters::style::RGBColor;

/// Letters of a drawing.
pub const INK: RGBColor = RGBColor(0x20, 0x21, 0x24);
/// Lines of a drawing that only help to read it.
pub const RULE: RGBColor = RGBColor(0xda, 0xdc, 0xe0);

/// The colours of series, for a light ground and for a dark one.
const SERIES: [(RGBColor, RGBColor); 8] = [
    (RGBColor(0x1f, 0x5f, 0xbf), RGBColor(0x7f, 0xb0, 0xff)),
    (RGBColor(0xc0, 0x60, 0x10), RGBColor(0xf0, 0xa8, 0x60)),
    (RGBColor(0x2e, 0x7d, 0x32), RGBColor(0x81, 0xc9, 0x95)),
    (RGBColor(0x8e, 0x3b, 0xa8), RGBColor(0xd7, 0xa6, 0xf0)),
    (RGBColor(0x00, 0x83, 0x8f), RGBColor(0x6f, 0xd3, 0xdc)),
    (RGBColor(0xb3, 0x26, 0x1e), RGBColor(0xf2, 0x8b, 0x82)),
    (RGBColor(0x6d, 0x4c, 0x41), RGBColor(0xc9, 0xaf, 0xa4)),
    (RGBColor(0x5f, 0x63, 0x68), RGBColor(0xbd, 0xc1, 0xc6)),
];

/// Returns the colour of a series. After the last colour, they begin again.
pub fn of(series: usize) -> RGBColor {
    SERIES[series % SERIES.len()].0
}

/// Writes a colour as drawings have it.
pub fn written(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Returns the rules for a dark ground.
pub fn dark() -> String {
    let others = [(INK, RGBColor(0xe8, 0xea, 0xed)), (RULE, RGBColor(0x3c, 0x40, 0x43))];
    let mut rules = "@media screen and (prefers-color-scheme: dark) {\n".to_owned();
    for (light, dark) in SERIES.into_iter().chain(others) {
        let (light, dark) = (written(light), written(dark));
        // A string takes everything.
        let _ = writeln!(
            rules,
            "  svg [fill=\"{light}\"] {{ fill: {dark}; }} svg [stroke=\"{light}\"] {{ stroke: {dark}; }}"
        );
    }
    rules.push_str("}\n");
    rules
}
