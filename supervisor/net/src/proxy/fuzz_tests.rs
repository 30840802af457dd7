//! Changed heads of requests to the proxy: each is refused, or is whole for the server that reads it again.

use super::credentials::without_credentials;
use super::head::{RequestKind, parse};

#[test]
fn the_head_of_a_request_is_refused_or_passed_on_as_it_came() {
    fuzz::Target::new("proxy-head", fuzz::Shape::Text).check(|input| match parse(input) {
        Err(error) => error.to_string(),
        Ok(None) => "more to come".to_owned(),
        Ok(Some(request)) => {
            assert_eq!(request.target.to_string(), request.target.to_string().to_lowercase());
            match request.kind {
                RequestKind::Tunnel => "a tunnel".to_owned(),
                RequestKind::Brokered => {
                    assert_eq!(request.rest, input);
                    "brokered".to_owned()
                }
                RequestKind::Clear => {
                    assert_eq!(request.rest, input);
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
