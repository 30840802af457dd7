//! Response of a service: written to standard output as it arrives, and parsed for a verdict.

use std::io::Write as _;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Response, StatusCode, header};

use super::verdict::ServiceVerdict;
use base::exit::Code;
use base::failure::{Failure, with_causes};
use net::http_client::ResponseBody;

/// Size limit of a response, in bytes.
const ANSWER_BYTES: usize = 64 << 20;
/// Size limit of a verdict, in bytes; more than the board accepts.
const VERDICT_BYTES: usize = 1 << 20;
/// Limit on the error text taken from a service, in bytes.
const WORDS_BYTES: usize = 300;
/// Longest pause that a service may ask for.
const LONGEST: Duration = Duration::from_hours(24);

/// Meaning of a service's response for the task.
#[derive(Debug)]
pub(super) enum ResponseMeaning {
    /// The service's verdict on the task.
    Verdict(ServiceVerdict),
    /// No verdict. The lane decides on the meaning.
    Words,
    /// A request to try again after a pause.
    Later { why: String, pause: Duration },
}

/// Place of a verdict in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VerdictPlace {
    /// The whole body.
    Json,
    /// The last line.
    Lines,
    /// None.
    Text,
}

impl VerdictPlace {
    fn from_headers(headers: &HeaderMap) -> Self {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/x-ndjson" | "application/jsonl" | "application/json-lines" => VerdictPlace::Lines,
            "application/json" => VerdictPlace::Json,
            kind if kind.ends_with("+json") => VerdictPlace::Json,
            _ => VerdictPlace::Text,
        }
    }
}

impl ResponseMeaning {
    /// Reads a response to its end.
    pub(super) async fn read(answer: Response<ResponseBody>) -> Result<Self, Failure> {
        let (head, mut body) = answer.into_parts();
        let mut kept = RetainedParts::new(if head.status.is_success() {
            VerdictPlace::from_headers(&head.headers)
        } else {
            VerdictPlace::Text
        });
        let mut length = 0_usize;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| {
                let why = format!("the answer of the service has broken off: {}", with_causes(&e));
                Failure::new(Code::Unreachable, why)
            })?;
            let Ok(data) = frame.into_data() else { continue };
            length += data.len();
            if length > ANSWER_BYTES {
                return Err(Failure::failed(format!(
                    "the answer of the service has more than {ANSWER_BYTES} bytes"
                )));
            }
            log(&data)?;
            kept.take(&data);
        }
        if !kept.ends_a_line {
            log(b"\n")?;
        }
        Self::meaning(head.status, &head.headers, kept)
    }

    fn meaning(status: StatusCode, headers: &HeaderMap, kept: RetainedParts) -> Result<Self, Failure> {
        if status.is_success() {
            return Ok(kept.verdict()?.map_or(ResponseMeaning::Words, ResponseMeaning::Verdict));
        }
        let (why, pause) = Self::refusal(status, headers, &kept.words())?;
        Ok(ResponseMeaning::Later { why, pause })
    }

    /// Interprets a status other than success: a pause before another try, or a failure.
    pub(super) fn refusal(
        status: StatusCode,
        headers: &HeaderMap,
        words: &str,
    ) -> Result<(String, Duration), Failure> {
        let why = format!("the service has answered {status}{words}");
        let retry_after =
            || headers.get(header::RETRY_AFTER).and_then(|value| pause(value, jiff::Timestamp::now()));
        match status.as_u16() {
            401 | 403 => {
                Err(Failure::new(Code::NotPermitted, why)
                    .hint("it does not accept the key that the lane names"))
            }
            429 | 503 => match retry_after() {
                Some(pause) => Ok((why, pause)),
                // Without `Retry-After`, the lane decides on the pause.
                None if status == StatusCode::TOO_MANY_REQUESTS => Err(Failure::new(Code::Throttled, why)),
                None => Err(Failure::new(Code::Unreachable, why)),
            },
            408 | 500..=599 => Err(Failure::new(Code::Unreachable, why)),
            300..=399 => Err(Failure::failed(format!("{why}, and no redirection is followed"))
                .hint("write the address that it leads to into the lane")),
            _ => Err(Failure::failed(why)),
        }
    }
}

fn log(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|e| Failure::failed(format!("the answer of the service cannot be logged: {e}")))
}

/// Returns the pause in `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3).
fn pause(value: &HeaderValue, now: jiff::Timestamp) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let seconds = if let Ok(seconds) = text.parse() {
        seconds
    } else {
        let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        u64::try_from(at.as_second() - now.as_second()).unwrap_or_default()
    };
    Some(Duration::from_secs(seconds).clamp(Duration::from_secs(1), LONGEST))
}

/// Retained parts of a response: a possible verdict, and the beginning for errors.
struct RetainedParts {
    form: VerdictPlace,
    /// The whole body, or the line in progress.
    open: Vec<u8>,
    /// Last complete line that is not blank.
    line: Vec<u8>,
    words: Vec<u8>,
    ends_a_line: bool,
}

impl RetainedParts {
    fn new(form: VerdictPlace) -> Self {
        RetainedParts { form, open: Vec::new(), line: Vec::new(), words: Vec::new(), ends_a_line: true }
    }

    fn take(&mut self, data: &[u8]) {
        let room = WORDS_BYTES.saturating_sub(self.words.len()).min(data.len());
        self.words.extend_from_slice(&data[..room]);
        self.ends_a_line = data.last().map_or(self.ends_a_line, |byte| *byte == b'\n');
        match self.form {
            VerdictPlace::Text => {}
            VerdictPlace::Json => self.keep(data),
            VerdictPlace::Lines => {
                for piece in data.split_inclusive(|byte| *byte == b'\n') {
                    self.keep(piece);
                    if piece.ends_with(b"\n") {
                        let line = std::mem::take(&mut self.open);
                        if !line.trim_ascii().is_empty() {
                            self.line = line;
                        }
                    }
                }
            }
        }
    }

