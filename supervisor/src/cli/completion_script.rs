//! The script through which a shell asks this program for completions.

use clap_complete::Shell;
use clap_complete::env::Shells;

use base::failure::Failure;

/// The variable that the script sets.
pub(super) const VARIABLE: &str = "SUPERVISOR_COMPLETE";

/// Extra lines for zsh. At the first press of Tab, zsh loads a file of its search path as the function `_supervisor`.
/// These lines make this first press complete as well.
const AUTOLOADED: &str = "
if [[ \"$funcstack[1]\" = _supervisor ]]; then
    _clap_dynamic_completer_supervisor \"$@\"
fi
";

/// Returns the script for a shell, which calls this program for completions.
pub(super) fn script(shell: Shell) -> Result<String, Failure> {
    let failed = |why: String| Failure::failed(format!("the completions for {shell} cannot be made: {why}"));
    let shells = Shells::builtins();
    let known = shells.completer(&shell.to_string()).ok_or_else(|| failed("no such shell".to_owned()))?;
    let mut script = Vec::new();
    known
        .write_registration(VARIABLE, "supervisor", "supervisor", "supervisor", &mut script)
        .map_err(|e| failed(e.to_string()))?;
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Zsh {
        script.push_str(AUTOLOADED);
    }
    Ok(script)
}
