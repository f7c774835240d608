/** Objects by name, lists in pages, and logs. */
import type { StoreRequest } from './faults.ts';
import type { Objects, StoredObject } from './objects.ts';
import { isBuiltIn, type Target } from './paths.ts';
import { parseSelector } from './selectors.ts';
import { notFound, statusAnswer, type Answer } from './writes.ts';

export interface Reads {
  answer(target: Target, request: StoreRequest): Answer;
  log(path: string, text: (query: URLSearchParams) => string | undefined): void;
  /** Pages that were not fetched yet are gone (410). */
  forgetPages(): void;
}

/** The rest of a list, as it was when its first page was asked for. */
interface Rest {
  readonly version: number;
  readonly items: readonly StoredObject[];
}

export function createReads(objects: Objects): Reads {
  const rests = new Map<string, Rest>();
  const logs = new Map<string, (query: URLSearchParams) => string | undefined>();
  let tokens = 0;

  function list(target: Target, { query }: StoreRequest): Answer {
    const token = query.get('continue');
    const selector = parseSelector(target.resource, query) ?? (() => false);
    const rest =
      token === null
        ? { version: objects.version(), items: objects.list(target).filter((object) => selector(object)) }
        : rests.get(token);
    if (rest === undefined) {
      return statusAnswer(410, 'Expired', 'The provided continue parameter is too old');
    }
    const limit = Number(query.get('limit') ?? 0) || Number.POSITIVE_INFINITY;
    const { version, items } = rest;
    const metadata: Record<string, unknown> = { resourceVersion: String(version) };
    if (items.length > limit) {
      metadata['continue'] = `page-${++tokens}`;
      metadata['remainingItemCount'] = items.length - limit;
      rests.set(`page-${tokens}`, { version, items: items.slice(limit) });
    }
    const shown = items.slice(0, limit).map((object) => (isBuiltIn(target) ? withoutKind(object) : object));
    return { status: 200, body: { kind: 'List', apiVersion: target.apiVersion, metadata, items: shown } };
  }

  function log(target: Target, { path, query }: StoreRequest): Answer {
    if (objects.get(target) === undefined) return notFound(target);
    const text = logs.get(path.replace(/\/log$/, ''))?.(query);
    if (text === undefined) return statusAnswer(400, 'BadRequest', 'the container has no log');
    const tail = Number(query.get('tailLines') ?? Number.NaN);
    const limit = Number(query.get('limitBytes') ?? Number.NaN);
    const lines = text.split(/(?<=\n)/);
    const end = Number.isNaN(tail) ? text : lines.slice(-tail).join('');
    return { status: 200, body: Number.isNaN(limit) ? end : end.slice(0, limit) };
  }

  return {
    answer: (target, request) => {
      if (target.name === '') return list(target, request);
      if (target.subresource === 'log') return log(target, request);
      const found = objects.get(target);
      const isWhole = target.subresource === '' || target.subresource === 'status';
      return found === undefined || !isWhole ? notFound(target) : { status: 200, body: found };
    },
    log: (path, text) => void logs.set(path, text),
    forgetPages: () => rests.clear(),
  };
}

/** The items of a list of a built-in kind do not say what they are. */
function withoutKind(object: StoredObject): object {
  return Object.fromEntries(
    Object.entries(object).filter(([name]) => name !== 'kind' && name !== 'apiVersion'),
  );
}
