//! Work that is divided: its task waits for what it made, and the next run has the notes and the results.

use crate::harness::{Fleet, User};

const DIVIDES: &str = "\
if supervisor context | grep -q '^## Notes of an earlier run'; then
  supervisor complete --summary \"$(supervisor context | grep '^> ')\"
else
  for part in one two; do
    supervisor create $part --assignee shell --body \"supervisor complete --summary 'found $part'\"
  done
  supervisor block --kind dependency --notes 'put it together' > blocked
  supervisor comment \"$(cat blocked)\"
fi";

#[test]
fn a_task_waits_for_what_its_worker_made_and_goes_on_with_notes_and_results() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let task = fleet.create("divided", DIVIDES, &[]);

        let shown = fleet.wait_for(&task, "done");

        let summary = shown["latest_summary"].as_str().unwrap();
        for words in ["> put it together", "> found one", "> found two"] {
            assert!(summary.contains(words), "{words}: {summary}");
        }
        assert_eq!(shown["runs"].as_array().unwrap().len(), 2, "{shown:#}");
        assert_eq!(shown["runs"][0]["outcome"], "blocked");
        let parents = shown["parents"].as_array().unwrap();
        assert_eq!(parents.len(), 2, "{shown:#}");
        let said = shown["comments"].to_string();
        // A part may be done before its maker says that it waits.
        assert!(
            said.contains("it goes on after t_") || said.contains("its next run begins at once"),
            "{said}"
        );
        let text = fleet.cli(["show", &task]).ok().stdout;
        assert!(text.contains("put it together"), "{text}");
    }
}
