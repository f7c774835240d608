/**
 * How `archwright inspect` reaches the agent of its container: HTTP on a Unix socket in the agent's state
 * directory, which only root can open. So a second process needs no memory for credentials, connections and
 * documents, and shows what this agent sees.
 */
import { join } from 'node:path';
import type { SourceProblem } from '../../src/credentials/credential.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import type { Attempt } from '../../src/registry/manifest-lookup.ts';

export const inspectPath = '/v1/inspect';

export function socketPathIn(stateDir: string): string {
  return join(stateDir, 'agent.sock');
}

/** A credential source, for people. */
export interface NamedSource {
  readonly name: string;
  readonly place: string;
  readonly problems: readonly SourceProblem[];
}

/** What an inspection found. Holds no secret. */
export interface Inspected {
  /** In the order of the images. */
  readonly results: readonly ImageFacts[];
  /** Requests by image, in the order of completion. */
  readonly attempts: Readonly<Record<string, readonly Attempt[]>>;
  readonly sources: readonly NamedSource[];
}
