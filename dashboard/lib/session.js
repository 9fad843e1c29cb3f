// Who looks, and at whose things: the token dialog, the namespace dialog.

import { Problem, get, namespace, token } from "./api.js";
import { dialog, note } from "./dialog.js";
import { restart } from "./pulse.js";

let [asking, declined] = [null, false];

/** Asks for a token, once at a time; `again` even if the user closed it before. */
export function askForToken(again = false) {
  if (asking?.open || (declined && !again)) return;
  const former = token.get();
  asking = dialog({
    title: "Enter a token",
    text: "This cluster knows its callers by tokens. An admin makes one with: ikada auth token create --name you --role viewer",
    fields: [{ name: "token", label: "Token", kind: "password", required: true, placeholder: "ikada_…", hint: "Kept until this tab is closed, and nowhere else." }],
    yes: "Look",
    run: tryToken,
  });
  asking.addEventListener("close", () => (declined = token.get() === former));
}

async function tryToken({ token: text }) {
  const former = token.get();
  token.set(text);
  try {
    const who = await get("/v1/whoami");
    if (Array.isArray(who.namespaces) && who.namespaces.length > 0) namespace.set(who.namespaces[0]);
  } catch (problem) {
    token.set(former);
    throw problem instanceof Problem && problem.status === 401 ? new Problem(401, "unauthenticated", "this token does not hold here") : problem;
  }
  afresh();
  note("Welcome aboard.");
}

/** Forgets the token. */
export function forgetToken() {
  token.set("");
  declined = false;
  afresh();
}

/** Asks whose things to show. */
export function changeNamespace() {
  dialog({
    title: "Namespace",
    text: "Queues, tasks, schedules and objects belong to a namespace. Tokens may be bound to some.",
    fields: [{ name: "name", label: "Name", value: namespace.get(), required: true }],
    yes: "Show",
    run: async ({ name }) => {
      await get("/v1/queues", { consistency: "stale", limit: 1 }, { headers: { "Ikada-Namespace": name } });
      namespace.set(name);
      afresh();
    },
  });
}

/** Another caller, or other things: nothing that was shown before stays. */
function afresh() {
  restart();
  dispatchEvent(new Event("dashboard:afresh"));
}
