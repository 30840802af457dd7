//! Reads, changes, writes and removes the files of `tenants.d/`. Each file is replaced as a whole.

use std::io::ErrorKind;
use std::path::PathBuf;

use kernel::Tenant;
use toml::{Table, Value};

use super::tenant_settings::TenantSettings;
use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use base::paths::definition_file::{self, TextForm};
use setup::config::settings;
use setup::config::tenants::TenantConfig;

/// Returns the path of a tenant's file.
pub(super) fn path_of(root: &Root, name: &Tenant) -> PathBuf {
    root.tenants_dir().join(format!("{name}.toml"))
}

/// Returns the text of a tenant's file.
pub(super) fn text_of(root: &Root, name: &Tenant) -> Result<String, Failure> {
    let path = path_of(root, name);
    settings::read(&path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Failure::new(Code::NotFound, format!("there is no file {}", path.display()))
            .hint(format!("`supervisor tenant list` lists them; `supervisor tenant create {name}` makes it")),
        _ => Failure::file("read", &path, &e),
    })
}

/// Writes the file of a tenant atomically: readers get the old or the new text.
pub(super) fn write(root: &Root, name: &Tenant, text: &str) -> Result<PathBuf, Failure> {
    let path = path_of(root, name);
    definition_file::write(&path, text)?;
    Ok(path)
}

/// Removes the file of a tenant.
pub(super) fn remove(root: &Root, name: &Tenant) -> Result<PathBuf, Failure> {
    let path = path_of(root, name);
    std::fs::remove_file(&path).map_err(|e| Failure::file("remove", &path, &e))?;
    Ok(path)
}

/// Returns sentences about the parts of a tenant that remain after the removal of its file. `text` is the text of the
/// removed file.
pub(super) fn remaining_parts(root: &Root, name: &Tenant, text: &str) -> Vec<String> {
    let table: Table = text.parse().unwrap_or_default();
    // A missing configuration names no tenant. Other commands report a configuration that cannot be read.
    let config = settings::read(&root.config_file()).unwrap_or_default();
    let dir = table.get("root").and_then(Value::as_str).map(|dir| format!("its directory {dir} stays"));
    let user = table.get("user").map(|user| format!("the Unix user {user} stays"));
    let others: Table = config.parse().unwrap_or_default();
    let own = is_named(&others, name)
        .then(|| format!("what supervisor.toml says of the tenant {name} still holds"));
    dir.into_iter().chain(user).chain(own).collect()
}

/// Returns true if a table of `supervisor.toml`, such as `limits.tenants`, has a key for a tenant.
fn is_named(config: &Table, name: &Tenant) -> bool {
    let tables = config.values().filter_map(Value::as_table);
    let mut of_tenants = tables.filter_map(|table| table.get("tenants")).filter_map(Value::as_table);
    of_tenants.any(|tenants| tenants.contains_key(name.as_str()))
}

/// Settings to write into the file of a tenant, and keys to remove.
#[derive(Clone, Copy, Debug)]
pub(super) struct TenantChanges<'a> {
    pub(super) settings: &'a TenantSettings,
    /// Keys to remove from the file.
    pub(super) unset: &'a [String],
}

impl TenantChanges<'_> {
    /// Returns the settings after the change, and the new text of the file.
    ///
    /// # Errors
    /// A key to remove does not exist, or the changed settings cannot be used.
    pub(super) fn apply(
        self,
        root: &Root,
        name: &Tenant,
        text: &str,
    ) -> Result<(TenantConfig, String), Failure> {
        let path = path_of(root, name);
        let (form, text) = TextForm::split(text);
        let mut table: Table = text.parse().map_err(|e: toml::de::Error| {
            Failure::usage(format!("{}: {}", path.display(), e.message()))
                .hint("correct the file, or remove it")
        })?;
        for key in self.unset {
            if table.remove(key).is_none() {
                return Err(Failure::usage(format!("{} has no key `{key}`", path.display()))
                    .hint(format!("it has: {}", table.keys().cloned().collect::<Vec<_>>().join(", "))));
            }
        }
        self.set(&mut table)?;
        let text = form.written(&table.to_string());
        let read = TenantConfig::parse(&path, &text).map_err(|defect| {
            Failure::usage(defect.to_string())
                .hint("`supervisor help docs/configuration.md` describes the file; nothing was written")
        })?;
        Ok((read, text))
    }

    fn set(self, table: &mut Table) -> Result<(), Failure> {
        let TenantSettings { dir, unix_user, members, groups, boards, max_running, .. } = self.settings;
        if let Some(root) = dir {
            let path = std::path::absolute(root).map_err(|e| Failure::file("resolve", root, &e))?;
            let Some(path) = path.to_str() else {
                return Err(Failure::usage(format!("{} is not UTF-8 text", path.display()))
                    .hint("choose another directory"));
            };
            table.insert("root".to_owned(), path.into());
        }
        // The file distinguishes numbers, which are uids and gids, from names.
        let user_or_number =
            |name: &String| name.parse::<i64>().map_or_else(|_| name.as_str().into(), Value::from);
        if let Some(user) = unix_user {
            table.insert("user".to_owned(), user_or_number(user));
        }
        for (key, names) in [("users", members), ("groups", groups)] {
            if !names.is_empty() {
                table.insert(key.to_owned(), names.iter().map(user_or_number).collect::<Vec<_>>().into());
            }
        }
        if !boards.is_empty() {
            let boards: Vec<Value> = boards.iter().map(|board| board.as_str().into()).collect();
            table.insert("boards".to_owned(), boards.into());
        }
        if *max_running == Some(0) {
            return Err(Failure::usage("--max-running 0 would keep all tasks of the tenant from starting")
                .hint(
                    "give 1 or more, or stop its tasks with `supervisor hold --tenant NAME --reason TEXT`",
                ));
        }
        if let Some(most) = max_running {
            table.insert("max_running".to_owned(), i64::from(*most).into());
        }
        let TenantSettings { max_runtime, policy, assignee, pools, quotas, budget, .. } = self.settings;
        let words = [
            ("max_runtime", max_runtime.clone()),
            ("policy", policy.clone()),
            ("assignee", assignee.as_ref().map(ToString::to_string)),
        ];
        for (key, word) in words {
            if let Some(word) = word {
                table.insert(key.to_owned(), word.into());
            }
        }
        for (key, pairs) in [("pools", pools), ("quotas", quotas), ("budget", budget)] {
            if pairs.is_empty() {
                continue;
            }
            // Entries of the table that are not named stay.
            let inner = table.entry(key).or_insert_with(|| Table::new().into());
            let Some(inner) = inner.as_table_mut() else {
                return Err(
                    Failure::usage(format!("`{key}` is not a table in the file")).hint("correct the file")
                );
            };
            for (name, value) in pairs {
                inner.insert(name.clone(), number(name, value)?);
            }
        }
        Ok(())
    }
}

