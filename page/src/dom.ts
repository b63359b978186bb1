/** Creates elements. Text from a run becomes a text node or an attribute, never markup. */

type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;

/** Return an element. Functions are event listeners, `true` is an attribute without value, `false` leaves one out. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

/** Return a button with a label for screen readers and tooltips. */
export function button(
  content: Node | string,
  label: string,
  onClick: () => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  return element("button", { type: "button", title: label, "aria-label": label, click: onClick, ...attributes }, content);
}

/** Return a <select> with a label. */
export function choice(
  label: string,
  options: [value: string, text: string][],
  selected: string,
  onChange: (value: string) => void,
): HTMLLabelElement {
  const select = element("select", { change: () => onChange(select.value) });
  for (const [value, text] of options) select.append(element("option", { value, selected: value === selected }, text));
  return element("label", { class: "choice" }, element("span", {}, label), select);
}

/** Set the text of an element, unless it is unchanged: that would cost a layout. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** Return whether a key was pressed in an input field. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
}
