// A dialog with fields. What the server refuses is shown in the dialog, with what was typed still there.

import { h, put, withCode } from "../dom.js";

/**
 * @typedef {{name: string, label: string, kind?: 'text' | 'area' | 'select' | 'check', value?: string | boolean, options?: {value: string, text: string}[],
 *   choose?: string, isRequired?: boolean, hint?: string}} Field
 *   `choose`: what a list shows while nothing is chosen. Its action waits for a choice.
 */

/** @param {Field} field @param {string} id */
function control(field, id) {
  const shared = { id, name: field.name, required: field.isRequired ?? false };
  if (field.kind === "area") {
    const area = /** @type {HTMLTextAreaElement} */ (h("textarea", { ...shared, class: "textarea", rows: "4" }));
    area.value = String(field.value ?? "");
    return area;
  }
  if (field.kind === "select") {
    const options = (field.options ?? []).map((option) => h("option", { value: option.value }, option.text));
    if (field.choose) options.unshift(h("option", { value: "" }, field.choose));
    const select = /** @type {HTMLSelectElement} */ (h("select", { ...shared, class: "select" }, options));
    if (field.value !== undefined) select.value = String(field.value);
    return select;
  }
  const input = /** @type {HTMLInputElement} */ (h("input", { ...shared, type: field.kind === "check" ? "checkbox" : "text", class: field.kind === "check" ? null : "input", autocomplete: "off" }));
  if (field.kind === "check") input.checked = field.value === true;
  else input.value = String(field.value ?? "");
  return input;
}

let number = 0;

/**
 * Opens a dialog and resolves when it is closed: with what `act` returned, or with null where it was left.
 * @template T
 * @param {{title: string, text?: string, fields?: Field[], action: string, isDangerous?: boolean, act: (values: Record<string, string | boolean>) => Promise<T>}} wish
 * @returns {Promise<T | null>}
 */
export function ask(wish) {
  number += 1;
  const id = `ask-${number}`;
  const returnTo = document.activeElement;
  const controls = (wish.fields ?? []).map((field, at) => ({ field, element: control(field, `${id}-${at}`) }));
  const rows = controls.map(({ field, element }) =>
    h(
      "div",
      { class: field.kind === "check" ? "field field-check" : "field" },
      h("label", { for: element.id }, field.label),
      element,
      field.hint ? h("p", { class: "field-hint" }, field.hint) : null,
    ),
  );
  const problem = h("p", { class: "field-error", role: "alert" });
  const submit = h("button", { type: "submit", class: wish.isDangerous ? "button danger" : "button primary" }, wish.action);
  const leave = h("button", { type: "button", class: "button" }, "Cancel");
  const choices = controls.filter(({ field }) => field.choose).map(({ element }) => element);
  const allow = () => submit.toggleAttribute("disabled", choices.some((element) => element.value === ""));
  for (const element of choices) element.addEventListener("change", allow);
  allow();
  const form = h(
    "form",
    { method: "dialog" },
    h("h2", { id: `${id}-title` }, wish.title),
    wish.text ? h("p", null, wish.text) : null,
    ...rows,
    problem,
    h("div", { class: "actions" }, leave, submit),
  );
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-labelledby": `${id}-title` }, form));
  document.body.append(dialog);
  return new Promise((resolve) => {
    const close = (/** @type {T | null} */ result) => {
      dialog.close();
      dialog.remove();
      if (returnTo instanceof HTMLElement && returnTo.isConnected) returnTo.focus();
      resolve(result);
    };
    leave.addEventListener("click", () => close(null));
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      close(null);
    });
    dialog.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) /** @type {HTMLFormElement} */ (form).requestSubmit();
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const values = Object.fromEntries(
        controls.map(({ field, element }) => [field.name, element instanceof HTMLInputElement && element.type === "checkbox" ? element.checked : element.value]),
      );
      /** @type {HTMLButtonElement} */ (submit).disabled = true;
      problem.textContent = "";
      try {
        close(await wish.act(values));
      } catch (error) {
        const { message, detail, hint } = /** @type {Error & {detail?: string, hint?: string}} */ (error);
        put(problem, withCode([detail ?? message, hint].filter(Boolean).join(" – ")));
        /** @type {HTMLButtonElement} */ (submit).disabled = false;
      }
    });
    dialog.showModal();
    (controls[0]?.element ?? (wish.isDangerous ? leave : submit)).focus();
  });
}
