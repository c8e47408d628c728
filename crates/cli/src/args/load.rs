//! The flags of loads, from the table of options in `plan`.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use squall_plan::options::{Arity, Hyphens, LoadOption, LoadType, ValueForm, Written};
use squall_plan::{GivenOption, LoadSpec, Text};

/// The flags of one kind of load, as typed.
#[derive(Debug, Clone)]
pub(crate) struct LoadFlags<K> {
    options: Vec<GivenOption>,
    kind: PhantomData<K>,
}

/// A kind of load as a type.
pub(crate) trait KindOfLoad {
    const KIND: LoadType;
}

macro_rules! kinds {
    ($($name:ident: $kind:ident),+) => {
        $(
            #[derive(Debug, Clone)]
            pub(crate) struct $name;

            impl KindOfLoad for $name {
                const KIND: LoadType = LoadType::$kind;
            }
        )+
    };
}

kinds!(OfHttp: Http, OfStream: Stream, OfWebSocket: WebSocket, OfHandshake: Handshake, OfIdle: Idle, OfReplay: Replay, OfScript: Script, OfRecording: Recording);

impl<K: KindOfLoad> LoadFlags<K> {
    /// The load with these arguments, whose run has this name.
    pub(crate) fn spec(
        &self,
        arguments: impl IntoIterator<Item = impl Into<String>>,
        name: Option<&str>,
    ) -> LoadSpec {
        LoadSpec {
            name: name.unwrap_or_default().to_owned(),
            kind: Text::typed(K::KIND.name()),
            arguments: arguments.into_iter().map(Text::typed).collect(),
            options: self.options.clone(),
            is_whole: true,
            ..LoadSpec::default()
        }
    }
}

impl<K: KindOfLoad> Args for LoadFlags<K> {
    fn augment_args(command: Command) -> Command {
        K::KIND.options().fold(command, |command, option| command.arg(flag(option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<K: KindOfLoad> FromArgMatches for LoadFlags<K> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_typed =
            |option: &&LoadOption| matches.value_source(option.name) == Some(ValueSource::CommandLine);
        let given = |option: &'static LoadOption| {
            let at = matches.indices_of(option.name).and_then(|mut indices| indices.next());
            let values = if option.is_switch() { None } else { matches.get_many::<String>(option.name) };
            let values = values.into_iter().flatten().map(Text::typed).collect();
            (at, GivenOption { name: Text::typed(option.name), values })
        };
        let mut options: Vec<_> = K::KIND.options().filter(is_typed).map(given).collect();
        options.sort_by_key(|(at, _)| *at);
        Ok(Self { options: options.into_iter().map(|(_, option)| option).collect(), kind: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// An option as clap has it. What its value means, and what it excludes, is for `plan` to say.
fn flag(option: &'static LoadOption) -> Arg {
    let mut arg = Arg::new(option.name)
        .help(option.help())
        .help_heading(Some(option.group).filter(|group| !group.is_empty()))
        .hide_short_help(option.is_rare)
        .hide(option.is_hidden)
        .allow_hyphen_values(option.hyphens == Hyphens::Any)
        .allow_negative_numbers(option.hyphens == Hyphens::Numbers);
    if let Some(help) = option.long_help() {
        arg = arg.long_help(help);
    }
    if let Some(letter) = option.short {
        arg = arg.short(letter);
    }
    if option.written != Written::AsLetter {
        arg = arg.long(option.name);
    }
    if option.is_switch() {
        return arg.action(ArgAction::SetTrue);
    }
    arg = arg.value_parser(AnyText(option)).hide_possible_values(true);
    if !option.value_name.is_empty() {
        arg = arg.value_name(option.value_name);
    }
    if matches!(option.form, ValueForm::File | ValueForm::Path) {
        arg = arg.value_hint(ValueHint::AnyPath);
    }
    if let Some(value) = option.default {
        arg = arg.default_value(value);
    }
    match option.arity {
        Arity::One => arg,
        Arity::OneOr(value) => arg.num_args(0..=1).require_equals(true).default_missing_value(value),
        Arity::Many | Arity::List => arg.action(ArgAction::Append),
    }
}

/// Accepts any text, and lists the values for completions.
#[derive(Clone)]
struct AnyText(&'static LoadOption);

impl TypedValueParser for AnyText {
    type Value = String;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        value.to_str().map(str::to_owned).ok_or_else(|| {
            let mut error = clap::Error::new(ErrorKind::InvalidUtf8).with_cmd(command);
            error.insert(ContextKind::InvalidArg, ContextValue::String(self.0.shown()));
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = self.0.choices();
        (!names.is_empty()).then(|| Box::new(names.into_iter().map(PossibleValue::new)) as Box<_>)
    }
}
