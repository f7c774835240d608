/** Clients and lookups for test registries. */
import type { Test } from 'tap';
import type { MatchedCredential } from '../../../src/credentials/credential.ts';
import {
  createRegistryClient,
  type RegistryClient,
  type RegistryClientOptions,
} from '../../../src/registry/client.ts';
import type { Endpoint, PullTarget } from '../../../src/registry/endpoints/endpoint.ts';
import type { Attempt, ManifestLookup, ManifestResult } from '../../../src/registry/manifest-lookup.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { startTestRegistry, type TestRegistry, type TestRegistryOptions } from './server.ts';
import { neverAborted } from '../never-aborted.ts';

export function endpointOf(registry: TestRegistry, changes: Partial<Endpoint> = {}): Endpoint {
  return {
    base: `${registry.url}/v2`,
    host: registry.host,
    namespace: registry.host,
    namespaceParameter: false,
    httpFallback: false,
    resolve: true,
    pull: true,
    tls: { ca: registry.ca === '' ? [] : [registry.ca], client: [], skipVerify: false },
    headers: [],
    acceptsCredentials: true,
    origin: 'test',
    ...changes,
  };
}

export function credential(
  username: string,
  password: string,
  changes: Partial<MatchedCredential> = {},
): MatchedCredential {
  return {
    credential: { username, password: secret(password) },
    source: 'docker-config',
    key: 'registry.test',
    origin: '/var/lib/kubelet/config.json',
    id: `${username} ${password.length} ${password.at(-1) ?? ''}`,
    ...changes,
  };
}

/** `app:v1` of a registry. */
export function targetOf(domain: string): PullTarget {
  return { domain, repository: `${domain}/app`, tag: 'v1' };
}

type Place = TestRegistry | Endpoint;

/** A lookup of `library/app:v1` at these registries or endpoints, in this order. */
export function lookupOf(where: readonly Place[], changes: Partial<ManifestLookup> = {}): ManifestLookup {
  return {
    repository: 'library/app',
    reference: 'v1',
    endpoints: where.map((place) => ('faults' in place ? endpointOf(place) : place)),
    credentials: [],
    ...changes,
  };
}

export function lookUp(
  client: RegistryClient,
  where: Place | readonly Place[],
  changes: Partial<ManifestLookup> = {},
  signal: AbortSignal = neverAborted,
): Promise<ManifestResult> {
  const places = 'length' in where ? where : [where];
  return client.lookup(lookupOf(places, changes), signal);
}

export async function startRegistry(t: Test, options: TestRegistryOptions = {}): Promise<TestRegistry> {
  const registry = await startTestRegistry(options);
  t.teardown(() => registry.close());
  return registry;
}

export function clientFor(t: Test, options: RegistryClientOptions = {}): RegistryClient {
  const client = testClient(options);
  t.teardown(() => client.close());
  return client;
}

/** A client without this machine's proxies and files, with time limits that suffice on a busy machine. */
export function testClient(options: RegistryClientOptions = {}): RegistryClient {
  const ms = 60_000;
  return createRegistryClient({
    environment: {},
    hostRoot: '/nonexistent',
    ...options,
    limits: { dialMs: ms, tlsMs: ms, headerMs: ms, idleMs: ms, totalMs: 2 * ms, ...options.limits },
  });
}

/** Collects attempts as short lines: `GET manifest 401`. */
export function tracing(): { trace: (attempt: Attempt) => void; lines: string[]; attempts: Attempt[] } {
  const attempts: Attempt[] = [];
  const lines: string[] = [];
  return {
    attempts,
    lines,
    trace: (attempt) => {
      attempts.push(attempt);
      lines.push(`${attempt.method} ${attempt.purpose} ${attempt.status ?? attempt.problem ?? ''}`);
    },
  };
}
