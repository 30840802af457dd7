//! Changed bodies of requests: each is a request of its verb or is refused, and means the same when it is sent on.

use super::*;
use api::Verb;
use base::table;

/// Reads a body as a request, and what that says of itself.
type Read = fn(&[u8]) -> String;

fn read<V: Verb>(body: &[u8]) -> String {
    match serde_json::from_slice::<V>(body) {
        Err(error) => error.to_string(),
        Ok(verb) => {
            let first = serde_json::to_value(&verb).expect("a request has a JSON form");
            let again = serde_json::from_value::<V>(first.clone())
                .unwrap_or_else(|e| panic!("{}: {first} is refused: {e}", V::NAME));
            assert_eq!(serde_json::to_value(&again).unwrap(), first, "{}", V::NAME);
            "a request".to_owned()
        }
    }
}

macro_rules! readers {
    (
        $($group:literal {
            commands { $($command:ident($arguments:ty) => $_run:path,)* }
            verbs { $($verb:ident $(=> $_special:path)?,)* }
        })*
        api { $($hidden:ident,)* }
        nouns { $($nouns:tt)* }
    ) => {
        fn readers() -> Vec<(&'static str, Read)> {
            vec![
                $($(($verb::NAME, read::<$verb>),)*)*
                $(($hidden::NAME, read::<$hidden>),)*
            ]
        }
    };
}

table!(readers);

/// An input names the verb, so that the words of one verb get into the bodies of the others.
#[test]
fn the_body_of_a_request_is_the_same_when_it_is_sent_on() {
    let readers = readers();
    let mut target = fuzz::Target::new("body", fuzz::Shape::Json);
    for (name, _) in &readers {
        target = target.seed(format!("{{\"verb\":\"{name}\",\"body\":{{}}}}"));
    }
    target.check(|input| {
        let Ok(serde_json::Value::Object(mut given)) = serde_json::from_slice(input) else {
            return "none".to_owned();
        };
        let name = given.get("verb").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        let body = given.remove("body").unwrap_or_default().to_string();
        match readers.iter().find(|(known, _)| *known == name) {
            Some((name, read)) => format!("{name} {}", read(body.as_bytes())),
            None => "no verb".to_owned(),
        }
    });
}
