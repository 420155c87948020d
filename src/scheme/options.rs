//! The part of a scheme string behind its colon: `affine,group=32`.

use super::SchemeInfo;
use crate::error::SchemeError;

/// Options not yet taken by the scheme.
#[derive(Debug)]
pub(super) struct Options<'a> {
    info: &'a SchemeInfo,
    left: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Options<'a> {
    /// Splits `text` at its commas.
    pub(super) fn parse(info: &'a SchemeInfo, text: Option<&'a str>) -> Result<Self, SchemeError> {
        let mut options = Self { info, left: Vec::new() };
        for item in text.into_iter().flat_map(|text| text.split(',')) {
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (item, None),
            };
            if name.is_empty() {
                return Err(options.error(item, "is empty"));
            }
            if options.left.iter().any(|(other, _)| *other == name) {
                return Err(options.error(name, "is given twice"));
            }
            options.left.push((name, value));
        }
        Ok(options)
    }

    fn take(&mut self, name: &str) -> Option<Option<&'a str>> {
        let at = self.left.iter().position(|(other, _)| *other == name)?;
        Some(self.left.swap_remove(at).1)
    }

    /// Whether the option `name`, which takes no value, is there.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, SchemeError> {
        match self.take(name) {
            None => Ok(false),
            Some(None) => Ok(true),
            Some(Some(_)) => Err(self.error(name, "takes no value")),
        }
    }

    /// The whole number of the option `name`.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<u32>, SchemeError> {
        match self.take(name) {
            None => Ok(None),
            Some(None) => Err(self.error(name, "needs a value, as in `name=32`")),
            Some(Some(value)) => match value.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.error(&format!("{name}={value}"), "is no whole number of 32 bits")),
            },
        }
    }

    /// The decimal number of the option `name`; finite.
    pub(super) fn decimal(&mut self, name: &str) -> Result<Option<f64>, SchemeError> {
        match self.take(name) {
            None => Ok(None),
            Some(None) => Err(self.error(name, "needs a value, as in `name=0.95`")),
            Some(Some(value)) => match value.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Some(number)),
                _ => Err(self.error(&format!("{name}={value}"), "is no number")),
            },
        }
    }

    /// Which of some words the option `name` has: the first where it is not given.
    pub(super) fn choice(&mut self, name: &str, words: &[&str]) -> Result<usize, SchemeError> {
        let problem = || format!("takes `{}`", words.join("` or `"));
        match self.take(name) {
            None => Ok(0),
            Some(None) => Err(self.error(name, &problem())),
            Some(Some(value)) => words
                .iter()
                .position(|word| *word == value)
                .ok_or_else(|| self.error(&format!("{name}={value}"), &problem())),
        }
    }

    /// An error about `option` of this scheme.
    pub(super) fn error(&self, option: &str, problem: &str) -> SchemeError {
        SchemeError::Option {
            scheme: self.info.name.to_owned(),
            option: option.to_owned(),
            problem: problem.to_owned(),
        }
    }

    /// Refuses whatever the scheme did not take.
    pub(super) fn finish(self) -> Result<(), SchemeError> {
        let Some((name, _)) = self.left.first() else { return Ok(()) };
        let has = match self.info.options {
            "" => "the scheme has none".to_owned(),
            options => format!("there are: {options}"),
        };
        Err(self.error(name, &format!("does not exist; {has}")))
    }
}
