/** Requests to the registries. */
import type { RecordedRequest } from '../../test/support/registry/record.ts';
import { DemoError } from './error.ts';
import type { DemoRegistry, Registries } from './registries.ts';

/** Columns of the table, and the kinds of requests in each. */
export const columns = {
  'GET manifests': ['GET manifests'],
  'HEAD manifests': ['HEAD manifests'],
  blobs: ['GET blobs', 'HEAD blobs'],
  tokens: ['GET token', 'POST token'],
} as const;

export interface RegistryCount {
  readonly name: string;
  /** In the order of `columns`. */
  readonly requests: readonly number[];
  /** Of them, those that were answered 401 or 403. */
  readonly refused: number;
  /** Of them, those that were answered 404. */
  readonly missing: number;
}

export function countRequests({ all }: Registries): readonly RegistryCount[] {
  return all.map(({ name, server }) => {
    const counts = server.counts();
    const having = (statuses: readonly number[]): number =>
      server.requests.filter(({ status }) => statuses.includes(status)).length;
    return {
      name,
      requests: Object.values(columns).map((kinds) => sum(kinds.map((kind) => counts[kind] ?? 0))),
      refused: having([401, 403]),
      missing: having([404]),
    };
  });
}

/** An image that a registry served, and its client. */
export interface Given {
  readonly image: string;
  /** User name of the credential; empty for anonymous ones. */
  readonly user: string;
  readonly times: number;
}

/** Manifests delivered by tag: Docker Hub's count of pulls. */
export function givenImages({ all }: Registries): readonly Given[] {
  const given = new Map<string, Given>();
  for (const registry of all) {
    for (const request of registry.server.requests) {
      const image =
        request.status === 200 && request.method === 'GET' ? taggedImage(registry, request) : undefined;
      if (image === undefined) continue;
      const user = request.authorization?.user ?? '';
      const key = `${image} ${user}`;
      given.set(key, { image, user, times: (given.get(key)?.times ?? 0) + 1 });
    }
  }
  return [...given.values()];
}

/** Images with registry requests since `from`, a result of `marks`. */
export function askedSince({ all }: Registries, from: ReadonlyMap<string, number>): readonly string[] {
  return all.flatMap((registry) =>
    registry.server.requests
      .slice(from.get(registry.name) ?? 0)
      .map(({ method, path }) => `${method} ${registry.serves}${path}`),
  );
}

/** Number of requests to each registry so far. */
export function marks({ all }: Registries): ReadonlyMap<string, number> {
  return new Map(all.map(({ name, server }) => [name, server.requests.length]));
}

/**
 * Checks that each user got every image once, for any number of pods and nodes.
 * @throws DemoError
 */
export function assertOnce(given: readonly Given[]): void {
  const often = given.filter(({ times }) => times > 1).map(({ image, times }) => `${image} ${times} times`);
  if (often.length > 0) throw new DemoError(`asked for more than once: ${often.join(', ')}`);
}

function taggedImage({ serves }: DemoRegistry, { path }: RecordedRequest): string | undefined {
  const [, repository, tag] = /^\/v2\/(.+)\/manifests\/([^/:]+)$/.exec(path) ?? [];
  return repository === undefined ? undefined : `${serves}/${repository}:${tag}`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
