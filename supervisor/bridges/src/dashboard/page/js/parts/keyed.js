// Keeps the children of an element equal to a list: what stays is changed in place, so that focus and selection stay as well.

/**
 * @template T
 * @typedef {{element: Element, update: (item: T) => void}} Row
 */

/**
 * @template T
 * @param {Element} parent
 * @param {(item: T) => string} key
 * @param {(item: T) => Row<T>} make
 * @returns {{set: (items: T[]) => void, rows: Map<string, Row<T>>}}
 */
export function keyed(parent, key, make) {
  /** @type {Map<string, Row<T>>} */
  const rows = new Map();
  return {
    rows,
    set(items) {
      const kept = new Set(items.map(key));
      for (const [name, row] of rows) {
        if (!kept.has(name)) {
          row.element.remove();
          rows.delete(name);
        }
      }
      let before = parent.firstElementChild;
      for (const item of items) {
        let row = rows.get(key(item));
        if (!row) {
          row = make(item);
          rows.set(key(item), row);
        }
        row.update(item);
        if (row.element === before) before = before.nextElementSibling;
        else parent.insertBefore(row.element, before);
      }
    },
  };
}
