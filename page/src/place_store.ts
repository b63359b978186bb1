/** Where the page keeps its instant and its selection, as a fragment: see `link.ts`. */

export interface PlaceStore {
  read(): string;
  write(fragment: string): void;
  /** Return what leads to a place. */
  link(fragment: string): string;
  /** Say where the link is, where there is no clipboard. */
  readonly whereLinkIs: string;
  /** Call the listener when the place is changed from outside the page. */
  onChange(listener: () => void): void;
}

/** The address bar of the browser. */
export const addressBar: PlaceStore = {
  read: () => location.hash,
  write: (fragment) => history.replaceState(null, "", fragment),
  link: (fragment) => location.href.replace(/#.*$/, "") + fragment,
  whereLinkIs: "The link is in the address bar; it could not be copied",
  onChange: (listener) => addEventListener("hashchange", listener),
};

/** What the page and the widget around it send each other: a place, or null if the page has just begun to listen. */
export interface PlaceMessage {
  place: string | null;
}

/** Return the place of a message, if it is one. */
export function placeIn(message: unknown): string | null | undefined {
  if (typeof message !== "object" || message === null || !("place" in message)) return undefined;
  const { place } = message;
  return typeof place === "string" || place === null ? place : undefined;
}

/** The widget of a notebook, in whose frame the page is: a frame without an address. */
export function widgetAround(): PlaceStore {
  let current = "";
  const send = (message: PlaceMessage): void => parent.postMessage(message, "*");
  return {
    read: () => current,
    write: (fragment) => {
      current = fragment;
      send({ place: fragment });
    },
    link: (fragment) => fragment,
    whereLinkIs: "The link is the widget's place; it could not be copied",
    onChange: (listener) => {
      addEventListener("message", ({ source, data }) => {
        const place = source === parent ? placeIn(data) : undefined;
        if (typeof place !== "string" || place === current) return;
        current = place;
        listener();
      });
      send({ place: null });
    },
  };
}

/** Return the store of this page. */
export function placeStore(): PlaceStore {
  return parent !== window && location.href === "about:srcdoc" ? widgetAround() : addressBar;
}
