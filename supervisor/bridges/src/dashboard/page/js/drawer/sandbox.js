// The sandbox report of a run: which layers confined it, and what was missing.
import { h } from "../dom.js";

const WORDS = { enforced: "ok", partial: "warn" };

/** Returns the report, or null where the run has none. @param {any} run */
export function sandbox(run) {
  const report = run.sandbox;
  if (!report?.layers) return null;
  const layers = report.layers;
  const enforced = layers.filter((layer) => layer.state === "enforced").length;
  return h("div", { class: "sandbox" },
    h("h4", null, "Sandbox", h("span", { class: "drawer-brief" }, `policy ${report.policy ?? run.policy ?? ""} · ${enforced} of ${layers.length} layers enforced`)),
    h("ul", { class: "layers" }, layers.map((layer) =>
      h("li", { class: "layer", dataset: { kind: WORDS[layer.state] ?? "bad" } },
        h("span", { class: "run-dot", "aria-hidden": "true" }),
        h("span", { class: "layer-name" }, layer.layer.replaceAll("_", " ")),
        h("span", { class: "layer-state" }, layer.state.replaceAll("_", " ")),
        layer.why ? h("span", { class: "layer-why" }, layer.why) : null))));
}