/// Parses the number after the `=` of an argument such as `--budget tokens=5`.
///
/// # Errors
/// The text is not a number. Durations and sizes with a unit are refused.
fn number(name: &str, value: &str) -> Result<Value, Failure> {
    if let Ok(whole) = value.parse::<i64>() {
        // In the file, an amount of money is a floating-point number.
        let is_money = name == "cost_usd";
        #[expect(clippy::cast_precision_loss, reason = "an amount of money is far below 2^52")]
        return Ok(if is_money { Value::Float(whole as f64) } else { Value::Integer(whole) });
    }
    match value.parse::<f64>() {
        Ok(amount) if amount.is_finite() => Ok(Value::Float(amount)),
        Ok(_) | Err(_) => Err(Failure::usage(format!("{name}={value}: `{value}` is not a number"))
            .hint("write one, such as 20")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::paths::RootChoice;

    fn root() -> Root {
        RootChoice { root: Some("/srv/x".into()), ..RootChoice::default() }.resolve(|_| None).unwrap()
    }

    fn apply(settings: &TenantSettings, unset: &[&str], text: &str) -> Result<String, Failure> {
        let unset: Vec<String> = unset.iter().map(|key| (*key).to_owned()).collect();
        let changes = TenantChanges { settings, unset: &unset };
        changes.apply(&root(), &"acme".parse().unwrap(), text).map(|(_, text)| text)
    }

    #[test]
    fn what_is_named_changes_and_the_rest_stays() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let settings = TenantSettings {
            max_running: Some(3),
            members: vec!["ann".to_owned(), "1001".to_owned()],
            quotas: vec![pair("creates", "7")],
            budget: vec![pair("cost_usd", "5")],
            ..TenantSettings::default()
        };
        let text = "policy = \"strict\"\nmax_runtime = \"1h\"\n[quotas]\nlinks = 9\n";
        let text = apply(&settings, &["max_runtime"], text).unwrap();
        let table: Table = text.parse().unwrap();
        assert_eq!(table["policy"].as_str(), Some("strict"));
        assert_eq!(table.get("max_runtime"), None);
        assert_eq!(
            (table["quotas"]["links"].as_integer(), table["quotas"]["creates"].as_integer()),
            (Some(9), Some(7))
        );
        assert_eq!(table["users"][1].as_integer(), Some(1001));
        assert_eq!(table["budget"]["cost_usd"].as_float(), Some(5.0));
        let marked =
            apply(&settings, &["max_runtime"], "\u{feff}policy = \"strict\"\r\nmax_runtime = \"1h\"\r\n")
                .unwrap();
        assert!(marked.starts_with('\u{feff}'), "{marked:?}");
        assert_eq!(marked.matches('\n').count(), marked.matches("\r\n").count(), "{marked:?}");
    }

    #[test]
    fn what_the_file_could_not_say_is_refused() {
        let quota = |name: &str, value: &str| TenantSettings {
            quotas: vec![(name.to_owned(), value.to_owned())],
            ..TenantSettings::default()
        };
        assert!(apply(&quota("creates", "many"), &[], "").unwrap_err().message.contains("many"));
        assert!(apply(&quota("nothing", "1"), &[], "").unwrap_err().message.contains("unknown field"));
        assert!(apply(&TenantSettings::default(), &["policy"], "").unwrap_err().message.contains("no key"));
        let zero = TenantSettings { max_runtime: Some("0".to_owned()), ..TenantSettings::default() };
        assert!(apply(&zero, &[], "").unwrap_err().message.contains("max_runtime is 0"));
    }
}
