//! The script through which a shell asks this program for completions.

use clap_complete::Shell;
use clap_complete::env::Shells;

use base::failure::Failure;

/// The variable by which the script asks.
pub(super) const VARIABLE: &str = "SUPERVISOR_COMPLETE";

/// Extra lines for zsh. It loads a file of its search path as the function `_supervisor` at the first press of the key, and that press
/// needs an answer too.
const AUTOLOADED: &str = "
if [[ \"$funcstack[1]\" = _supervisor ]]; then
    _clap_dynamic_completer_supervisor \"$@\"
fi
";

/// The script of a shell, which asks this program for what there is.
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
