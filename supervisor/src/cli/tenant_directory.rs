//! Creates the directory and the Unix user of a tenant on request, and refuses an existing directory of another owner.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::path::Path;
use std::process::Command;

use kernel::Tenant;

use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use host::unix_user::{Login, is_group, login};
use host::worker_user::FileOwner;
use setup::config::tenants::{TenantConfig, Tenants, UserName};

/// Directory of a tenant, with the user who has to own it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TenantDirectory<'a> {
    root: Option<&'a Path>,
    user: Option<&'a UserName>,
}

impl<'a> TenantDirectory<'a> {
    /// Returns the directory and the user in the settings of a tenant.
    pub(super) fn from_config(tenant: &'a TenantConfig) -> Self {
        TenantDirectory { root: tenant.root.as_deref(), user: tenant.user.as_ref() }
    }
}

/// Checks the user and the directory of a tenant, and creates the directory if it does not exist. Refuses a user that no
/// worker can have. Refuses a directory behind a symbolic link, of another user, in or around the supervisor's own
/// directories, and with write permission for every user.
pub(super) fn prepare(supervisor_root: &Root, directory: TenantDirectory<'_>) -> Result<(), Failure> {
    let caller = nix::unistd::geteuid();
    let user = directory.user.map(known).transpose()?;
    if let Some(user) = user.filter(|user| !caller.is_root() && user.uid != caller.as_raw()) {
        return Err(Failure::new(
            Code::NotPermitted,
            format!("the workers of this user's daemon cannot be uid {}", user.uid),
        )
        .hint("leave --unix-user out, or run the service as root"));
    }
    if let Some(root) = user.filter(|user| user.uid == 0) {
        return Err(Failure::usage(format!("uid {} is root, and no worker runs as root", root.uid))
            .hint("name an ordinary user, or leave --unix-user out"));
    }
    if let Some(Err(unfit)) = user.filter(|_| caller.is_root()).map(|user| FileOwner::look_up(user.uid)) {
        let remedy = unfit.hint().unwrap_or_default();
        return Err(Failure::usage(format!("the directory of the tenant {unfit}")).hint(remedy));
    }
    let Some(root) = directory.root else { return Ok(()) };
    if supervisor_root.closed().iter().any(|closed| root.starts_with(closed) || closed.starts_with(root)) {
        return Err(Failure::usage(format!("{} lies in the supervisor's own directories", root.display()))
            .hint("choose another directory, such as /srv/NAME"));
    }
    let wanted = user.map_or(caller.as_raw(), |user| user.uid);
    if root.symlink_metadata().is_err() {
        make(root, user)?;
    }
    require(root, wanted)
}

/// Creates the directory with mode 0750, for its user and group.
fn make(root: &Path, user: Option<Login>) -> Result<(), Failure> {
    let above = root.parent().unwrap_or(root);
    let fail = |e: std::io::Error| Failure::file("make the directory", root, &e);
    require_no_link(above)?;
    DirBuilder::new().mode(0o750).create(root).map_err(fail)?;
    match user {
        Some(user) => chown(root, Some(user.uid), Some(user.gid)).map_err(fail),
        None => Ok(()),
    }
}

fn require(root: &Path, wanted: u32) -> Result<(), Failure> {
    require_no_link(root)?;
    let meta =
        root.symlink_metadata().map_err(|e| Failure::named_file("look at", root, &e, "a directory"))?;
    let shown = root.display();
    if !meta.is_dir() {
        return Err(Failure::usage(format!("{shown} is not a directory")).hint("choose another one"));
    }
    if meta.uid() != wanted {
        return Err(Failure::new(
            Code::NotPermitted,
            format!("{shown} belongs to uid {}, and the tenant's user is uid {wanted}", meta.uid()),
        )
        .hint(format!("choose another directory, or give it to that user: chown {wanted} {shown}")));
    }
    if meta.mode() & 0o002 != 0 {
        return Err(Failure::new(Code::NotPermitted, format!("every user may write to {shown}"))
            .hint(format!("chmod o-w {shown}")));
    }
    Ok(())
}

/// Refuses a path with a symbolic link, because its target may change later.
fn require_no_link(path: &Path) -> Result<(), Failure> {
    let real = path.canonicalize().map_err(|e| Failure::named_file("resolve", path, &e, "a directory"))?;
    if real == path {
        return Ok(());
    }
    Err(Failure::usage(format!("{} leads through a symbolic link to {}", path.display(), real.display()))
        .hint(format!("name the directory itself: {}", real.display())))
}