    /// Keeps at most one byte more than a verdict may have, to detect an excess.
    fn keep(&mut self, data: &[u8]) {
        let room = (VERDICT_BYTES + 1).saturating_sub(self.open.len()).min(data.len());
        self.open.extend_from_slice(&data[..room]);
    }

    fn verdict(self) -> Result<Option<ServiceVerdict>, Failure> {
        let text = match self.form {
            VerdictPlace::Text => return Ok(None),
            VerdictPlace::Lines if self.open.trim_ascii().is_empty() => self.line,
            VerdictPlace::Json | VerdictPlace::Lines => self.open,
        };
        if text.trim_ascii().is_empty() {
            return Ok(None);
        }
        if text.len() > VERDICT_BYTES {
            return Err(Failure::failed(format!(
                "the verdict of the service has more than {VERDICT_BYTES} bytes"
            )));
        }
        ServiceVerdict::parse(&text).map(Some)
    }

    /// Returns the first line of the response.
    fn words(&self) -> String {
        let text = String::from_utf8_lossy(&self.words);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        line.map(|line| format!(": {line}")).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(
        status: u16,
        head: &[(&'static str, &str)],
        pieces: &[&[u8]],
    ) -> Result<ResponseMeaning, Failure> {
        let mut headers = HeaderMap::new();
        for (name, value) in head {
            headers.insert(*name, value.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        let mut kept = RetainedParts::new(if status.is_success() {
            VerdictPlace::from_headers(&headers)
        } else {
            VerdictPlace::Text
        });
        for piece in pieces {
            kept.take(piece);
        }
        ResponseMeaning::meaning(status, &headers, kept)
    }

    const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");
    const LINES: (&str, &str) = ("content-type", "application/x-ndjson");

    #[test]
    fn a_verdict_is_the_whole_of_a_document_or_the_last_line_of_many() {
        let is_verdict = |answer| matches!(answer, Ok(ResponseMeaning::Verdict(ServiceVerdict::Complete(_))));
        assert!(is_verdict(answered(200, &[JSON], &[b"{\"complete\":", b" {\"summary\": \"x\"}}\n"])));
        let lines: [&[u8]; 3] = [b"{\"step\": 1}\n{\"st", b"ep\": 2}\n{\"complete\": {}}", b"\n\n"];
        assert!(is_verdict(answered(200, &[LINES], &lines)));
        assert!(is_verdict(answered(201, &[LINES], &[b"x\n{\"complete\": {}}"])));
        for (kind, body) in [("text/plain", "{\"complete\": {}}"), ("application/json", " ")] {
            let answer = answered(200, &[("content-type", kind)], &[body.as_bytes()]);
            assert!(matches!(answer, Ok(ResponseMeaning::Words)), "{kind}");
        }
    }

    #[test]
    fn each_status_has_the_exit_code_by_which_the_lane_knows_it() {
        let code =
            |status, head: &[(&'static str, &str)]| answered(status, head, &[b"\n no \nmore"]).unwrap_err();
        for (status, exit) in
            [(401, 77), (403, 77), (429, 75), (408, 69), (500, 69), (503, 69), (400, 1), (302, 1), (404, 1)]
        {
            let failure = code(status, &[]);
            assert_eq!(failure.code.exit(), exit, "{status}: {failure}");
            assert!(failure.message.contains(&format!("{status} ")), "{failure}");
            assert!(failure.message.contains(": no"), "{failure}");
        }
        for status in [429, 503] {
            let later = answered(status, &[("retry-after", "90")], &[]).unwrap();
            assert!(
                matches!(later, ResponseMeaning::Later { pause, .. } if pause == Duration::from_secs(90))
            );
        }
    }

    #[test]
    fn a_pause_is_a_number_or_a_date_and_at_most_a_day() {
        let now = "2026-11-23T02:00:00Z".parse().unwrap();
        let pause = |text: &str| pause(&text.parse().unwrap(), now).map(|pause| pause.as_secs());
        assert_eq!((pause("120"), pause("0"), pause("99999999999")), (Some(120), Some(1), Some(86_400)));
        assert_eq!(pause("Mon, 23 Nov 2026 02:01:00 GMT"), Some(60));
        assert_eq!(
            (pause("Mon, 23 Nov 2020 02:01:00 GMT"), pause("soon"), pause("-1")),
            (Some(1), None, None)
        );
    }

    #[test]
    fn what_is_no_verdict_is_refused_and_what_is_too_long_is_not_kept() {
        let wrong: [&[u8]; 6] =
            [b"{", b"[]", b"{}", b"{\"done\": {}}", b"{\"complete\": {}, \"block\": {}}", b"\xff"];
        for body in wrong {
            let failure = answered(200, &[JSON], &[body]).unwrap_err();
            assert!(failure.message.contains("the answer of the service is not a verdict"), "{failure}");
        }
        let error = |body: &[u8]| answered(200, &[JSON], &[body]).unwrap_err().message;
        let both = error(b"{\"complete\": {}, \"block\": {}}");
        assert!(both.contains("one verdict is to be given, and there is block and complete"), "{both}");
        assert!(error(b"{}").contains("there is none"));
        let long = vec![b'x'; VERDICT_BYTES];
        let mut kept = RetainedParts::new(VerdictPlace::Json);
        for _ in 0..4 {
            kept.take(&long);
        }
        assert_eq!((kept.open.len(), kept.words.len()), (VERDICT_BYTES + 1, WORDS_BYTES));
        assert!(kept.verdict().unwrap_err().message.contains("has more than 1048576 bytes"));
    }
}
