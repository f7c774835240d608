/** Objects and texts in objects that people write: records, notes, selectors, custom resources, logs. */
import * as v from 'valibot';
import { isDeepStrictEqual } from 'node:util';
import { readDrift } from '../../../cmd/report/judged-pods.ts';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import {
  invalidStatus,
  readProgress,
  rolloutStatus,
} from '../../../src/controller/features/rollouts/status.ts';
import { failureIn } from '../../../src/controller/pods/suspects.ts';
import { formatBroken, keyOfBroken, parseBroken } from '../../../src/images/sources/broken-images.ts';
import { formatDrifted, keyOfDrifted, parseDrifted } from '../../../src/images/sources/drifted-tags.ts';
import { recordedIn, uncheckedRecord } from '../../../src/placement/record/read.ts';
import { parseWeights } from '../../../src/placement/rules/preference/read.ts';
import { labelSelector, selects } from '../../../src/policy/resources/schemas.ts';
import { readClusterConfig, readPodConfig } from '../../../src/policy/resources/placement.ts';
import { readRollout, wantedPods } from '../../../src/policy/resources/rollout.ts';
import { words } from './inputs.ts';
import { object, parsed, must, type FuzzTarget } from './target.ts';
import { neverAborted } from '../never-aborted.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const driftExample = {
  image: 'docker.io/library/nginx:1.29',
  digest,
  lost: ['linux/arm64'],
  gained: ['linux/riscv64'],
  since: Date.parse('2026-11-21T10:00:00.000Z'),
};

