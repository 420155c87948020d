//! The options that choose where lookups run.

use gatherum::{BackendChoice, Bytes, Engine, EngineBuilder};

use crate::failure::Outcome;

#[derive(Debug, clap::Args)]
pub(crate) struct BackendArgs {
    /// Where lookups run: `auto` (the best GPU, else the host), `host`, or words of an adapter's line in `adapters`
    #[arg(long, global = true, value_name = "auto|host|WORDS")]
    pub(crate) backend: Option<String>,

    /// Refuse tables and buffers beyond so many bytes in all; takes kB, MB, GB, KiB, MiB, GiB too
    #[arg(long, global = true, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) memory_budget: Option<Bytes>,
}

impl BackendArgs {
    /// What the options say, and `GATHERUM_BACKEND` where they do not.
    pub(crate) fn choice(&self) -> BackendChoice {
        let words = self.backend.clone().or_else(|| std::env::var("GATHERUM_BACKEND").ok());
        BackendChoice::parse(&words.unwrap_or_default())
    }

    pub(crate) fn builder(&self) -> EngineBuilder {
        let builder = Engine::builder();
        match self.memory_budget {
            Some(budget) => builder.memory_budget(budget),
            None => builder,
        }
    }

    pub(crate) fn engine(&self) -> Outcome<Engine> {
        let engine = self.builder().backend(self.choice()).build_blocking()?;
        tracing::info!(backend = %engine.backend(), "engine ready");
        Ok(engine)
    }
}

pub(crate) fn parse_bytes(text: &str) -> Result<Bytes, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("a whole number of bytes, or of kB, MB, GB, KiB, MiB or GiB, is wanted".to_owned()),
    };
    let number: u64 = number.parse().map_err(|error| format!("{number:?}: {error}"))?;
    number.checked_mul(factor).map(Bytes).ok_or_else(|| "it does not fit 64 bits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_units() {
        assert_eq!(parse_bytes("0"), Ok(Bytes(0)));
        assert_eq!(parse_bytes("12 MB"), Ok(Bytes(12_000_000)));
        assert_eq!(parse_bytes("3GiB"), Ok(Bytes(3 << 30)));
        for odd in ["", "MB", "-1", "1.5GB", "1 mb", "99999999999999999999", "18446744073709551615kB"] {
            assert!(parse_bytes(odd).is_err(), "{odd}");
        }
    }
}
