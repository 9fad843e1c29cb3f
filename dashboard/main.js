// The gate: starts the page, or tells an old browser what it lacks. Says nothing that browsers of 2019 could not read.

const NEEDED = [
  ["streams of text", () => typeof TextDecoderStream === "function"],
  ["dialogs", () => typeof HTMLDialogElement === "function" && "showModal" in HTMLDialogElement.prototype],
  ["lists read from their end", () => "findLast" in Array.prototype],
  ["mixed colours", () => CSS.supports("color", "color-mix(in srgb, red 50%, blue)")],
];

const missing = NEEDED.filter(([, has]) => !has()).map(([name]) => name);
if (missing.length === 0) import("./start.js").catch(() => tell("A part of it did not arrive. Reload to try again."));
else tell(`This one lacks: ${missing.join(", ")}.`);

function tell(text) {
  const boot = document.querySelector(".boot");
  if (boot) boot.append(" ", text);
}
