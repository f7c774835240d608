/** Objects by name, lists in pages, and logs. */
import type { StoreRequest } from './faults.ts';
import type { Objects, StoredObject } from './objects.ts';
import { isBuiltIn, parseSelector, type Target } from './paths.ts';
import { notFound, statusAnswer, type Answer } from './writes.ts';

/** The rest of a list, as of its first page. */
interface Rest {
  readonly version: number;
  readonly items: readonly StoredObject[];
}

/** The text of a log for a query. `undefined`: the container has no log. */
export type LogText = (query: URLSearchParams) => string | undefined;

export class Reads {
  readonly #objects: Objects;
  readonly #rests = new Map<string, Rest>();
  readonly #logs = new Map<string, LogText>();
  readonly #pages = new Map<string, () => string>();
  #tokens = 0;

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  answer(target: Target, request: StoreRequest): Answer {
    if (target.name === '') return this.#list(target, request);
    if (target.subresource === 'log') return this.#log(target, request);
    if (target.subresource.startsWith('proxy/')) return this.#proxied(target, request);
    const found = this.#objects.get(target);
    const isWhole = target.subresource === '' || target.subresource === 'status';
    return found === undefined || !isWhole ? notFound(target) : { status: 200, body: found };
  }

  /** A pod's responses through the API server's proxy. */
  page(path: string, text: (() => string) | undefined): void {
    if (text) this.#pages.set(path, text);
    else this.#pages.delete(path);
  }

  log(path: string, text: LogText): void {
    this.#logs.set(path, text);
  }

  /** Pages that were not fetched yet expire (410). */
  forgetPages(): void {
    this.#rests.clear();
  }

  #list(target: Target, { query, accept = '' }: StoreRequest): Answer {
    const token = query.get('continue');
    const selector = parseSelector(target.resource, query) ?? (() => false);
    const rest =
      token === null
        ? { version: this.#objects.version(), items: this.#objects.list(target).filter(selector) }
        : this.#rests.get(token);
    if (rest === undefined) return statusAnswer(410, 'Expired', 'The provided continue parameter is too old');
    const limit = Number(query.get('limit') ?? 0) || Number.POSITIVE_INFINITY;
    const { version, items } = rest;
    const metadata: Record<string, unknown> = { resourceVersion: String(version) };
    if (items.length > limit) {
      metadata['continue'] = `page-${++this.#tokens}`;
      metadata['remainingItemCount'] = items.length - limit;
      this.#rests.set(`page-${this.#tokens}`, { version, items: items.slice(limit) });
    }
    const isBare = accept.includes('as=PartialObjectMetadataList');
    const shown = items.slice(0, limit).map((object) => {
      if (isBare) return { metadata: object.metadata };
      return isBuiltIn(target) ? withoutKind(object) : object;
    });
    return { status: 200, body: { kind: 'List', apiVersion: target.apiVersion, metadata, items: shown } };
  }

  #proxied(target: Target, { path }: StoreRequest): Answer {
    const [, name] = /^(?:https?:)?([^:]+)/.exec(target.name) ?? [];
    const page = this.#pages.get(path);
    if (name === undefined || this.#objects.get({ ...target, name }) === undefined) return notFound(target);
    if (page === undefined) return statusAnswer(503, 'ServiceUnavailable', 'error trying to reach service');
    return { status: 200, body: page() };
  }

  #log(target: Target, { path, query }: StoreRequest): Answer {
    if (this.#objects.get(target) === undefined) return notFound(target);
    const text = this.#logs.get(path.replace(/\/log$/, ''))?.(query);
    if (text === undefined) return statusAnswer(400, 'BadRequest', 'the container has no log');
    const tail = Number(query.get('tailLines') ?? Number.NaN);
    const limit = Number(query.get('limitBytes') ?? Number.NaN);
    const lines = text.split(/(?<=\n)/);
    const end = Number.isNaN(tail) ? text : lines.slice(-tail).join('');
    return { status: 200, body: Number.isNaN(limit) ? end : end.slice(0, limit) };
  }
}

/** List items of built-in kinds have no kind. */
function withoutKind({ kind: _kind, apiVersion: _version, ...rest }: StoredObject): object {
  return rest;
}
