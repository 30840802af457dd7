// The files of a task: list, upload by button, drop or paste with progress, download, remove.
import { headers } from "../api.js";
import { seen } from "../diff/hidden.js";
import { h, icon, put } from "../dom.js";
import { bytes } from "../money.js";
import { confirm } from "../dialog.js";
import { refusal } from "./refusal.js";
import { keyed, section, since } from "./section.js";

/** The largest file that the API takes. */
const LARGEST = 25 * 1024 * 1024;

/** Returns the list, and takes what is dropped on `target`. @param {import("./drawer.js").Desk} drawer @param {HTMLElement} target */
export function files(drawer, target) {
  const picker = h("input", { type: "file", multiple: true, class: "unseen", tabindex: "-1", "aria-hidden": "true", onchange: () => {
    upload([...(picker.files ?? [])]);
    picker.value = "";
  } });
  const add = h("button", { type: "button", class: "button quiet small", onclick: () => picker.click() }, icon("plus"), "Attach");
  const part = section("Attachments", { actions: [add, picker] });
  const refused = refusal();
  const list = h("ul", { class: "files" });
  const uploads = h("ul", { class: "files" });
  const none = h("p", { class: "drawer-none" }, "Drop files here, or paste a picture into a comment.");
  part.body.append(list, uploads, refused.element, none);
  const paint = keyed(list, (file) => file.id, row);

  function row(file) {
    const failed = (problem) => refused.show(problem);
    return h("li", { class: "file" }, icon("file"),
      h("button", { type: "button", class: "file-name", title: `Download ${file.filename}`, onclick: async (event) => {
        const button = event.currentTarget;
        button.disabled = true;
        refused.clear();
        await import("./download.js").then(({ download }) => download(`/attachments/${file.id}`, file.filename)).catch(failed);
        button.disabled = false;
      } }, h("span", { class: "unseen" }, "Download "), seen(file.filename)),
      h("span", { class: "file-about" }, `${bytes(file.size)} · ${file.run_id ? `run ${file.run_id}` : file.uploaded_by ?? ""} · `, since(file.created_at)),
      h("button", { type: "button", class: "icon-button small", "aria-label": `Remove ${file.filename}`, title: "Remove", onclick: async () => {
        if (!await confirm({ title: "Remove the file?", text: `${file.filename} is removed from the task.`, action: "Remove", danger: true })) return;
        refused.clear();
        drawer.act("attach-rm", { attachment_id: file.id }).then(() => add.focus(), failed);
      } }, icon("close")));
  }

  async function upload(chosen) {
    refused.clear();
    for (const file of chosen) await send(file);
    await drawer.reload();
  }

  /** Sends one file, and shows how much of it has gone. */
  function send(file) {
    const bar = h("progress", { max: 100, "aria-label": `Upload of ${file.name}` });
    bar.value = 0;
    const words = h("span", { class: "file-about" }, "0 %");
    const request = new XMLHttpRequest();
    const cancel = h("button", { type: "button", class: "icon-button small", "aria-label": `Cancel the upload of ${file.name}`, onclick: () => request.abort() }, icon("close"));
    const element = h("li", { class: "file is-upload" }, icon("file"), h("span", { class: "file-name" }, file.name), words, cancel, bar);
    uploads.append(element);
    none.hidden = true;
    part.element.scrollIntoView({ block: "nearest" });
    return new Promise((resolve) => {
      const end = () => {
        element.remove();
        resolve(undefined);
      };
      const failed = (problem, mayHelp = true) => {
        const again = h("button", { type: "button", class: "button small", onclick: () => { element.remove(); upload([file]); } }, "Try again");
        const one = refusal();
        one.show(problem, ...(mayHelp ? [again] : []));
        put(element, icon("file"), h("span", { class: "file-name" }, file.name), h("button", { type: "button", class: "icon-button small", "aria-label": "Close", onclick: () => element.remove() }, icon("close")), one.element);
        resolve(undefined);
      };
      if (file.size > LARGEST) {
        failed({ detail: `The file has ${bytes(file.size)}; the limit is ${bytes(LARGEST)}.` }, false);
        return;
      }
      request.upload.addEventListener("progress", (event) => {
        if (!event.lengthComputable) return;
        const percent = Math.floor((event.loaded / event.total) * 100);
        bar.value = percent;
        words.textContent = `${percent} %`;
      });
      request.addEventListener("load", () => {
        if (request.status < 300) return end();
        return failed(saidBy(request));
      });
      request.addEventListener("error", () => failed({ detail: "The upload was interrupted: the daemon did not answer." }));
      request.addEventListener("abort", end);
      request.open("POST", `/api/v1/tasks/${drawer.id}/attachments?${new URLSearchParams({ filename: file.name, ...(file.type ? { content_type: file.type } : {}) })}`);
      for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
      request.setRequestHeader("Content-Type", "application/octet-stream");
      request.send(file);
    });
  }

  const ended = new AbortController();
  const has = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  let inside = 0;
  const over = (is) => target.classList.toggle("is-dropping", is);
  target.addEventListener("dragenter", (event) => { if (has(event)) { inside += 1; over(true); } }, { signal: ended.signal });
  target.addEventListener("dragleave", (event) => { if (has(event)) { inside = Math.max(0, inside - 1); over(inside > 0); } }, { signal: ended.signal });
  target.addEventListener("dragover", (event) => { if (has(event)) event.preventDefault(); }, { signal: ended.signal });
  target.addEventListener("drop", (event) => {
    if (!has(event)) return;
    event.preventDefault();
    inside = 0;
    over(false);
    upload([...(event.dataTransfer?.files ?? [])]);
  }, { signal: ended.signal });
  target.addEventListener("paste", (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (!pasted.length) return;
    event.preventDefault();
    upload(pasted);
  }, { signal: ended.signal });
  // A file that misses the task is not opened in its place.
  for (const name of ["dragover", "drop"]) addEventListener(name, (event) => { if (has(event)) event.preventDefault(); }, { signal: ended.signal });
  return {
    element: part.element,
    end: () => ended.abort(),
    update: (shown) => {
      paint(shown.attachments);
      part.count(shown.attachments.length);
      none.hidden = shown.attachments.length > 0 || uploads.childElementCount > 0;
    },
  };
}

/** @param {XMLHttpRequest} request */
function saidBy(request) {
  try {
    return JSON.parse(request.responseText);
  } catch {
    return { detail: `The daemon answered ${request.status} ${request.statusText}`.trim() };
  }
}
