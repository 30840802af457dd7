// Saves an attached file. It is loaded when the first one is asked for.

import { request } from "../api.js";

/** Saves the file of a path under a name. @param {string} path @param {string} filename */
export async function download(path, filename) {
  const blob = await (await request("GET", path, { timeout: 0 })).blob();
  const url = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = filename;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
