//! The black-box suite: the built binary, real processes, real confinement. One file per promise.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what fails here fails the test")]
#![expect(clippy::print_stdout, reason = "the log of a failure, and what the host lacks")]

mod harness;
mod http;

mod abuse;
mod answers;
mod api;
mod arrows;
mod attachments;
mod board;
mod boards;
mod bounds;
mod claims;
mod container;
mod crash;
mod damaged;
mod defects;
mod demo;
mod dispatch;
mod displaced;
mod docs;
mod doors;
mod durable;
mod edits;
mod environments;
mod faults;
mod flags;
mod following;
mod full;
mod gc;
mod git;
mod graph;
mod guides;
mod help;
mod house;
mod injector;
mod journal;
mod lanes;
mod limits;
mod loopback;
mod mounts;
mod moved;
mod pages;
mod parity;
mod plants;
mod processes;
mod regressions;
mod repeats;
mod review;
mod run_doors;
mod shortages;
mod siege;
mod spine;
mod steps;
mod stop;
mod survivors;
mod transfer;
mod turns;
mod unhappy;
mod upgrade;
mod walls;
mod why;
mod words;
mod worker;
