//! Applies schedules, plugins and the profiles for proposals to the boards. A board gets all of them when it is
//! opened, and again whenever the files are read.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use tokio::sync::Notify;

use super::{BoardHandle, Service};
use setup::automation::plugins::{Listening, Plugins};
use setup::automation::proposals::unconfined;
use setup::automation::schedules::{OfBoard, Schedules};
use setup::config::Config;
use setup::config::notify::NotifyConfig;
use setup::roster::Roster;

impl Service {
    /// Returns the schedules as their files define them. The files are read on first use and at a reload.
    pub fn schedules(&self) -> Arc<Schedules> {
        let mut schedules = self.schedules.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(schedules.get_or_insert_with(|| Arc::new(Schedules::load(&self.root))))
    }

    /// Reads the schedule files again, and applies them to every served board. A file that has become defective keeps
    /// its last good version.
    pub fn read_schedules(&self) {
        // Held until the boards have their jobs, so that the last version read is the last applied.
        let mut schedules = self.schedules.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match schedules.take() {
            Some(before) => Schedules::reload(&self.root, &before),
            None => Schedules::load(&self.root),
        };
        let now = schedules.insert(Arc::new(now));
        let config = self.config();
        for board in self.served() {
            schedule(now, &config.notify, &board);
        }
    }

    /// Returns the plugins as their files define them. The files are read on first use and at a reload.
    pub fn plugins(&self) -> Arc<Plugins> {
        let mut plugins = self.plugins.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(plugins.get_or_insert_with(|| Arc::new(Plugins::load(&self.root))))
    }

    /// Reads the plugin files again, and applies them to every served board. A plugin whose files have become
    /// defective is not run.
    pub fn read_plugins(&self) {
        let mut plugins = self.plugins.lock().unwrap_or_else(PoisonError::into_inner);
        let now = plugins.insert(Arc::new(Plugins::load(&self.root)));
        for board in self.served() {
            listen(now, &board);
        }
        self.news.notify_one();
    }

    /// Removes profiles that proposals may not name any more from the open proposals of every served board.
    pub fn withdraw_profiles(&self) {
        let (roster, config) = (self.roster(), self.config());
        for board in self.served() {
            withdraw(&roster, &config, &board);
        }
    }

    /// Notifies when a board was changed, or the plugins were read again.
    pub fn news(&self) -> &Notify {
        &self.news
    }

    /// Applies schedules, plugins and profiles to a board that was opened or imported.
    pub fn automate(&self, board: &BoardHandle) {
        let mut schedules = self.schedules.lock().unwrap_or_else(PoisonError::into_inner);
        let now = schedules.get_or_insert_with(|| Arc::new(Schedules::load(&self.root)));
        schedule(now, &self.config().notify, board);
        drop(schedules);
        let mut plugins = self.plugins.lock().unwrap_or_else(PoisonError::into_inner);
        listen(plugins.get_or_insert_with(|| Arc::new(Plugins::load(&self.root))), board);
        drop(plugins);
        withdraw(&self.roster(), &self.config(), board);
    }
}

/// Submits the schedules to a board.
fn schedule(schedules: &Schedules, notify: &NotifyConfig, board: &BoardHandle) {
    let usual = notify.default_of(board.name());
    let Some(OfBoard { defined, kept }) = schedules.of_board(board.name(), usual) else { return };
    board.submit("schedules_not_defined", move |board| board.define_schedules(&defined, &kept));
}

/// Submits to a board the plugins for which it keeps event cursors.
fn listen(plugins: &Plugins, board: &BoardHandle) {
    let Some(Listening { listening, kept }) = plugins.listening() else { return };
    let has_none = || board.readers().with(|view| view.plugin_cursors()).is_ok_and(|all| all.is_empty());
    // Saves the write if there is nothing to record.
    if listening.is_empty() && has_none() {
        return;
    }
    let named = move |names: Vec<kernel::PluginName>| names.into_iter().collect::<BTreeSet<_>>();
    let (listening, kept) = (named(listening), named(kept));
    board.submit("plugins_not_defined", move |board| board.define_plugins(&listening, &kept));
}

/// Removes deleted profiles, and profiles without a confining policy, from the open proposals of a board. A profile with
/// a defective file still exists.
fn withdraw(roster: &Roster, config: &Config, board: &BoardHandle) {
    let Ok(offered) = board.readers().with(|view| view.offered_profiles()) else { return };
    let unconfined = unconfined(offered.iter(), roster, config);
    let gone: BTreeSet<_> = offered.into_iter().filter(|name| !roster.knows(name)).collect();
    // Saves the write if there is nothing to record.
    if gone.is_empty() && unconfined.is_empty() {
        return;
    }
    board.submit("profiles_not_withdrawn", move |board| board.withdraw_profiles(&gone, &unconfined));
}