export const objectTargets: readonly FuzzTarget[] = [
  {
    name: 'decision records',
    examples: [
      '{"v":1,"outcome":"placed","architectures":["amd64","arm64"],"imagesKey":"k","images":[["nginx","amd64"]],"widened":{"nodeSelector":{"kubernetes.io/arch":"amd64"},"expressions":[["kubernetes.io/arch",["amd64"]]]},"added":{"terms":[[["kubernetes.io/arch",["amd64","arm64"]]]],"match":[["zone",["a"]]],"excludedNodes":["n1"],"lookalikes":[],"made":true,"preferred":[["arm64",80]],"tolerations":[{"key":"arch","operator":"Exists"}],"pinned":"arm64"}}',
    ],
    words: words('{ } [ ] , null "v":1 "added": "terms": "arm64" 1e999 __proto__'),
    feed: (_, text) => {
      const annotations = { 'arch.example/decision': text };
      const pod: Pod = { metadata: { name: 'a', annotations }, spec: { containers: [] } };
      for (const waiting of [true, false]) {
        const found = recordedIn({ pod, waiting });
        must((found?.architectures?.length ?? 0) <= 256, 'more architectures than a record may have');
      }
      return uncheckedRecord(pod).images;
    },
  },
  {
    name: 'preferred weights',
    share: 20,
    examples: ['arm64=80,amd64=20', ' arm64 = 1 '],
    words: words('arm64 amd64 = , 100 0 101 -1', ' '),
    feed: (input) => {
      const found = parseWeights(input.toString('utf8'));
      const text = found?.map(({ architecture, weight }) => `${architecture}=${weight}`).join(',');
      if (text !== undefined)
        must(JSON.stringify(parseWeights(text)) === JSON.stringify(found), 'other weights when read again');
      return found;
    },
  },
  {
    name: 'notes of broken images',
    examples: [
      `{"sha256-${'a'.repeat(64)}.arm64":"{\\"image\\":\\"nginx\\",\\"namespaces\\":[\\"shop\\"],\\"until\\":\\"2026-11-21T10:00:00.000Z\\"}"}`,
    ],
    words: words('{ } , null "until": "namespaces": \\"image\\": 275760-09-13 .arm64 sha256-'),
    feed: (input) => {
      const notes = parseBroken(object(input));
      for (const note of notes) {
        const key = keyOfBroken(note.digest, note.architecture);
        must(key !== undefined, 'a note without a key');
        const [again] = parseBroken({ [key ?? '']: formatBroken(note) });
        must(again?.until === note.until && again.digest === note.digest, 'another note when read again');
      }
      return notes;
    },
  },
  {
    name: 'notes of drifted tags',
    examples: [formatDrifted(driftExample), `{"other":1,"image":"${driftExample.image}"}`],
    words: words(
      '{ } [ ] , null "since": "lost": "gained": "image": "linux/arm/v7" -271821-04-20 sha256:',
      '\n',
    ),
    feed: async (input) => {
      const text = input.toString('utf8');
      // The key of the image: otherwise only the key is read.
      const { image } = object(input);
      const key = keyOfDrifted(typeof image === 'string' ? image : driftExample.image);
      const data = { [key]: text, [text]: text };
      const notes = parseDrifted(data);
      for (const note of notes) {
        const [again] = parseDrifted({ [keyOfDrifted(note.image)]: formatDrifted(note) });
        must(isDeepStrictEqual(again, note), 'another note when read again');
      }
      const cluster = { read: <T>() => Promise.resolve({ items: [{ data }, {}] } as T) };
      const driftOf = await readDrift({ namespace: 'archwright', name: 'archwright' }, cluster, neverAborted);
      return [driftOf(text), driftOf(driftExample.image), ...notes];
    },
  },
  {
    name: 'label selectors',
    examples: [
      '{"matchLabels":{"app":"web","a.b/c":""},"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]},{"key":"x","operator":"DoesNotExist"}]}',
    ],
    words: words('{ } [ ] , null "matchLabels": "operator": "NotIn" "values":[] "key":'),
    feed: (input) => {
      const { success, output } = v.safeParse(labelSelector, parsed(input));
      return success && selects(output, { app: 'web', zone: 'a' });
    },
  },
  {
    name: 'custom resources',
    examples: [
      '{"apiVersion":"arch.example/v1","kind":"ClusterPodPlacementConfig","metadata":{"name":"cluster"},"spec":{"logVerbosity":"Normal","namespaceSelector":{"matchLabels":{"a":"b"}},"fallbackArchitecture":"amd64","plugins":{"nodeAffinityScoring":{"enabled":true,"platforms":[{"architecture":"arm64","weight":50}]},"execFormatErrorMonitor":{"enabled":true}}}}',
      '{"kind":"PodPlacementConfig","metadata":{"name":"p","namespace":"shop","creationTimestamp":"2026-11-21T10:00:00Z"},"spec":{"priority":3,"labelSelector":{"matchExpressions":[]},"architectures":["amd64","arm64"],"onUnknownImage":"allow","onNoCommonArchitecture":"deny"}}',
    ],
    words: words('{ } [ ] , null "spec": "plugins": "platforms": -1 256 "enabled":1'),
    feed: (input) => {
      const value = object(input) as KubeObject;
      const both = [readClusterConfig(value), readPodConfig(value)];
      for (const { value: read, problems } of both)
        must((read === undefined) === problems.length > 0, 'neither a placement nor a problem');
      return both;
    },
  },
  {
    name: 'rollouts',
    examples: [
      '{"kind":"ArchitectureRollout","metadata":{"name":"web","namespace":"shop","creationTimestamp":"2026-11-21T10:00:00Z","generation":2},"spec":{"architecture":"arm64","names":["web"],"selector":{"matchLabels":{"a":"b"}},"steps":["10%",3,"100%"],"pause":"10m","unhealthy":{"restarts":2,"readyWithin":"5m","timesSlower":3},"tolerance":"10%","retryAfter":"1d","rebalance":true,"resumedAt":"2026-11-21T11:00:00Z"},"status":{"phase":"Paused","newPods":"Off","step":1,"attempt":2,"startedAt":"2026-11-21T10:00:00Z","reachedAt":"2026-11-21T10:05:00Z","message":"m"}}',
      '{"metadata":null,"spec":{"architecture":"arm64"}}',
    ],
    words: words(
      '{ } [ ] , null "0%" "101%" 0 1e999 "pause": "status": "phase":"RolledBack" "step":-1 "275760-09-13"',
    ),
    feed: (input) => {
      const value = object(input) as KubeObject;
      const { value: rollout, problems } = readRollout(value);
      must((rollout === undefined) === problems.length > 0, 'neither a rollout nor a problem');
      const progress = readProgress(value);
      if (!rollout) return [problems, invalidStatus(problems, value, 0)];
      for (const step of rollout.steps) {
        const wanted = wantedPods(step, 7);
        must(wanted >= 0 && wanted <= 7, `a step wants ${wanted} of 7 pods`);
      }
      return progress && [progress, rolloutStatus(rollout, progress, [], value, 0)];
    },
  },
  {
    name: 'logs of crashing containers',
    share: 20,
    examples: ['exec /app: exec format error\n', 'exec /usr/bin/app: exec format error'],
    words: words('exec /app : format error', 'exec ', ': exec format error', '\n', ' '),
    feed: (_, text) => void failureIn(text),
  },
];
