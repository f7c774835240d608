/** Responses of the API server: lists, watches, errors, and objects with users' content. */
import { KubeError, errorOfAnswer } from '../../../src/kube/api/errors.ts';
import type { KubeClient } from '../../../src/kube/api/client.ts';
import type { EndpointSlice, KubeObject, Secret } from '../../../src/kube/api/objects.ts';
import { ListWatch } from '../../../src/kube/watch/list-watch.ts';
import { recordOf } from '../../../src/kube/election/lease-lock.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { createServiceAccountTokens } from '../../../daemon/kubelet/provider/service-account.ts';
import { agentsOf } from '../../../src/fleet/discovery.ts';
import { createPullSecretSource, pullSecretPart } from '../../../src/credentials/sources/pull-secrets.ts';
import { CredentialError } from '../../../src/credentials/credential.ts';
import { trimNode, trimRunningPod, createSharing } from '../../../src/controller/state/cached.ts';
import { suspectsOf } from '../../../src/controller/pods/suspects.ts';
import { words } from './inputs.ts';
import { object, parsed, must, type FuzzTarget } from './target.ts';
import { silentLog as log } from '../captured.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const share = createSharing();

const pod = `{"metadata":{"name":"web-0","namespace":"shop","uid":"u","resourceVersion":"7","labels":{"a":"b"},"annotations":{"arch.example/decision":"{}"},"creationTimestamp":"2026-11-21T10:00:00Z","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"r","controller":true}],"managedFields":[{"f:spec":{}}]},"spec":{"nodeName":"n1","containers":[{"name":"a","image":"nginx"}],"tolerations":[],"volumes":[{"name":"v"}]},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"a","image":"nginx","imageID":"docker.io/nginx@${digest}","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":255,"message":"exec /app: exec format error"}}}]}}`;
const head = '{"kind":"Pod","apiVersion":"v1",';

/** Feeds one list and one watch to the caches of pods and nodes. It never rejects. */
async function listAndWatchOnce(list: unknown, lines: readonly string[]): Promise<unknown> {
  const stop = new AbortController();
  let pages = 0;
  const kept: unknown[] = [];
  const take = (found: KubeObject): void => {
    const running = trimRunningPod(found, share);
    kept.push(running && suspectsOf(running), trimNode(found, share));
  };
  const client = {
    // The second page is the last.
    get: () => Promise.resolve(pages++ === 0 ? list : { metadata: { resourceVersion: '1' } }),
    // eslint-disable-next-line typescript/require-await
    lines: async function* () {
      yield* lines;
    },
  } as unknown as KubeClient;
  const listWatch = new ListWatch({
    client,
    path: '/api/v1/pods',
    selection: {},
    signal: stop.signal,
    listed: () => ({ add: take, done: () => undefined }),
    changed: take,
    isOptional: false,
    opened: () => undefined,
    ended: () => stop.abort(),
    idleMs: () => 1000,
    clock: systemClock,
    log,
  });
  await listWatch.run();
  return kept;
}

