/** Admission reviews through the real mutator, and requests to the agent API. */
import fastJsonPatch, { type Operation } from 'fast-json-patch';
import { Writable } from 'node:stream';
import { ApiError } from '../../../daemon/api/outcomes.ts';
import { parseFactsRequest } from '../../../daemon/api/facts.ts';
import {
  claimsFactsAudience,
  InvalidRequest,
  maxImages,
  parseImagesRequest,
} from '../../../src/facts-api/request.ts';
import { FactsCache } from '../../../src/images/cache/cache.ts';
import { createRequestOf } from '../../../src/images/facts/facts.ts';
import { defaultCacheTimes } from '../facts.ts';
import { InvalidDocument } from '../../../src/http/json.ts';

import type { Policy } from '../../../src/policy/effective/policy.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { createFactsOfPod } from '../../../src/cluster/facts-of-pod.ts';
import { bindCounters } from '../../../src/webhook/metrics.ts';
import { Mutator } from '../../../src/webhook/mutate.ts';
import { createPullSecrets } from '../../../src/cluster/pull-secrets.ts';
import { BadReview, formatReview, parseReview } from '../../../src/webhook/review.ts';
import { defaultPolicy, facts } from '../placement-input.ts';
import { words } from './inputs.ts';
import type { FuzzTarget } from './target.ts';

const architectures: Readonly<Record<string, string>> = { web: 'amd64 arm64', legacy: 'amd64', artifact: '' };

/** A mutator over a real cache, and the internal errors that it caught. */
function mutatorOverCache(): { mutator: Mutator; faults: Error[] } {
  const faults: Error[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _, done) {
      const { level, err } = JSON.parse(chunk.toString()) as {
        level: string;
        err?: { type: string; stack: string };
      };
      if (level === 'error' && err?.type !== 'InvalidObject')
        faults.push(new Error(err?.stack ?? chunk.toString()));
      done();
    },
  });
  const log = createLog({ level: 'error', destination });
  const metrics = createMetrics();
  const counters = bindCounters(metrics);
  const clock = systemClock;
  const source = {
    lookup: ({ image }: { image: string }) =>
      Promise.resolve({ ...facts(architectures[image] ?? 'arm64'), image }),
  };
  const cache = new FactsCache({ source, log });
  const requestOf = createRequestOf(defaultCacheTimes, false);
  const pullSecrets = createPullSecrets({ cluster: undefined, keepMs: 0, clock, metrics });
  const factsOfPod = createFactsOfPod({ cache, requestOf, pullSecrets, clock, log });
  const policy: Policy = {
    ...defaultPolicy,
    matchNodeLabels: ['zone'],
    tolerations: [{ key: 'arch', operator: 'Equal' as const, effect: 'NoSchedule' as const }],
  };
  const mutator = new Mutator({
    sources: { factsOfPod, policies: { policyOf: () => policy }, namespaceLabels: () => ({}), clock },
    counters,
    log,
  });
  return { mutator, faults };
}

let made: ReturnType<typeof mutatorOverCache> | undefined;

const pod =
  '{"metadata":{"generateName":"web-","namespace":"shop","labels":{"zone":"a"},"annotations":{}},"spec":{"containers":[{"name":"a","image":"web"},{"name":"b","image":"legacy"}],"initContainers":[{"name":"i","image":"artifact"}],"volumes":[{"name":"v","image":{"reference":"web"}}],"imagePullSecrets":[{"name":"regcred"}],"nodeSelector":{"disk":"ssd"},"tolerations":[{"key":"arch","operator":"Exists"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"disk","operator":"In","values":["ssd"]}]}]},"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{}}]}}}}';

const review = (kind: string, object: string, more = ''): string =>
  `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"705ab4f5","kind":{"group":"${kind === 'Pod' ? '' : 'apps'}","version":"v1","kind":"${kind}"},"resource":{"group":"","version":"v1","resource":"pods"},"operation":"CREATE","namespace":"shop","object":${object}${more}}}`;

export const reviews: FuzzTarget = {
  name: 'admission reviews',
  share: 4,
  examples: [
    review('Pod', pod),
    review('DaemonSet', `{"metadata":{"name":"d"},"spec":{"selector":{},"template":${pod}}}`),
    review('Deployment', `{"spec":{"template":${pod}}}`, `,"oldObject":{"spec":{}}`),
  ],
  words: words(
    '{ } [ ] , : null "" 0 true "spec": "UPDATE" "ephemeralContainers":[{"image":"new"}] "kubernetes.io/arch" "operator":"Exists"',
  ),
  feed: async (input) => {
    made ??= mutatorOverCache();
    const request = parseReview(input);
    const answer = await made.mutator.mutate(request, 0);
    const fault = made.faults.shift();
    if (fault) throw fault;
    if (answer.uid !== request.uid) throw new TypeError('a response to another request');
    formatReview(answer);
    if (answer.patch === undefined) return;
    const patch = JSON.parse(Buffer.from(answer.patch, 'base64').toString()) as Operation[];
    fastJsonPatch.applyPatch(structuredClone(request.object), patch, true);
  },
  expected: [BadReview],
};

export const factsRequests: FuzzTarget = {
  name: 'requests to agents',
  examples: [
    '{"images":[{"image":"nginx","maxAgeMs":5000}],"deadlineMs":5000,"auths":{"gcr.io/team":{"username":"u","password":"p"},"quay.io":[{"username":"a","password":"b"}]}}',
  ],
  words: ['{', '}', '[', ']', ',', 'null', '""', '"auths":', '"serviceAccount":', '1e999', '"https://a:b/"'],
  feed: async (input) => {
    const { pullSecrets, deadlineMs } = parseFactsRequest(input);
    if (!(deadlineMs > 0 && deadlineMs <= 30_000)) throw new TypeError('a deadline out of its bounds');
    await pullSecrets.lookup('docker.io/library/nginx');
  },
  expected: [ApiError],
};

export const clusterTargets: readonly FuzzTarget[] = [
  reviews,
  factsRequests,
  {
    name: 'requests to the controller',
    examples: [
      '{"token":"a.b.c","namespace":"shop","images":[{"image":"nginx","pullPolicy":"Always"}],"pullSecrets":["regcred"],"serviceAccount":"web","deadlineMs":5000}',
    ],
    words: ['{', '}', '[', ']', ',', 'null', '""', '"token":', '"images":', '1e999', '"Never"'],
    feed: (input, text) => {
      claimsFactsAudience(text);
      claimsFactsAudience(`e30.${input.toString('base64url')}.e30`);
      const { deadlineMs, images } = parseImagesRequest(input);
      if (!(deadlineMs > 0 && deadlineMs <= 60_000)) throw new TypeError('a deadline out of its bounds');
      if (images.length > maxImages) throw new TypeError('too many images');
    },
    expected: [InvalidRequest, InvalidDocument],
  },
];
