//! The flags of every cloud, built from the lists in the registrations.

use std::marker::PhantomData;

use clap::builder::{
    BoolishValueParser, PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser, ValueParser,
};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use poolwright_provider_contract::{Flag, FlagValues, Registration};

use crate::clouds::{clouds, left_out, not_built};

/// The choice of the cloud flags of a command.
pub trait Which {
    /// Returns the flags.
    fn of(cloud: &Registration) -> &'static [Flag];
    /// Returns the heading above the flags in the help.
    fn heading(_: &Registration) -> Option<String> {
        None
    }
}

/// The flags of `controller` and `check`.
#[derive(Clone, Debug)]
pub struct Nodes;

impl Which for Nodes {
    fn of(cloud: &Registration) -> &'static [Flag] {
        cloud.flags
    }

    fn heading(cloud: &Registration) -> Option<String> {
        Some(format!("Nodes on {}", cloud.short))
    }
}

/// The flags of `gpus` and `prices`.
#[derive(Clone, Debug)]
pub struct Market;

impl Which for Market {
    fn of(cloud: &Registration) -> &'static [Flag] {
        cloud.market.map_or(&[], |market| market.flags)
    }
}

/// The values of the cloud flags that the user set.
#[derive(Clone, Debug)]
pub struct CloudFlags<W> {
    /// Their values.
    pub values: FlagValues,
    /// Those that the user typed, with their clouds. The values of others come from the environment.
    pub typed: Vec<(&'static Registration, &'static str)>,
    which: PhantomData<W>,
}

fn flags<W: Which>() -> impl Iterator<Item = (&'static Registration, &'static Flag)> {
    clouds().iter().flat_map(|cloud| W::of(cloud).iter().map(move |flag| (cloud, flag)))
}

impl<W: Which> clap::Args for CloudFlags<W> {
    fn augment_args(command: Command) -> Command {
        flags::<W>().fold(command, |command, (cloud, flag)| command.arg(option(flag, W::heading(cloud))))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<W: Which> clap::FromArgMatches for CloudFlags<W> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (mut values, mut typed) = (FlagValues::default(), Vec::new());
        for (cloud, flag) in flags::<W>() {
            if matches.value_source(flag.name) == Some(ValueSource::CommandLine) {
                typed.push((cloud, flag.name));
            }
            if flag.value.is_none() {
                if matches.get_flag(flag.name) {
                    values.set(flag.name, "true");
                }
            } else if let Some(value) = matches.get_one::<String>(flag.name) {
                values.set(flag.name, value);
            }
        }
        Ok(Self { values, typed, which: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Builds the command-line option of a flag.
fn option(flag: &'static Flag, heading: Option<String>) -> Arg {
    let mut option = Arg::new(flag.name).long(flag.name).help(flag.help);
    if !flag.more.is_empty() {
        option = option.long_help(format!("{}\n\n{}", flag.help, flag.more));
    }
    if let Some(heading) = heading {
        option = option.help_heading(Some(&*heading.leak()));
    }
    if let Some(env) = flag.env {
        option = option.env(env);
    }
    if let Some(other) = flag.requires {
        option = option.requires(other);
    }
    match flag.value {
        None => option.action(ArgAction::SetTrue).value_parser(BoolishValueParser::new()),
        Some(name) => {
            let parser = match flag.validate {
                None => ValueParser::string(),
                Some(validate) => {
                    ValueParser::new(move |text: &str| validate(text).map(|()| text.to_owned()))
                }
            };
            option.action(ArgAction::Set).value_name(name).value_parser(parser)
        }
    }
}

/// Returns the parser for the names of providers. Catalogues have others than this program knows, so it reads any name except that of
/// a cloud that this build does not have.
pub(super) fn sellers() -> ValueParser {
    StringValueParser::new().try_map(built).into()
}

/// Returns the parser for the names of clouds whose accounts can be checked.
pub(super) fn accounts() -> ValueParser {
    named(|cloud| cloud.preflight.is_some())
}

/// Returns the parser for the names of some clouds. It also reads the names of clouds that this build does not have, to say so.
fn named(which: fn(&Registration) -> bool) -> ValueParser {
    let found = clouds().iter().filter(|cloud| which(cloud));
    let found = found.map(|cloud| PossibleValue::new(cloud.name).help(cloud.title));
    let hidden = left_out().map(|cloud| PossibleValue::new(cloud.name).hide(true));
    let names = PossibleValuesParser::new(found.chain(hidden));
    names.try_map(built).into()
}

/// Refuses the name of a cloud that this build does not have.
fn built(name: String) -> Result<String, String> {
    match not_built(|cloud| cloud.name == name) {
        Some(why) => Err(why.to_string()),
        None => Ok(name),
    }
}

/// Builds the examples in the help of a command: first its own examples, each a question with flags, then the examples of the
/// clouds.
pub(super) fn examples(command: &str, own: &[(&str, &str)]) -> String {
    let of_clouds = clouds().iter().flat_map(|cloud| cloud.examples);
    let of_clouds = of_clouds.filter(|example| example.command == command);
    let all = own.iter().copied().chain(of_clouds.map(|example| (example.question, example.flags)));
    all.fold("Examples:\n".to_owned(), |text, (question, flags)| {
        let line = format!("poolwright {command} {flags}");
        text + &format!("  # {question}\n  {}\n\n", line.trim_end())
    })
}
