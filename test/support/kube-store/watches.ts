/** Watches of the store: what a client sees of the changes, through its selectors, and how a watch breaks. */
import type { ServerResponse } from 'node:http';
import type { Objects, StoreChange, StoredObject } from './objects.ts';
import type { Target } from './paths.ts';
import type { Selector } from './selectors.ts';

export interface Watches {
  /** Answers with the changes since a version, for as long as the client listens. */
  open(target: Target, query: URLSearchParams, selector: Selector, response: ServerResponse): void;
  /** Open watches of a collection path, or all. */
  count(path?: string): number;
  /** Sends a bookmark on each watch that wanted them. */
  bookmark(): void;
  /** Ends watches properly, resets their connections, or leaves them open and silent. */
  cut(how: 'end' | 'reset' | 'silence', path?: string): void;
}

interface Watch {
  readonly path: string;
  readonly target: Target;
  readonly selector: Selector;
  readonly hasBookmarks: boolean;
  readonly response: ServerResponse;
  silent: boolean;
}

export function createWatches(objects: Objects): Watches {
  const open = new Set<Watch>();

  function send(watch: Watch, type: string, object: object): void {
    if (!watch.silent) watch.response.write(`${JSON.stringify({ type, object })}\n`);
  }

  function tell(watch: Watch, change: StoreChange): void {
    const { target, selector } = watch;
    if (change.collection !== target.collection) return;
    if (target.namespace !== '' && target.namespace !== change.namespace) return;
    if (target.name !== '' && target.name !== change.shown.metadata.name) return;
    const was = change.before !== undefined && selector(change.before);
    const is = change.after !== undefined && selector(change.after);
    // An object that leaves the selector is deleted as far as this watch goes.
    if (is) send(watch, was ? 'MODIFIED' : 'ADDED', change.shown);
    else if (was) send(watch, 'DELETED', change.shown);
  }

  function bookmarkFor(target: Target): object {
    const kind = target.resource.replace(/s$/, '');
    return { kind, apiVersion: target.apiVersion, metadata: { resourceVersion: String(objects.version()) } };
  }

  objects.onChange((change) => {
    for (const watch of open) tell(watch, change);
  });

  return {
    open: (target, query, selector, response) => {
      const hasBookmarks = query.get('allowWatchBookmarks') === 'true';
      const { pathname } = new URL(response.req.url ?? '/', 'https://kubernetes');
      const watch: Watch = { path: pathname, target, selector, hasBookmarks, response, silent: false };
      const from = Number(query.get('resourceVersion') ?? 0);
      response.writeHead(200, { 'content-type': 'application/json' });
      response.flushHeaders();
      const changes = from === 0 ? undefined : objects.since(from);
      if (from !== 0 && changes === undefined) {
        const message = `too old resource version: ${from} (${objects.version()})`;
        send(watch, 'ERROR', { kind: 'Status', status: 'Failure', code: 410, reason: 'Expired', message });
        response.end();
        return;
      }
      const all: StoredObject[] = from === 0 ? objects.list(target) : [];
      for (const object of all) if (selector(object)) send(watch, 'ADDED', object);
      for (const change of changes ?? []) tell(watch, change);
      open.add(watch);
      response.on('close', () => open.delete(watch));
    },
    count: (path) => [...open].filter((watch) => path === undefined || watch.path === path).length,
    bookmark: () => {
      for (const watch of open) if (watch.hasBookmarks) send(watch, 'BOOKMARK', bookmarkFor(watch.target));
    },
    cut: (how, path) => {
      for (const watch of open) {
        if (path !== undefined && watch.path !== path) continue;
        if (how === 'silence') watch.silent = true;
        else {
          open.delete(watch);
          if (how === 'end') watch.response.end();
          else watch.response.req.socket.destroy();
        }
      }
    },
  };
}
