// SPDX-License-Identifier: Apache-2.0
//! Which rules are in force: one book, several sources that offer it documents.
//!
//! The higher revision wins, wherever it came from. Nothing takes rules away: not a bad document, not a missing one.

mod book;
mod glass;
mod live;
mod mount;
mod sources;
mod state_dir;
mod unpack;
mod watch;

pub(crate) use self::book::{Offer, Refusal, RuleBook, Source};
pub(crate) use self::glass::{Glass, GlassReport};
pub(crate) use self::live::Live;
pub(crate) use self::sources::{GlassSources, Sources};
pub(crate) use self::state_dir::StateDir;
pub(crate) use self::watch::{WatchHealth, WatchReport, WatchState};