export const kubernetesTargets: readonly FuzzTarget[] = [
  {
    name: 'lists of the API server',
    share: 4,
    examples: [
      `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10","continue":"t"},"items":[${pod},${pod}]}`,
      '{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[{"metadata":{"name":"n","labels":{"kubernetes.io/arch":"arm64"}},"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]},"status":{"nodeInfo":{"architecture":"arm64"}}}]}',
    ],
    words: words('{ } [ ] , null "items":null "metadata": "continue":"" -1'),
    feed: (input) => listAndWatchOnce(parsed(input), []),
  },
  {
    name: 'watch streams',
    examples: [
      `{"type":"ADDED","object":${head}${pod.slice(1)}}\n{"type":"MODIFIED","object":${head}${pod.slice(1)}}\n{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`,
      `{"type":"DELETED","object":${head}${pod.slice(1)}}\n{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}`,
    ],
    words: words('{ } "type": "ERROR" "object":null "code":410 ,"managedFields":[ ]},"spec":{', '\n'),
    feed: (_, text) => listAndWatchOnce({ metadata: { resourceVersion: '1' }, items: [] }, text.split('\n')),
  },
  {
    name: 'errors of the API server',
    examples: [
      '{"kind":"Status","message":"pods \\"a\\" is forbidden","reason":"Forbidden","details":{"causes":[{"field":"spec"}]},"code":403}',
      '<html>Bad Gateway</html>',
    ],
    words: words('{ } "message": "details":null "causes":{} 429 12'),
    feed: (input) => {
      const text = input.toString('utf8');
      for (const status of [409, 429, 500])
        must(errorOfAnswer(status, text, 'GET /api/v1', text) instanceof KubeError, 'no KubeError');
    },
  },
  {
    name: 'leases',
    examples: [
      '{"metadata":{"name":"archwright","resourceVersion":"1"},"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"acquireTime":"2026-11-01T00:00:00.000000Z","renewTime":"2026-11-01T00:00:00.000000Z","leaseTransitions":3}}',
    ],
    words: words('{ } , null "spec": -1 1e999 "leaseDurationSeconds":'),
    feed: (input) => {
      const { durationMs, transitions } = recordOf(object(input));
      must(durationMs >= 0 && durationMs <= 3_600_000, 'a duration out of its bounds');
      must(transitions >= 0, 'negative transitions');
    },
  },
  /** The API server checks the types of its own kinds. Users control only texts and optional fields. */
  {
    name: 'EndpointSlices',
    share: 20,
    examples: ['10.0.0.1 n1 IPv4 9443', 'fd00::1 n2 IPv6 9443\n10.0.0.2 n2 IPv4 0', 'a.example  FQDN 1'],
    words: words('127.0.0.1 ::1 IPv4 IPv6 FQDN -1 65536', '\n', ' '),
    feed: (_, text) => {
      const slices = text.split('\n').map((line): EndpointSlice => {
        const [address = '', nodeName = '', addressType = '', port = ''] = line.split(' ');
        const endpoints = address === '' ? null : [{ addresses: [address], nodeName }];
        return {
          addressType,
          endpoints,
          ports: port === '' ? null : [{ name: 'api', port: Number(port) }],
        };
      });
      const agents = agentsOf(slices, 'api');
      must(agents.length <= slices.length, 'more agents than endpoints');
      return agents;
    },
  },
  {
    name: 'pull secrets',
    share: 4,
    examples: [
      '{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"},"gcr.io":{"username":"u","password":"p"}}}',
      Buffer.from('{"auths":{"quay.io":{"auth":"dTpw"}}}').toString('base64'),
    ],
    words: words('{ } "auths": "auth": "dTpw" null eyJhdXRocyI6 =', '\n'),
    feed: async (input) => {
      const texts = [input.toString('base64'), input.toString('utf8')];
      for (const text of texts) {
        for (const [type, key] of [
          ['kubernetes.io/dockerconfigjson', '.dockerconfigjson'],
          ['kubernetes.io/dockercfg', '.dockercfg'],
        ] as const) {
          const secret: Secret = { metadata: { name: 's', namespace: 'shop' }, type, data: { [key]: text } };
          const source = createPullSecretSource([pullSecretPart(secret)]);
          source.problems();
          await source.lookup('docker.io/library/nginx').catch((error: unknown) => {
            if (!(error instanceof CredentialError)) throw error;
          });
        }
      }
    },
  },
  {
    name: 'service accounts and their tokens',
    examples: [
      '{"kind":"TokenRequest","spec":{"expirationSeconds":600},"status":{"token":"a.b.c","expirationTimestamp":"2026-11-21T10:00:00Z"},"metadata":{"uid":"u","annotations":{"a/b":"c"}}}',
    ],
    words: words('{ } , null "status": "token": "metadata": "uid": -1 1e999'),
    feed: async (input) => {
      const answer = parsed(input);
      const client = { get: () => Promise.resolve(answer), create: () => Promise.resolve(answer) };
      const tokens = createServiceAccountTokens(client as unknown as KubeClient);
      const account = await tokens.serviceAccount('shop', 'app').catch((error: unknown) => {
        if (!(error instanceof KubeError)) throw error;
        return undefined;
      });
      await tokens.tokenFor({ namespace: 'shop', name: 'app' }, account?.uid ?? '', 'a');
    },
    expected: [KubeError],
  },
];
