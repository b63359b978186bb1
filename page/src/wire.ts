/**
 * The data of a page: the columns that `batkube.page.columns` writes.
 *
 * A finished run is one chunk. A live run is a sequence of them, and each adds rows to the columns before it.
 * Times are whole microseconds, amounts are millicores, bytes and counts. All are exact in a JavaScript number.
 */

/** In the order of `batkube.outputs.playback.deltas.DeltaKind`. */
export const enum Kind {
  NodeAdded,
  NodeRemoved,
  NodeStatus,
  JobQueued,
  JobStarted,
  JobEnded,
  PodQueued,
  Attempt,
  Unschedulable,
  PodBound,
  PodStarted,
  PodEnded,
}

/** In the order of `batkube.outputs.playback.model.NodeStatus`. */
export const enum NodeStatus {
  Ready,
  Cordoned,
  Failed,
  SwitchingOff,
  Asleep,
  SwitchingOn,
}

export const NODE_STATUSES = ["ready", "cordoned", "failed", "switching off", "asleep", "switching on"] as const;

export interface NodeColumns {
  name: string[];
  /** A row for each resource of `Header.resources`. */
  capacity: number[][];
  /** Indices into `texts`. */
  zone: number[];
  rack: number[];
  pool: number[];
}

export interface JobColumns {
  name: string[];
  /** Indices into `texts`. */
  user: number[];
  scheduler: number[];
  priority: number[];
  walltime: number[];
}

export interface PodColumns {
  name: string[];
  /** Index of the job, or -1. */
  job: number[];
  /** Index into `requests`. */
  request: number[];
  /** Indices into `texts`: its owner, and why it failed or was not placed. */
  owner: number[];
  reason: number[];
}

export interface DeltaColumns {
  /** Differences to the previous row. */
  time: number[];
  kind: Kind[];
  /** Index of the node, job or pod. */
  subject: number[];
  /** The node to which a pod is bound, the status of a node, a number of failed attempts, or -1. */
  value: number[];
  /** Index into `texts`: the phase or state at the end, the reason of an unschedulable pod; or -1. */
  text: number[];
}

export interface Chunk {
  texts: string[];
  /** Amounts in the order of `Header.resources`, one row for each distinct set of requests. */
  requests: number[][];
  nodes: NodeColumns;
  jobs: JobColumns;
  pods: PodColumns;
  deltas: DeltaColumns;
  /** The instant up to which the deltas are complete. */
  end: number;
}

export interface Table {
  columns: string[];
  rows: string[][];
}

export interface Header {
  name: string;
  summary: string;
  warnings: string[];
  resources: string[];
  /** Short names of the resources. */
  labels: string[];
  /** The resource by which utilisation is measured. */
  mainResource: number;
  facts: [string, string][];
  schedulers: Table;
}

/** The first decision that differs between two runs: an instant, and what each run decides. */
export interface Divergence {
  time: number;
  decisions: [string, string];
}

export interface PageData {
  runs: { header: Header; chunk: Chunk }[];
  divergence: Divergence | null;
  /** True if more chunks follow, from the server that served the page. */
  live: boolean;
}

/** Return the data of a page, which is compressed: gzip, then base64. */
export async function decodeData(encoded: string): Promise<PageData> {
  const bytes = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(plain).json()) as PageData;
}
