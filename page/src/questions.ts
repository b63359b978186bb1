/** What the server tells about a selection when it is asked: why it is where it is, and its YAML. */

import { element } from "./dom.js";
import { askText } from "./server.js";
import type { Selection, View } from "./view.js";

const WITHOUT_SERVER = "Explanations and YAML need a server: open the run with “batkube show DIR”.";

/** Return the questions about a selection, closed; in a file without a server, one sentence. */
export function questionsOf(view: View, selection: Selection): HTMLElement {
  const { server } = view;
  if (!server) return element("p", { class: "empty" }, WITHOUT_SERVER);
  const { run } = view.runs[selection.run]!;
  const name = { node: run.nodeNames, job: run.jobNames, pod: run.podNames }[selection.kind][selection.index]!;
  const parameters = { run: String(selection.run), kind: selection.kind, number: String(selection.index), name };
  const questions: HTMLElement[] = [];
  if (server.explain) questions.push(question("Why?", "explain", parameters));
  if (server.yaml) questions.push(question("YAML", "yaml", parameters));
  return element("div", { class: "questions" }, ...questions);
}

/** A disclosure that asks the server each time it is opened. */
function question(title: string, path: string, parameters: Record<string, string>): HTMLDetailsElement {
  const text = element("pre", { tabindex: 0, role: "region", "aria-label": `${title} ${parameters["kind"]} ${parameters["name"]}` });
  const node = element("details", {}, element("summary", {}, title), text);
  node.addEventListener("toggle", () => {
    if (!node.open) return;
    text.textContent = "…";
    void askText(path, parameters).then((reply) => {
      text.classList.toggle("refused", reply.isRefused);
      text.textContent = reply.message;
    });
  });
  return node;
}
