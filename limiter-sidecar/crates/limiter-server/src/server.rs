// SPDX-License-Identifier: Apache-2.0
//! A server's life: bind, start, drain, end. Threads with an event loop each: those that decide, and beside them one for
//! the admin port and one for the rules, so that no scrape or document ever stands in a request's way.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::admin;
use crate::authz::{self, Bound, Dealer, Decider};
use crate::clock::{StoreClock, now_ms};
use crate::denied::Denied;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::options::{ConfigError, MOST_THREADS, Options};
use crate::rules::{Glass, GlassSources, Offer, RuleBook, Source, Sources, StateDir, WatchReport};
use crate::shared::{Calls, Shared};
use crate::store::Stores;
use crate::threads::{Claim, run};

/// How often the series of rules that went are ended.
const TIDY_EVERY: Duration = Duration::from_secs(2);

/// A document that was not put into force; the message names the path of what is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RulesetRefused(String);

/// What a server says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// It has rules, has tried the store, and is not draining.
    pub ready: bool,
    /// All of its threads run.
    pub alive: bool,
    /// The store decides, as far as is known.
    pub store_up: bool,
    /// Revision of the rules in force; 0 without rules.
    pub revision: u64,
}

/// One limiter.
pub struct Server {
    shared: Arc<Shared>,
    options: Options,
    sockets: Option<Sockets>,
    /// The threads that decide.
    data: Vec<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
    drain: watch::Sender<Option<Instant>>,
    end: watch::Sender<bool>,
}

/// Bound, and not yet served.
struct Sockets {
    envoy: Bound,
    admin: std::net::TcpListener,
}

impl Server {
    /// Binds both addresses and reads the last good rules. Nothing runs yet.
    ///
    /// # Errors
    /// [`ConfigError`] that names the setting.
    pub fn new(options: Options) -> Result<Self, ConfigError> {
        // Two libraries bring TLS. Whichever connects first must find the one provider; set twice is no error.
        let _set_already = rustls::crypto::ring::default_provider().install_default();
        if !(1..=MOST_THREADS).contains(&options.threads) {
            return Err(ConfigError::new("threads", format!("must be 1 to {MOST_THREADS}, not {}", options.threads)));
        }
        let sockets = Sockets { envoy: authz::bind(&options.listen)?, admin: authz::bind_tcp("admin", options.admin)? };
        let shared = Arc::new(share(&options)?);
        shared.book.restore();
        let (drain, end) = (watch::Sender::new(None), watch::Sender::new(false));
        Ok(Self { shared, options, sockets: Some(sockets), data: Vec::new(), others: Vec::new(), drain, end })
    }

    /// Starts its threads. A second call does nothing.
    ///
    /// # Errors
    /// [`ConfigError`] when the system refuses a thread or a socket.
    pub fn start(&mut self) -> Result<(), ConfigError> {
        let Some(sockets) = self.sockets.take() else { return Ok(()) };
        self.spawn(sockets).map_err(|error| ConfigError::new("serve", format!("cannot start a thread: {error}")))?;
        tracing::info!(gateway = self.options.gateway, instance = self.options.instance, "serving");
        Ok(())
    }

    fn spawn(&mut self, Sockets { envoy, admin }: Sockets) -> io::Result<()> {
        let (dealer, incoming) = Dealer::new(self.options.threads);
        // The first loop accepts for all.
        let mut door = Some((dealer, envoy));
        let deciders = Decider::each(&self.shared, &self.options, self.drain.subscribe());
        let stores: Vec<_> = self.shared.stores.each().cloned().collect();
        for (number, ((incoming, store), (decider, refunds))) in
            incoming.into_iter().zip(stores).zip(deciders).enumerate()
        {
            let (shared, drain, door) = (Arc::clone(&self.shared), self.drain.subscribe(), door.take());
            self.data.push(run(data_name(number), Claim::Equal, async move {
                tokio::spawn(store.supervise(Arc::clone(&shared.clock)));
                tokio::spawn(shared.beat(number));
                tokio::spawn(refunds);
                let dealing = async {
                    match door {
                        Some((dealer, bound)) => dealer.deal(bound, drain.clone()).await,
                        None => Ok(()),
                    }
                };
                let serving = async {
                    authz::serve(incoming, Arc::new(decider), drain.clone()).await;
                    Ok(())
                };
                tokio::try_join!(dealing, serving).map(|_| ())
            })?);
        }
        let (shared, end, glass) = (Arc::clone(&self.shared), self.end.subscribe(), GlassSources::new(&self.options));
        let control = run("weir-control".to_owned(), Claim::Equal, async move {
            glass.follow(&shared.glass);
            control(admin, shared, end).await
        });
        self.others.push(control?);
        let (book, watch) = (Arc::clone(&self.shared.book), Arc::clone(&self.shared.watch));
        let sources = Sources::new(&self.options).follow(book, watch, self.end.subscribe());
        self.others.push(run("weir-rules".to_owned(), Claim::Least, sources)?);
        Ok(())
    }

