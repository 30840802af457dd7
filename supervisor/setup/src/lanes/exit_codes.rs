//! Meanings of a program's exit codes, for endings that standard output does not explain.

use kernel::{EX_TEMPFAIL, OwnLimit};
use serde::{Deserialize, Serialize};

use super::formats::{Finish, Refuser};

/// Table `[exit_codes]` of a lane's file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExitCodesFile {
    rate_limit: Vec<Code>,
    login: Vec<Code>,
    turn_limit: Vec<Code>,
    cost_limit: Vec<Code>,
    unavailable: Vec<Code>,
}

/// Exit codes of a program that mean more than a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExitCodes {
    /// The service refuses the program for a while.
    rate_limit: Vec<i32>,
    /// The service accepts no login of the program.
    login: Vec<i32>,
    /// The program met its turn limit.
    turn_limit: Vec<i32>,
    /// The program met its cost limit.
    cost_limit: Vec<i32>,
    /// The service fails or is unreachable.
    unavailable: Vec<i32>,
}

/// A failure's exit code, 1 to 255.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "i64")]
struct Code(i32);

impl TryFrom<i64> for Code {
    type Error = String;

    fn try_from(code: i64) -> Result<Self, String> {
        match u8::try_from(code) {
            Ok(0) => Err("0 is not a failure: `on_clean_exit` says what it means".to_owned()),
            Ok(code) => Ok(Code(i32::from(code))),
            Err(_) => Err(format!("{code} is not an exit code; they are 1 to 255")),
        }
    }
}

impl ExitCodes {
    /// Formats the codes for people, one text for each meaning: `login 41 52`.
    pub fn shown(&self) -> Vec<String> {
        let ExitCodes { rate_limit, login, turn_limit, cost_limit, unavailable } = self;
        let all = [
            ("rate_limit", rate_limit),
            ("login", login),
            ("turn_limit", turn_limit),
            ("cost_limit", cost_limit),
            ("unavailable", unavailable),
        ];
        let named = all.into_iter().filter(|(_, codes)| !codes.is_empty());
        let codes = |codes: &[i32]| codes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        named.map(|(name, of)| format!("{name} {}", codes(of))).collect()
    }
}

impl From<ExitCodesFile> for ExitCodes {
    fn from(file: ExitCodesFile) -> Self {
        let numbers = |codes: Vec<Code>| codes.into_iter().map(|code| code.0).collect();
        ExitCodes {
            rate_limit: numbers(file.rate_limit),
            login: numbers(file.login),
            turn_limit: numbers(file.turn_limit),
            cost_limit: numbers(file.cost_limit),
            unavailable: numbers(file.unavailable),
        }
    }
}

impl ExitCodes {
    /// Returns the meaning of an exit code; [`Finish::Unsaid`] for a plain failure.
    pub(super) fn meaning(&self, code: Option<i32>) -> Finish {
        let Some(code) = code else { return Finish::Unsaid };
        let table = [
            (&self.rate_limit, Finish::RateLimited(None)),
            (&self.login, Finish::NotLoggedIn(Refuser::Unclear)),
            (&self.turn_limit, Finish::OwnLimit(OwnLimit::Turns)),
            (&self.cost_limit, Finish::OwnLimit(OwnLimit::Cost)),
            (&self.unavailable, Finish::Unavailable),
        ];
        match table.into_iter().find(|(codes, _)| codes.contains(&code)) {
            Some((_, meaning)) => meaning,
            None if code == EX_TEMPFAIL => Finish::RateLimited(None),
            None => Finish::Unsaid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Result<ExitCodes, toml::de::Error> {
        toml::from_str::<ExitCodesFile>(text).map(ExitCodes::from)
    }

    #[test]
    fn an_exit_code_means_what_the_lane_says_and_75_a_rate_limit_where_it_says_nothing() {
        let table = [
            ("", 75, Finish::RateLimited(None)),
            ("login = [75]", 75, Finish::NotLoggedIn(Refuser::Unclear)),
            ("rate_limit = [173]", 173, Finish::RateLimited(None)),
            ("login = [41, 145]", 145, Finish::NotLoggedIn(Refuser::Unclear)),
            ("turn_limit = [53]", 53, Finish::OwnLimit(OwnLimit::Turns)),
            ("cost_limit = [54]", 54, Finish::OwnLimit(OwnLimit::Cost)),
            ("unavailable = [69]", 69, Finish::Unavailable),
            ("login = [41]", 1, Finish::Unsaid),
        ];
        for (text, code, meaning) in table {
            assert_eq!(codes(text).unwrap().meaning(Some(code)), meaning, "{text}");
        }
        assert_eq!(ExitCodes::default().meaning(None), Finish::Unsaid, "a signal has no code");
    }

    #[test]
    fn what_is_no_code_of_a_failure_is_refused() {
        for wrong in ["login = [0]", "login = [256]", "login = [-1]", "logout = [1]"] {
            assert!(codes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn codes_that_another_release_kept_are_read() {
        let kept: ExitCodes = serde_json::from_str(r#"{"login":[41],"later":[1]}"#).unwrap();
        assert_eq!(kept.meaning(Some(41)), Finish::NotLoggedIn(Refuser::Unclear));
    }
}
