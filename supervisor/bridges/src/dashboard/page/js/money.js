// Costs, tokens and bytes as people read them.

/** Returns millionths of a US dollar as dollars: "$0.42", "< $0.01". @param {number} micros */
export function usd(micros) {
  const dollars = micros / 1e6;
  if (micros > 0 && dollars < 0.01) return "< $0.01";
  return `$${dollars.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/** Returns a count in three digits: "950", "12.3k", "4.1M". @param {number} n */
export function count(n) {
  if (n < 1000) return String(n);
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(n < 1e8 ? 1 : 0)}M`;
}

/** Returns bytes in binary units: "12 KiB". @param {number} n */
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let value = n;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
