//! Access of a run: policies, their enforcement by the kernel, and the report of the enforcement.
//!
//! ```text
//! Policy ──plan(run context, support)──► Plan ──apply()──► Report
//! ```
//!
//! A [`Policy`] is TOML and denies whatever it does not grant. [`Policy::plan`] opens every path, builds the
//! ruleset and compiles the filter, so that all that can fail has failed before the first restriction.
//! [`Plan::apply`] restricts the calling single-threaded process for good; whatever it then executes inherits the
//! restrictions. The [`Report`] lists each layer as enforced, partly enforced or not enforced.
//!
//! [`Plan::confine`] does so too, and returns the command that the process then executes. `policies/README.md` shows the whole use
//! for other programs, and `policies/examples/confine.rs` is one.
//!
//! What it does not promise: limits on disk space, protection from defects of the kernel, and hiding the metadata of
//! files that belong to the same user where no mount namespace can be had.
//!
//! ```
//! use std::path::Path;
//!
//! let policy = policies::Policy::from_toml("version = 1\nname = 'mine'\nextends = 'strict'\n", Path::new("mine.toml"))?;
//! assert_eq!(policy.name(), "mine");
//! # Ok::<(), policies::PolicyError>(())
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[expect(dead_code, reason = "its documentation is a test")]
struct Readme;

mod access;
mod additions;
mod apply;
mod arrange;
mod boundary;
mod broker;
mod cgroup;
mod check;
mod confined;
mod controller;
mod covers;
mod denial;
mod egress;
mod environment;
mod error;
mod explain;
mod files;
mod filter;
#[cfg(test)]
mod fuzz_tests;
mod hosts;
mod layers;
mod limits;
mod loading;
mod loopback;
mod mode_bits;
mod mount_table;
mod mounting;
mod mounts;
mod namespaces;
mod network;
mod overlays;
mod paths;
mod plan;
mod policy;
mod presets;
mod privileges;
mod process;
mod refusal;
mod report;
mod ruleset;
mod run_context;
mod run_environment;
mod scheduling;
mod secret_stores;
mod secrets;
mod session;
mod shares;
mod support;
mod syscalls;
mod toolchains;
mod user_names;

pub use access::Access;
pub use additions::Additions;
pub use apply::ApplyError;
pub use arrange::{Arrange, Arrangement};
pub use boundary::{Boundary, ClosedPaths, Held, PathRelation};
pub use broker::{Broker, BrokerHost, HeaderName, Token};
pub use confined::Confined;
pub use controller::Controller;
pub use denial::{Denial, Homes, LaneHosts};
pub use egress::{EgressError, Keeper, PROXY_PORT, ask_keeper, receive_listener};
pub use environment::Environment;
pub use error::PolicyError;
pub use explain::{AccessDecision, Want};
pub use files::{Added, Device, Files, Grant, GrantPath, Proc, Shm};
pub use filter::FilterError;
pub use hosts::{Host, HostError, HostRule, Target};
pub use limits::{ByteSize, Holding, Limits};
pub use loading::Source;
pub use loopback::LoopbackError;
pub use mounting::{MountError, ProbeError};
pub use mounts::probe_view;
pub use namespaces::{NamespaceError, PidNamespace};
pub use network::{Mode, Network};
pub use paths::PathError;
pub use plan::Plan;
pub use policy::{Accepted, Compatibility, Confinement, Policy};
pub use privileges::{PrivilegeError, become_user};
pub use process::{MountNamespace, Process, Seccomp};
pub use refusal::PlanError;
pub use report::{Layer, LayerReport, Report, State};
pub use ruleset::{RulesetError, confine_paths, enter_own_domain};
pub use run_context::{BoardAccess, Identity, RunContext};
pub use run_environment::USUAL_PATH;
pub use secret_stores::{NoSecretName, SecretName, SecretStores};
pub use secrets::{CredentialName, Secret, SecretError, SecretValue, Secrets};
pub use support::{BoardKind, Support, View};
pub use toolchains::{Toolchain, ToolchainEnvironment, Toolchains};
pub use user_names::{GROUPS, USERS};
