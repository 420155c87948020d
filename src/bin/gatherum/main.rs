//! The `gatherum` command: compresses embedding tables, shows what is in them, looks rows up.
//!
//! One file a subcommand. Answers go to standard output, all else to standard error; `failure.rs` has the exit codes.

mod adapters;
mod backend;
mod compress;
mod cosine;
mod data;
mod demo;
mod evaluate;
mod failure;
mod input;
mod inspect;
mod lookup;
mod neighbors;
mod output;
mod wordsim;

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use backend::BackendArgs;
use failure::{EXIT_CODES, Failure, Outcome};

/// Embedding tables on any GPU, in a tenth of the memory: compress, inspect and look up.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    backend: BackendArgs,

    /// Say more on standard error: -v what is chosen, -vv what is done, -vvv what wgpu does
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List every adapter, its limits and features, and whether the engine would take it
    Adapters(adapters::Args),
    /// Compress a table of f32, f16 or f64 rows to a table file, and report what that cost
    Compress(compress::Args),
    /// Show what is in a table file, and verify it; or what would be read from another file
    Inspect(inspect::Args),
    /// Look rows up by id or word
    Lookup(lookup::Args),
    /// Find the nearest rows by cosine, exactly
    Neighbors(neighbors::Args),
    /// Compress a table by every scheme and compare sizes, errors and speed on every backend
    Demo(demo::Args),
    /// Compress a table by every scheme and measure how much of its meaning is kept
    Evaluate(evaluate::Args),
}

fn main() -> ExitCode {
    let command = Cli::command().mut_subcommand("compress", |command| command.after_help(compress::schemes_help()));
    let matches = command.get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    log_to_stderr(cli.verbose);
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

fn run(cli: &Cli) -> Outcome {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    match &cli.command {
        Command::Adapters(args) => adapters::run(args, &cli.backend, &mut out),
        Command::Compress(args) => compress::run(args, &mut out),
        Command::Inspect(args) => inspect::run(args, &mut out),
        Command::Lookup(args) => lookup::run(args, &cli.backend, &mut out),
        Command::Neighbors(args) => neighbors::run(args, &cli.backend, &mut out),
        Command::Demo(args) => demo::run(args, &cli.backend, &mut out),
        Command::Evaluate(args) => evaluate::run(args, &cli.backend, &mut out),
    }?;
    out.flush().map_err(Failure::from)
}

/// What the library logs, on standard error; `RUST_LOG` overrides how much.
fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => "gatherum=warn",
        1 => "gatherum=info",
        2 => "gatherum=debug",
        _ => "debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .init();
}
