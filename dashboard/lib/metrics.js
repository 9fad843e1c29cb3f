// The Prometheus text form, as far as the page needs it: numbers by name, labels in braces.

/** A map from `name{labels}` to its number; `total(name)` style sums are left to the caller. */
export function parse(text) {
  const numbers = new Map();
  for (const line of text.split("\n")) {
    if (!line || line.startsWith("#")) continue;
    const space = line.lastIndexOf(" ");
    const value = Number(line.slice(space + 1));
    if (space > 0 && Number.isFinite(value)) numbers.set(line.slice(0, space), value);
  }
  return numbers;
}
