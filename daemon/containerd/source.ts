/**
 * containerd among the sources of credentials, for people and for fingerprints. It answers no lookup: what it has is bound to
 * hosts, so each of its endpoints carries its own credential (`Endpoint.ownCredential`).
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
