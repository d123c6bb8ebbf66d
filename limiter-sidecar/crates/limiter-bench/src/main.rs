// SPDX-License-Identifier: Apache-2.0
//! The programs behind `make bench`: `echo`, the canary; `load`, which measures; both on one thread each.
//!
//! Their whole configuration is one JSON argument, or standard input for `-`, because a program calls them: see
//! [`config`]. `load` prints one JSON object to standard output. Nothing here knows the limiter's own code, so that nothing here can flatter it.

mod check;
mod config;
mod connect;
mod echo;
mod grpc;
mod http;
mod pace;
mod report;
mod script;

use std::process::ExitCode;
use std::rc::Rc;

use config::{Load, Target};
use report::Report;

/// Why a run ended early; printed, never handled.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error("usage: limiter-bench echo|load JSON|-")]
    Usage,
    #[error("the configuration: {0}")]
    Config(#[from] serde_json::Error),
    #[error("the socket: {0}")]
    Io(#[from] std::io::Error),
    #[error("HTTP/2: {0}")]
    Http2(#[from] h2::Error),
    #[error("a request: {0}")]
    Request(#[from] ::http::Error),
    #[error("the histogram: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
    #[error("the answer is not understood: {0}")]
    Answer(&'static str),
}

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "a command-line program says why it failed")]
            {
                eprintln!("limiter-bench: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), BenchError> {
    let [command, json] = arguments else { return Err(BenchError::Usage) };
    let json = if json == "-" { std::io::read_to_string(std::io::stdin())? } else { json.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = tokio::task::LocalSet::new();
    match command.as_str() {
        "echo" => tasks.block_on(&runtime, echo::serve(serde_json::from_str(&json)?)),
        "load" => {
            let report = tasks.block_on(&runtime, load(serde_json::from_str(&json)?))?;
            #[expect(clippy::print_stdout, reason = "this is the program's result")]
            {
                println!("{}", serde_json::to_string(&report)?);
            }
            Ok(())
        }
        _ => Err(BenchError::Usage),
    }
}

async fn load(load: Load) -> Result<Report, BenchError> {
    match &load.target {
        Target::Grpc { requests } => {
            let client = grpc::Client::connect(&load, requests).await?;
            pace::drive(&load, Rc::new(client)).await
        }
        Target::Http { requests } => {
            let client = http::Client::connect(&load, requests).await?;
            pace::drive(&load, Rc::new(client)).await
        }
        Target::Script { commands } => {
            let client = script::Client::connect(&load, commands).await?;
            pace::drive(&load, Rc::new(client)).await
        }
    }
}