    /// Puts a document into force, as if it had come from a watch. Repeating the one that runs is no error.
    ///
    /// # Errors
    /// [`RulesetRefused`] when it is bad, or older than what runs.
    pub fn apply(&self, document: &[u8]) -> Result<(), RulesetRefused> {
        match self.shared.book.offer(document, Source::Push) {
            Ok(Offer::Applied) => Ok(()),
            Ok(Offer::NotNewer { offered, running }) if offered == running => Ok(()),
            Ok(Offer::NotNewer { offered, running }) => {
                Err(RulesetRefused(format!("revision: {offered} is older than {running}, which runs")))
            }
            Err(refusal) => Err(RulesetRefused(refusal.to_string())),
        }
    }

    /// What the server says of itself.
    pub fn stats(&self) -> Stats {
        Stats {
            ready: self.shared.is_ready(),
            alive: !self.data.is_empty() && !self.data.iter().chain(&self.others).any(JoinHandle::is_finished),
            store_up: self.shared.stores.is_up(),
            revision: self.shared.book.live().as_ref().map_or(0, |live| live.ruleset.revision()),
        }
    }

    /// Accepts no more, lets calls under way finish for at most `drain`, then ends. The admin port answers until then.
    pub fn stop(&mut self, drain: Duration) {
        self.shared.draining.store(true, Ordering::Relaxed);
        self.sockets = None;
        self.drain.send_replace(Some(Instant::now() + drain));
        join(&mut self.data);
        self.end.send_replace(true);
        join(&mut self.others);
    }
}

/// Returns when all of them have ended.
fn join(threads: &mut Vec<JoinHandle<()>>) {
    for thread in threads.drain(..) {
        // A thread that panicked has ended too; its panic was already printed.
        let _panicked = thread.join();
    }
}

/// The name of a thread that decides. The system shows 15 bytes of it.
fn data_name(number: usize) -> String {
    if number == 0 { "weir-data".to_owned() } else { format!("weir-data-{}", number + 1) }
}

fn share(options: &Options) -> Result<Shared, ConfigError> {
    let metrics = Arc::new(Metrics::new());
    let name = options.ruleset_name();
    let state = options.state_dir.as_ref().map(|directory| {
        let opened = StateDir::open(directory, &name);
        opened.map_err(|error| ConfigError::new("state-dir", format!("{}: {error}", directory.display())))
    });
    let names = (options.gateway.clone(), name);
    let book = Arc::new(RuleBook::new(names, options.hash_key.clone(), Arc::clone(&metrics), state.transpose()?));
    Ok(Shared {
        instance: options.instance.clone(),
        version: options.version.clone(),
        started_at_ms: now_ms(),
        glass: Arc::new(Glass::new(Arc::clone(&book), Arc::clone(&metrics), options.breakglass_configmap().is_some())),
        book,
        watch: Arc::new(WatchReport::new("rules", options.rules_configmap.is_some())),
        stores: Stores::new(&options.store, options.store_deadline, options.threads)?,
        clock: Arc::new(StoreClock::default()),
        memory: Memory::new(Arc::clone(&metrics)),
        denied: Denied::new(options.deny_cache, Arc::clone(&metrics)),
        metrics,
        calls: Calls::default(),
        draining: AtomicBool::new(false),
        born: Instant::now(),
        heartbeats_ms: (0..options.threads).map(|_| AtomicU64::new(0)).collect(),
    })
}

/// The control plane's side, but for the rules.
async fn control(admin: std::net::TcpListener, shared: Arc<Shared>, mut end: watch::Receiver<bool>) -> io::Result<()> {
    tokio::spawn(admin::serve(TcpListener::from_std(admin)?, Arc::clone(&shared)));
    loop {
        tokio::select! {
            () = sleep(TIDY_EVERY) => shared.book.forget_gone(),
            _ = end.changed() => return Ok(()),
        }
    }
}
