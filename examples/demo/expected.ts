/**
 * The promise in the comment of each example, as data. The demo fails if an answer differs or an example has
 * no entry.
 */
import type { CredentialSourceName } from '../../src/credentials/credential.ts';
import type { FactsErrorCode } from '../../src/images/facts/facts.ts';
import type { Outcome } from '../../src/placement/decision.ts';

export interface Expected {
  readonly outcome: Outcome;
  /** Architectures in every required node affinity term; absent: no term has any. */
  readonly required?: readonly string[];
  /** Number of required terms; 1 where there are architectures and 0 else. */
  readonly terms?: number;
  /** Architectures with a tolerated taint; absent: the required ones. */
  readonly tolerated?: readonly string[];
  /** Preferred architectures and their weights; absent: none. */
  readonly preferred?: Readonly<Record<string, number>>;
  /** One for each warning, in order. */
  readonly warnings?: readonly RegExp[];
  /** Parts of a refusal's message. */
  readonly denied?: readonly RegExp[];
  /** The credential source of each image's facts, or the failure. */
  readonly learned?: Readonly<Record<string, CredentialSourceName | FactsErrorCode>>;
}

const both = ['amd64', 'arm64'];
const all = ['amd64', 'arm64', 's390x'];
const sharesNothing = [/legacy\/billing:1.*amd64/, /arm\/only:1.*arm64/];

export const expected: Readonly<Record<string, Expected>> = {
  'artifact-volume.yaml': {
    outcome: 'placed',
    required: all,
    learned: { 'public.example/models/words:1': 'not-an-image' },
  },
  'attestations.yaml': { outcome: 'placed', required: both },
  'daemonset.yaml': { outcome: 'placed', required: both },
  'deployment-no-common.yaml': {
    outcome: 'unconstrained',
    warnings: [/cannot be placed.*legacy\/billing:1.*amd64.*arm\/only:1/],
  },
  'disabled.yaml': { outcome: 'skipped' },
  'mirrored.yaml': { outcome: 'placed', required: both, learned: { 'nginx:1': 'docker-config' } },
  'no-common-architecture.yaml': { outcome: 'denied', denied: sharesNothing },
  'own-affinity.yaml': { outcome: 'placed', required: all, terms: 2 },
  'own-node-selector.yaml': { outcome: 'own-constraint', tolerated: ['arm64'] },
  'preferred-label.yaml': { outcome: 'placed', required: all, preferred: { arm64: 100 } },
  'preferred-label-unmet.yaml': { outcome: 'placed', required: ['amd64'], warnings: [/arm64/] },
  'preferred-weights.yaml': { outcome: 'placed', required: all, preferred: { arm64: 80, amd64: 20 } },
  'private-with-secret.yaml': {
    outcome: 'placed',
    required: both,
    learned: { 'private.example/team/app:1': 'pull-secret' },
  },
  'private-without-secret.yaml': {
    outcome: 'placed',
    required: both,
    learned: { 'private.example/team/app:1': 'registry-toml' },
  },
  'pull-always.yaml': { outcome: 'placed', required: all },
  'sidecars.yaml': {
    outcome: 'placed',
    required: both,
    learned: { 'public.example/shop/web:1': 'anonymous' },
  },
  'single-architecture.yaml': { outcome: 'placed', required: ['amd64'] },
  'single-architecture-arm.yaml': { outcome: 'placed', required: ['arm64'] },
  'unknown-image.yaml': {
    outcome: 'gated',
    tolerated: [],
    required: both,
    warnings: [/web:no-such-tag: not-found/, /silent\.example\/shop\/web:1: unavailable/],
    learned: {
      'public.example/shop/web:no-such-tag': 'not-found',
      'silent.example/shop/web:1': 'unavailable',
    },
  },
};
