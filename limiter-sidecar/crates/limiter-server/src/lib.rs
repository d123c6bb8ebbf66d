// SPDX-License-Identifier: Apache-2.0
//! The limiter as a server: Envoy's questions come in over gRPC, the store is asked, the answers go out.
//!
//! `authz` talks to Envoy, `store` to Redis, `rules` finds the rules in force, `admin` answers people and the operator.
//! What a rule means is limiter-core's matter; Python is limiter-py's.
#![forbid(unsafe_code)]

mod admin;
mod authz;
mod clock;
mod denied;
mod evidence;
pub mod logging;
mod memory;
mod metrics;
mod options;
mod pause;
mod rules;
mod server;
mod shared;
mod store;
mod threads;

pub use limiter_core::{HashKey, HashKeyError, PayloadPlace};

pub use self::options::{ConfigError, ConfigMapName, Listen, MOST_THREADS, Options};
pub use self::server::{RulesetRefused, Server, Stats};
pub use self::store::scripts;
