//! Texts about the usage of runs, which agents report and proxies measure.

use kernel::{Consumed, Counted, Dollars, Egress, Spent};

/// Returns the tokens, cost and turns of a run as text, as far as the agent reports them.
pub fn amounts(spent: &Spent) -> String {
    let mut parts = vec![format!("{} tokens in", spent.input_tokens)];
    if spent.cached_tokens > 0 {
        parts.push(format!("{} of them cached", spent.cached_tokens));
    }
    parts.push(format!("{} out", spent.output_tokens));
    if let Some(micros) = spent.cost_micros {
        parts.push(Dollars(micros).to_string());
    }
    if let Some(turns) = spent.turns {
        parts.push(kernel::Counted(turns, "turn").to_string());
    }
    if spent.denials > 0 {
        parts.push(format!("{} refused by the agent itself", kernel::Counted(spent.denials, "tool call")));
    }
    parts.join(", ")
}

/// Returns the traffic through the proxy of a run as text.
pub fn passed(egress: &Egress) -> String {
    let Egress { requests, denied, over_budget, sent_bytes, received_bytes, .. } = egress;
    let requests = Counted(*requests, "request");
    let over = if *over_budget > 0 { format!(", {over_budget} over budget") } else { String::new() };
    format!("{requests}, {denied} denied{over}, {sent_bytes} bytes sent, {received_bytes} received")
}

/// Returns the requests, bytes, tokens and cost of a payer, as cells of a table.
pub(crate) fn consumed(used: &Consumed) -> [String; 4] {
    let Consumed { requests, bytes, tokens, cost_micros } = used;
    let cost = Dollars(*cost_micros).to_string();
    [requests.to_string(), bytes_brief(*bytes), tokens.to_string(), cost]
}

/// Returns a size with about three digits: `512 B`, `14 KiB`, `2.1 GiB`.
pub(crate) fn bytes_brief(bytes: u64) -> String {
    policies::ByteSize(bytes).to_string()
}

/// Returns the sum of the usage of several runs. A cost that no run reports stays none.
pub(crate) fn total(all: &[&Spent]) -> Spent {
    let sum = |of: fn(&Spent) -> u64| all.iter().map(|spent| of(spent)).fold(0, u64::saturating_add);
    let some =
        |of: fn(&Spent) -> Option<u64>| all.iter().filter_map(|spent| of(spent)).reduce(u64::saturating_add);
    Spent {
        input_tokens: sum(|spent| spent.input_tokens),
        cached_tokens: sum(|spent| spent.cached_tokens),
        output_tokens: sum(|spent| spent.output_tokens),
        cost_micros: some(|spent| spent.cost_micros),
        turns: some(|spent| spent.turns),
        denials: sum(|spent| spent.denials),
        ..Spent::default()
    }
}

/// Parses an amount of US dollars, such as `2.50` or `$3`. Returns millionths of a dollar.
pub(crate) fn micros(text: &str) -> Result<u64, String> {
    let dollars = text.trim().trim_start_matches('$').parse::<f64>().ok();
    let dollars = dollars.filter(|dollars| (0.0..=1e9).contains(dollars));
    let dollars =
        dollars.ok_or_else(|| "it is not an amount in US dollars: write one such as 2.50".to_owned())?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked above")]
    let micros = (dollars * 1e6).round() as u64;
    Ok(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_said_as_far_as_it_is_known() {
        let spent = Spent { input_tokens: 7, output_tokens: 1, ..Spent::default() };
        assert_eq!(amounts(&spent), "7 tokens in, 1 out");
        let spent =
            Spent { cached_tokens: 5, cost_micros: Some(500_000), turns: Some(1), denials: 2, ..spent };
        assert_eq!(
            amounts(&spent),
            "7 tokens in, 5 of them cached, 1 out, $0.50, 1 turn, 2 tool calls refused by the agent itself"
        );
    }

    #[test]
    fn several_runs_have_used_what_each_of_them_says() {
        let one = Spent { input_tokens: 7, output_tokens: 1, turns: Some(2), ..Spent::default() };
        let other = Spent { cost_micros: Some(500_000), ..one.clone() };
        assert_eq!(amounts(&total(&[&one, &other])), "14 tokens in, 2 out, $0.50, 4 turns");
    }

    #[test]
    fn an_amount_is_read_to_the_millionth_and_nothing_else_is() {
        assert_eq!(["0.01", "$2.50", "7"].map(micros), [Ok(10_000), Ok(2_500_000), Ok(7_000_000)]);
        for wrong in ["", "-1", "nan", "2,50", "1e10"] {
            assert!(micros(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_short() {
        let shown: Vec<_> = [0, 1023, 1024, 15_000, 5_000_000, 2_254_857_830].map(bytes_brief).into();
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "14 KiB", "4.7 MiB", "2.0 GiB"]);
    }
}
