/**
 * containerd as a credential source, for descriptions and fingerprints. Its lookups are empty: its credentials belong to hosts, so each
 * endpoint has its own (`Endpoint.ownCredential`).
 */
import type { LiveCredentialSource } from '../../src/credentials/sources/file-source.ts';
import type { ContainerdEndpoints } from './endpoints.ts';

/** Closing it closes the endpoints. */
export function containerdSource(endpoints: ContainerdEndpoints): LiveCredentialSource {
  return {
    name: 'containerd',
    lookup: () => Promise.resolve([]),
    problems: () => endpoints.problems(),
    fingerprint: () => endpoints.fingerprint(),
    describe: () => Promise.resolve(endpoints.describe()),
    refresh: () => endpoints.refresh(),
    close: () => endpoints.close(),
  };
}