fn known(name: &UserName) -> Result<Login, Failure> {
    login(name).ok_or_else(|| {
        Failure::new(Code::NotFound, format!("this host knows no user `{name}`"))
            .hint("name an existing user, or create it: --create-user, as root")
    })
}

/// Returns warnings about users and groups of a tenant that do not exist on this host and so give no account access.
fn unknown_users(tenant: &TenantConfig) -> Vec<String> {
    let unknown = |what: &str, name: &UserName| {
        format!(
            "this host has no {what} `{name}`: that name gives nobody access to the tenant until it exists"
        )
    };
    let users = tenant.users.iter().filter(|name| login(name).is_none() && matches!(name, UserName::Name(_)));
    let groups = tenant.groups.iter().filter(|name| !is_group(name));
    users.map(|name| unknown("user", name)).chain(groups.map(|name| unknown("group", name))).collect()
}

/// Returns warnings about settings of a tenant that its users or workers cannot use.
pub(super) fn obstacles(
    supervisor_root: &Root,
    name: &Tenant,
    tenant: &TenantConfig,
    others: &Tenants,
) -> Vec<String> {
    let mut obstacles_found = unknown_users(tenant);
    let owner = |path: &Path| path.symlink_metadata().map(|meta| meta.uid()).ok();
    if !(tenant.users.is_empty() && tenant.groups.is_empty())
        && owner(supervisor_root.dir()).is_some_and(|owner| owner != 0)
    {
        obstacles_found.push(
            "its users can use the root of a service that runs as root alone: this one belongs to another user".to_owned(),
        );
    }
    let Some(root) = &tenant.root else { return obstacles_found };
    let shown = root.display();
    if owner(root) == Some(0) {
        obstacles_found.push(format!(
            "{shown} belongs to root, and no worker runs as root: tasks can work in directories beneath it that belong to others, or name --unix-user"
        ));
    }
    let overlaps = |other: &Path| root.starts_with(other) || other.starts_with(root);
    for (other, config) in others.iter().filter(|(other, _)| other != name) {
        if let Some(path) = config.root.as_ref().filter(|path| overlaps(path)) {
            obstacles_found.push(format!(
                "{shown} and {}, the directory of the tenant {other}, lie in each other",
                path.display()
            ));
        }
    }
    obstacles_found
}

/// Creates the system user of a tenant with useradd(8).
pub(super) fn create_user(tenant: &TenantConfig) -> Result<(), Failure> {
    let (Some(UserName::Name(name)), Some(root)) = (&tenant.user, &tenant.root) else {
        return Err(Failure::usage("--create-user needs the name of a user and a directory")
            .hint("say --unix-user NAME and --dir DIR"));
    };
    if !nix::unistd::geteuid().is_root() {
        return Err(Failure::new(Code::NotPermitted, "only root creates users")
            .hint("run the command as root, or name an existing user"));
    }
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_');
    let goes_on = letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c));
    if !begins || !goes_on || name.len() > 32 {
        return Err(Failure::usage(format!("`{name}` is not a name for a user of this host"))
            .hint("use 1 to 32 of a-z 0-9 _ -, starting with a letter"));
    }
    if login(&UserName::Name(name.clone())).is_some() {
        return Err(Failure::new(Code::Conflict, format!("the user {name} exists already"))
            .hint("leave --create-user out"));
    }
    let made = Command::new("useradd")
        .args(["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", "--home-dir"])
        .arg(root)
        .arg(name)
        .output()
        .map_err(|e| {
            Failure::failed(format!("failed to run useradd: {e}"))
                .hint("install the package passwd or shadow")
        })?;
    if made.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&made.stderr);
    Err(Failure::failed(format!("useradd failed: {}", why.trim())).hint("nothing else was made"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_another_user_a_link_and_an_open_one_are_refused() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let euid = nix::unistd::geteuid().as_raw();
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let root = real.join("acme");
        make(&root, None).unwrap();
        assert_eq!(root.metadata().unwrap().permissions().mode() & 0o777, 0o750);
        require(&root, euid).unwrap();
        assert_eq!(require(&root, euid + 1).unwrap_err().code, Code::NotPermitted);
        symlink(&root, real.join("link")).unwrap();
        assert!(require(&real.join("link"), euid).unwrap_err().message.contains("symbolic link"));
        assert!(require(&real.join("link/.."), euid).is_err());
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o757)).unwrap();
        assert!(require(&root, euid).unwrap_err().message.contains("every user"));
    }
}
