/** Faults: error responses, lost connections, silence, and changes during a request. */
import type { KubeRequest } from '../kube-server.ts';

export interface StoreRequest extends KubeRequest {
  readonly verb: string;
  readonly json: unknown;
}

/** `VERB path` as exact text or expression, or a predicate of the request. */
export type Match = string | RegExp | ((request: StoreRequest) => boolean);

export interface Fault {
  readonly times?: number;
  /** Responds with this status, without any other effect. */
  readonly status?: number;
  readonly message?: string;
  /** Whether the response names a field, as validation does. */
  readonly causes?: boolean;
  /** `Retry-After` in seconds. */
  readonly retryAfter?: number;
  readonly reset?: boolean;
  /** The request is carried out, and the connection is reset in place of a response. */
  readonly lost?: boolean;
  readonly hang?: boolean;
  /** Awaited before the request is handled, to delay it or to change an object first. */
  readonly before?: (request: StoreRequest) => Promise<void> | void;
}

export class Faults {
  readonly #list: { readonly match: Match; readonly fault: Fault; left: number }[] = [];

  /** @returns a function that removes the fault */
  add(match: Match, fault: Fault): () => void {
    const entry = { match, fault, left: fault.times ?? Number.POSITIVE_INFINITY };
    this.#list.push(entry);
    return () => {
      entry.left = 0;
    };
  }

  /** The first matching fault, whose remaining count decreases. */
  take(request: StoreRequest): Fault | undefined {
    const entry = this.#list.find((each) => each.left > 0 && matches(each.match, request));
    if (entry) entry.left--;
    return entry?.fault;
  }
}

export function matches(match: Match, request: StoreRequest): boolean {
  if (typeof match === 'function') return match(request);
  const text = `${request.verb} ${request.path}`;
  return typeof match === 'string' ? match === text : match.test(text);
}
