/** Questions and commands to the server of the page. Only commands change something: POST, with the token in a header. */

/** The answer to a question or a command, in words. */
export interface Reply {
  message: string;
  /** True if there is no answer, or the cluster refused. */
  isRefused: boolean;
}

const LOST: Reply = { message: "The server of this page does not respond.", isRefused: true };

/** Return the decoded answer to a question; null if the server cannot be reached or does not know it. */
export async function ask<Answer>(path: string, parameters: Record<string, string>): Promise<Answer | null> {
  try {
    const response = await fetch(`${path}?${new URLSearchParams(parameters)}`, { cache: "no-store" });
    return response.ok ? ((await response.json()) as Answer) : null;
  } catch {
    return null;
  }
}

/** Return the answer to a question, in words. */
export async function askText(path: string, parameters: Record<string, string>): Promise<Reply> {
  return (await ask<Reply>(path, parameters)) ?? LOST;
}

/** Send a command, and return the decoded answer; null if the server cannot be reached or rejects it. */
export async function command<Answer>(path: string, content: object): Promise<Answer | null> {
  const headers = { "Content-Type": "application/json", "Batkube-Token": token() };
  try {
    const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(content) });
    return response.ok ? ((await response.json()) as Answer) : null;
  } catch {
    return null;
  }
}

/** Send an action, and return what was done, in words. */
export async function act(content: object): Promise<Reply> {
  return (await command<Reply>("act", content)) ?? LOST;
}

/** The token is the folder of the page's address. */
function token(): string {
  return location.pathname.split("/")[1] ?? "";
}
