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
  /** Answers with this status and nothing else happens. */
  readonly status?: number;
  readonly message?: string;
  /** Whether the answer names a field, as one of validation does. */
  readonly causes?: boolean;
  /** `Retry-After`, seconds. */
  readonly retryAfter?: number;
  readonly reset?: boolean;
  /** The request is carried out and the connection is reset instead of an answer. */
  readonly lost?: boolean;
  readonly hang?: boolean;
  /** Awaited before the request is handled: to delay a request, or to change an object first. */
  readonly before?: (request: StoreRequest) => Promise<void> | void;
}

export class Faults {
  readonly #list: { readonly match: Match; readonly fault: Fault; left: number }[] = [];

  /** @returns what ends it */
  add(match: Match, fault: Fault): () => void {
    const entry = { match, fault, left: fault.times ?? Number.POSITIVE_INFINITY };
    this.#list.push(entry);
    return () => {
      entry.left = 0;
    };
  }

  /** The first fault that matches, counted down. */
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
