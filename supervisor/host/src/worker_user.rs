//! Chooses the user and group of a process that works in the files of an owner.
//!
//! The group is the primary group of the owner's account. The group of the directory would be wrong: a directory that is made
//! in a set-group-ID directory gets the group of that directory, and its owner need not be a member of this group.
//!
//! See decision 0249.

use nix::errno::Errno;
use nix::unistd::Uid;
use policies::Identity;

use super::unix_user::{group_names, look_up};

/// Groups of common distributions whose members can become root, read files that only root may read, or read the mail, the
/// input or the journals of all users.
const POWERFUL: [&str; 29] = [
    "adm",
    "admin",
    "daemon",
    "disk",
    "docker",
    "incus",
    "incus-admin",
    "input",
    "kmem",
    "kvm",
    "libvirt",
    "lpadmin",
    "lxd",
    "mail",
    "netdev",
    "operator",
    "podman",
    "root",
    "shadow",
    "ssl-cert",
    "staff",
    "sudo",
    "sys",
    "systemd-journal",
    "tape",
    "tty",
    "utmp",
    "vboxusers",
    "wheel",
];

/// Group without members and files on every host (`nogroup`, the overflow gid of the kernel).
const NO_GROUP: u32 = 65_534;

/// Reason why no worker runs as the owner of certain files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("belongs to root, and no worker runs as root")]
    Root,
    #[error(
        "belongs to the user {user}, whose primary group {group} has power over this host; no worker has that group"
    )]
    Powerful { user: String, group: String },
    #[error("belongs to uid {uid}, and its account cannot be looked up: {errno}")]
    Unknown { uid: u32, errno: Errno },
}

impl Unfit {
    /// Returns the remedy, if it does not depend on the directory.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Root => None,
            Self::Powerful { user, .. } => Some(format!(
                "give the work to a user of its own, or give {user} another primary group: usermod -g <group> {user}"
            )),
            Self::Unknown { .. } => Some("see whether the user database answers: getent passwd".to_owned()),
        }
    }

    /// Returns true if another try may succeed without a change by a person.
    pub fn is_momentary(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

/// Owner of files, as far as the host knows the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOwner {
    /// The user has an account: its uid and its primary group.
    Listed(Identity),
    /// The uid has no account, so the host knows no group for it.
    Unlisted(u32),
}

impl FileOwner {
    /// Looks up an owner in the user database. Blocks: the database may be a slow network service.
    ///
    /// # Errors
    /// The owner is root or has a powerful primary group, or the user database does not respond.
    pub fn look_up(uid: u32) -> Result<Self, Unfit> {
        if uid == 0 {
            return Err(Unfit::Root);
        }
        let unknown = |errno| Unfit::Unknown { uid, errno };
        let Some(user) = look_up(Uid::from_raw(uid)).map_err(unknown)? else {
            return Ok(FileOwner::Unlisted(uid));
        };
        let names = group_names(user.gid).map_err(unknown)?;
        match power(user.gid, &names) {
            Some(group) => Err(Unfit::Powerful { user: user.name, group }),
            None => Ok(FileOwner::Listed(Identity { uid, gid: user.gid })),
        }
    }

    /// Returns the user and group of a worker. `own_gid` gives a group that no other process has, for an owner without
    /// an account.
    ///
    /// # Errors
    /// Failure of `own_gid`.
    pub fn worker<E>(self, own_gid: impl FnOnce() -> Result<u32, E>) -> Result<Identity, E> {
        match self {
            FileOwner::Listed(identity) => Ok(identity),
            FileOwner::Unlisted(uid) => own_gid().map(|gid| Identity { uid, gid }),
        }
    }
}

/// Returns the user and group of a job process in the files of an owner other than root. If a worker would be refused, the
/// job process gets a group without rights, because a job executes no program of the owner.
pub fn job_user(uid: u32) -> Identity {
    match FileOwner::look_up(uid) {
        Ok(FileOwner::Listed(identity)) => identity,
        // Workers with a uid from the supervisor's range have the gid of the same number.
        Ok(FileOwner::Unlisted(_)) if matches!(group_names(uid).as_deref(), Ok([])) => {
            Identity { uid, gid: uid }
        }
        Ok(FileOwner::Unlisted(_)) | Err(_) => Identity { uid, gid: NO_GROUP },
    }
}

/// Returns the name of a group that has power over the host; none if it has no power.
fn power(gid: u32, names: &[String]) -> Option<String> {
    let powerful = names.iter().find(|name| POWERFUL.contains(&name.as_str())).cloned();
    powerful.or_else(|| (gid == 0).then(|| "root".to_owned()))
}

#[cfg(test)]
mod tests {
    use nix::unistd::User;

    use super::*;

    const ACCOUNTLESS: u32 = 61_733;

    #[test]
    fn a_group_has_power_by_each_of_its_names_and_group_0_by_its_number() {
        let names = ["containers", "docker"].map(str::to_owned);
        assert_eq!(power(995, &names).as_deref(), Some("docker"));
        assert_eq!(power(1000, &["ann".to_owned()]), None);
        assert_eq!(power(0, &[]).as_deref(), Some("root"));
        assert!(POWERFUL.is_sorted());
    }

    #[test]
    fn an_owner_with_an_account_has_its_primary_group_and_another_a_group_of_the_run() {
        assert_eq!(FileOwner::look_up(0), Err(Unfit::Root));
        assert_eq!(FileOwner::look_up(ACCOUNTLESS), Ok(FileOwner::Unlisted(ACCOUNTLESS)));
        let own = |gid| FileOwner::Unlisted(ACCOUNTLESS).worker(|| Ok::<_, Errno>(gid));
        assert_eq!(own(7), Ok(Identity { uid: ACCOUNTLESS, gid: 7 }));
        let nobody = User::from_name("nobody").unwrap().unwrap();
        let listed = FileOwner::look_up(nobody.uid.as_raw()).unwrap();
        let none = || Err(Errno::EIO);
        assert_eq!(listed.worker(none), Ok(Identity { uid: nobody.uid.as_raw(), gid: nobody.gid.as_raw() }));
    }

    #[test]
    fn an_owner_whose_primary_group_has_power_is_refused_by_name() {
        let Some(sys) = User::from_name("sys").ok().flatten() else { return skips::skip("no user sys") };
        let unfit = FileOwner::look_up(sys.uid.as_raw()).unwrap_err();
        assert_eq!(unfit, Unfit::Powerful { user: "sys".to_owned(), group: "sys".to_owned() });
        assert!(unfit.hint().unwrap().contains("usermod -g <group> sys"));
        assert_eq!(job_user(sys.uid.as_raw()), Identity { uid: sys.uid.as_raw(), gid: NO_GROUP });
    }

    #[test]
    fn a_job_has_the_number_of_its_user_as_group_unless_the_host_has_that_group() {
        assert_eq!(job_user(ACCOUNTLESS), Identity { uid: ACCOUNTLESS, gid: ACCOUNTLESS });
        let taken = [42, 40, 27].into_iter().find(|id| {
            look_up(Uid::from_raw(*id)) == Ok(None) && group_names(*id).is_ok_and(|names| !names.is_empty())
        });
        let Some(taken) = taken else { return skips::skip("no group without a user of its number") };
        assert_eq!(job_user(taken), Identity { uid: taken, gid: NO_GROUP });
    }
}
