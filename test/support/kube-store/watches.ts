/** Watches of the store: changes that match a client's selectors, and faults of watches. */
import type { ServerResponse } from 'node:http';
import type { Objects, StoreChange } from './objects.ts';
import type { Selector, Target } from './paths.ts';

interface Watch {
  readonly path: string;
  readonly target: Target;
  readonly selector: Selector;
  readonly hasBookmarks: boolean;
  readonly response: ServerResponse;
  silent: boolean;
}

export class Watches {
  readonly #open = new Set<Watch>();
  readonly #objects: Objects;

  constructor(objects: Objects) {
    this.#objects = objects;
    objects.onChange((change) => {
      for (const watch of this.#open) tell(watch, change);
    });
  }

  /** Sends the changes since a version, as long as the client is connected. */
  open(target: Target, query: URLSearchParams, selector: Selector, response: ServerResponse): void {
    const hasBookmarks = query.get('allowWatchBookmarks') === 'true';
    const { pathname: path } = new URL(response.req.url ?? '/', 'https://kubernetes');
    const watch: Watch = { path, target, selector, hasBookmarks, response, silent: false };
    const from = Number(query.get('resourceVersion') ?? 0);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const changes = from === 0 ? [] : this.#objects.since(from);
    if (changes === undefined) {
      const message = `too old resource version: ${from} (${this.#objects.version()})`;
      send(watch, 'ERROR', { kind: 'Status', status: 'Failure', code: 410, reason: 'Expired', message });
      response.end();
      return;
    }
    const all = from === 0 ? this.#objects.list(target) : [];
    for (const object of all) if (selector(object)) send(watch, 'ADDED', object);
    for (const change of changes) tell(watch, change);
    this.#open.add(watch);
    response.on('close', () => this.#open.delete(watch));
  }

  count(path?: string): number {
    return this.#of(path).length;
  }

  bookmark(): void {
    for (const watch of this.#open) {
      const { resource, apiVersion } = watch.target;
      const metadata = { resourceVersion: String(this.#objects.version()) };
      if (watch.hasBookmarks)
        send(watch, 'BOOKMARK', { kind: resource.replace(/s$/, ''), apiVersion, metadata });
    }
  }

  /** Ends watches properly, resets their connections, or leaves them open and silent. */
  cut(how: 'end' | 'reset' | 'silence', path?: string): void {
    for (const watch of this.#of(path)) {
      if (how === 'silence') watch.silent = true;
      else {
        this.#open.delete(watch);
        if (how === 'end') watch.response.end();
        else watch.response.req.socket.destroy();
      }
    }
  }

  #of(path?: string): readonly Watch[] {
    return [...this.#open].filter((watch) => path === undefined || watch.path === path);
  }
}

function send(watch: Watch, type: string, object: object): void {
  if (!watch.silent) watch.response.write(`${JSON.stringify({ type, object })}\n`);
}

function tell(watch: Watch, change: StoreChange): void {
  const { target, selector } = watch;
  if (change.collection !== target.collection) return;
  if (target.namespace !== '' && target.namespace !== change.namespace) return;
  if (target.name !== '' && target.name !== change.name) return;
  const { before, after, version } = change;
  const was = before !== undefined && selector(before);
  if (after !== undefined && selector(after)) send(watch, was ? 'MODIFIED' : 'ADDED', after);
  else if (was) {
    // Also an object that leaves the selector is shown as it was, with the version of the change.
    send(watch, 'DELETED', { ...before, metadata: { ...before.metadata, resourceVersion: String(version) } });
  }
}
