// What can be done to a queue, each with its question.

import { act, path } from "./api.js";
import { dialog, note } from "./dialog.js";
import { count, some } from "./format.js";

const reload = () => dispatchEvent(new Event("dashboard:reload"));

/** Pauses or resumes; harmless and undone by one click, so it asks nothing. */
export async function hold(name, paused) {
  try {
    await act("POST", path("v1", "queues", name, paused ? "pause" : "resume"));
    note(paused ? `${name} is paused: it takes tasks and hands none out.` : `${name} goes on.`);
  } catch (problem) {
    note(problem.detail, "bad");
  }
  reload();
}

/** Fresh attempts for all dead tasks. */
export function retryDead(name) {
  sweep({ name, verb: "retry", title: `Retry the dead tasks of ${name}?`, text: "Each gets fresh attempts and goes to the end of the line.", yes: "Retry all", kind: "main", done: "given fresh attempts" });
}

/** Removes dead tasks. */
export function dropDead(name) {
  sweep({ name, verb: "drop", title: `Remove the dead tasks of ${name}?`, text: "Their payloads and attempts are gone for good. For admins.", yes: "Remove", kind: "danger", done: "removed", type_this: name });
}

/** Cancels what waits. */
export function purge(name) {
  sweep({ name, verb: "purge", title: `Cancel all waiting tasks of ${name}?`, text: "Tasks that workers hold go on. Cancelled tasks stay listed and can be retried. For admins.", yes: "Cancel them", kind: "danger", done: "cancelled", type_this: name });
}

function sweep({ name, verb, title, text, yes, kind, done, type_this }) {
  const fields = type_this ? [{ name: "sure", label: `Type ${type_this} to confirm`, type_this, required: true }] : [];
  dialog({ title, text, yes, kind, fields, run: async () => {
    const answer = await act("POST", path("v1", "queues", name, verb), { timeout_ms: 30_000 });
    note(`${some(answer.count, "task")} ${done}.${answer.complete ? "" : ` Not all yet: ${count(answer.count)} so far.`}`);
    reload();
  } });
}
