//! Changed heads of requests to the proxy: what reaches a server is one request, to the host that was named.

use super::credentials::without_credentials;
use super::head::{Kind, LONGEST, parse};

/// How many requests a server reads in a head, where it reads one at all.
fn requests(head: &[u8]) -> usize {
    let (mut rest, mut count) = (head, 0);
    while !rest.is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; 128];
        match httparse::Request::new(&mut headers).parse(rest) {
            Ok(httparse::Status::Complete(length)) => (rest, count) = (&rest[length..], count + 1),
            Ok(httparse::Status::Partial) | Err(_) => return usize::MAX,
        }
    }
    count
}

#[test]
fn the_head_of_a_request_is_refused_or_reaches_a_server_as_one_request() {
    fuzz::Target::new("proxy-head", fuzz::Shape::Text).check(|input| match parse(input) {
        Err(error) => error.to_string(),
        Ok(None) => "more to come".to_owned(),
        Ok(Some(request)) => {
            assert_eq!(request.target.to_string(), request.target.to_string().to_lowercase());
            match request.kind {
                Kind::Tunnel => "a tunnel".to_owned(),
                Kind::Brokered => {
                    assert_eq!(request.rest, input);
                    "brokered".to_owned()
                }
                Kind::Clear(head) => {
                    assert_eq!(requests(&head), 1, "{}", head.escape_ascii());
                    assert!(head.len() <= LONGEST * 2);
                    let head = head.to_ascii_lowercase();
                    let hosts = head.windows(7).filter(|line| line == b"\r\nhost:").count();
                    assert_eq!(hosts, 1, "{}", head.escape_ascii());
                    "in the clear".to_owned()
                }
            }
        }
    });
}

#[test]
fn a_path_without_credentials_has_none_when_it_is_looked_at_again() {
    let target = fuzz::Target::new("proxy-path", fuzz::Shape::Text).longest(4 << 10);
    target.seed("/v1/a?key=1&page=2;access%5Ftoken=3&q=%2525").check(|input| {
        let path = String::from_utf8_lossy(input);
        let once = without_credentials(&path);
        assert_eq!(without_credentials(&once), once);
        assert!(once.len() <= path.len());
        format!("{}", once.len() == path.len())
    });
}
