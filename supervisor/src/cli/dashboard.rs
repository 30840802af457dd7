//! `dashboard` at the command line: a link for a browser, and the sessions of browsers.

use kernel::{BoardName, Tenant};

use super::browser::Browser;
use super::{CommandLine, nouns};
use crate::client::Client;
use crate::output::Output;
use api::person;
use base::environment;
use base::failure::Failure;
use base::terminal::complain;
use verbs::{DashboardLink, OpenDashboard, link_lasts};

/// Open the dashboard: print a one-time link for a browser
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
The link begins a session in the browser that follows it first, within 5 minutes. The
daemon listens on loopback alone, at `listen` in [dashboard] of supervisor.toml; a
session ends after 12 hours without a request, and after 7 days.

Examples:
  supervisor dashboard
  supervisor dashboard --open
  supervisor dashboard --tenant acme
  supervisor dashboard --json
  supervisor dashboard sessions
  supervisor dashboard revoke --all"
)]
pub(super) struct Dashboard {
    /// Open the link in a browser, where this host has a display
    #[arg(long)]
    open: bool,
    /// Limit the session to one tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
    #[command(subcommand)]
    word: Option<nouns::Dashboard>,
}

pub(super) async fn run(line: &CommandLine, dashboard: Dashboard) -> Result<u8, Failure> {
    let (client, output) = (&nouns::client(line)?, line.output);
    if let Some(word) = dashboard.word {
        return word.run(client, output).await;
    }
    let opens = if dashboard.open { Browser::find() } else { None };
    if dashboard.open && opens.is_none() {
        output.warn(&["no browser is opened: neither BROWSER nor a display is set".to_owned()]);
    }
    link(client, output, dashboard.tenant, opens).await
}

async fn link(
    client: &Client,
    output: Output,
    tenant: Option<Tenant>,
    opens: Option<Browser>,
) -> Result<u8, Failure> {
    let asked = OpenDashboard { tenant, own_browser: opens.is_some() };
    let link = on_board(client.call(&asked).await?, client.board());
    let code = output.reply::<OpenDashboard>(&link)?;
    if let Some(Err(why)) = opens.map(|browser| browser.open(client.root(), &link.url)) {
        output.warn(&[format!("{why}; open the link yourself")]);
    }
    if !output.json() {
        complain(&format!("The link works once, within {}.", link_lasts()));
        if let Some(tunnel) = tunnel(&link, environment::text("SSH_CONNECTION").as_deref()) {
            complain(&format!("First run on your own computer:  {tunnel}"));
        }
    }
    Ok(code)
}

/// Adds a board to the link if it is not the default one, so that the page shows this board.
fn on_board(link: DashboardLink, board: &BoardName) -> DashboardLink {
    if *board == BoardName::default() {
        return link;
    }
    let url = link.url.replacen("/open#", &format!("/open?to=/board?board={board}#"), 1);
    DashboardLink { url, ..link }
}

/// Returns the command that forwards the dashboard's port to a person's own host, for a person who came over ssh. None
/// for a local person, or if a proxy publishes the dashboard.
fn tunnel(link: &DashboardLink, connection: Option<&str>) -> Option<String> {
    // `ssh(1)`: the client's address and port, and those of the server.
    let host = connection?.split(' ').nth(2)?;
    let is_plain_http = link.url.starts_with("http://");
    let user = person(nix::unistd::getuid().as_raw()).name;
    is_plain_http.then(|| format!("ssh -L {}:{} {user}@{host}", link.listen.port(), link.listen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_the_board_that_was_named() {
        let link = DashboardLink {
            url: "http://127.0.0.1:8470/open#x".to_owned(),
            seconds: 300,
            listen: "127.0.0.1:8470".parse().unwrap(),
            tenant: None,
        };
        let other = on_board(link, &"other".parse().unwrap());
        assert_eq!(other.url, "http://127.0.0.1:8470/open?to=/board?board=other#x");
        assert_eq!(
            on_board(other, &BoardName::default()).url,
            "http://127.0.0.1:8470/open?to=/board?board=other#x"
        );
    }

    #[test]
    fn who_comes_by_ssh_is_shown_the_tunnel() {
        let link = |url: &str| DashboardLink {
            url: url.to_owned(),
            seconds: 300,
            listen: "127.0.0.1:8470".parse().unwrap(),
            tenant: None,
        };
        let own =
            tunnel(&link("http://127.0.0.1:8470/open#x"), Some("192.0.2.7 50000 192.0.2.9 22")).unwrap();
        assert!(own.starts_with("ssh -L 8470:127.0.0.1:8470 ") && own.ends_with("@192.0.2.9"), "{own}");
        assert_eq!(tunnel(&link("http://127.0.0.1:8470/open#x"), None), None);
        assert_eq!(tunnel(&link("https://fleet.example.org/open#x"), Some("a 1 b 2")), None);
    }
}
