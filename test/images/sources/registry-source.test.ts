import t, { type Test } from 'tap';
import { CredentialError, type MatchedCredential } from '../../../src/credentials/credential.ts';
import type { ImageFacts, ImageRequest } from '../../../src/images/facts/facts.ts';
import {
  createRegistrySource,
  type RegistrySourceOptions,
} from '../../../src/images/sources/registry-source.ts';
import type { Endpoint, PullTarget } from '../../../src/registry/endpoints/endpoint.ts';
import { clientFor, credential, endpointOf, startRegistry } from '../../support/registry/client.ts';
import {
  artifact,
  attestation,
  helmChart,
  image,
  index,
  multiArch,
  platformOf,
} from '../../support/registry/content.ts';
import { type TestRegistryOptions } from '../../support/registry/server.ts';
import { requestFor } from '../../support/facts.ts';
import { clockOfFacts, hour } from '../support.ts';
import { RegistryError } from '../../../src/registry/manifest-lookup.ts';
import { TransportError } from '../../../src/http/transport-error.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

/** A node whose only registry is a test registry. */
async function start(
  t: Test,
  registryOptions: TestRegistryOptions = {},
  options: Partial<RegistrySourceOptions> = {},
) {
  const registry = await startRegistry(t, registryOptions);
  const time = clockOfFacts();
  /** Tests change them. */
  const of: { credentials: readonly MatchedCredential[]; endpoints: readonly Endpoint[] } = {
    credentials: [],
    endpoints: [endpointOf(registry)],
  };
  const targets: PullTarget[] = [];
  const source = createRegistrySource({
    registry: clientFor(t),
    endpoints: {
      endpoints: async (target) => {
        targets.push(target);
        return of.endpoints;
      },
      fingerprint: () => '',
    },
    credentials: { lookup: async () => of.credentials },
    mayAskAnonymously: () => true,
    clock: time,
    ...options,
  });
  const inspect = (text: string, more: Partial<ImageRequest> = {}, known?: ImageFacts) =>
    source.lookup({ ...requestFor(text), ...more }, { signal: neverAborted, ...(known && { known }) });
  return { registry, time, of, targets, source, inspect };
}

const app = 'corp.example/team/app:v1';
const basic = { kind: 'basic', users: { pod: 'pods', node: 'nodes!' } } as const;
const pods = credential('pod', 'pods', { source: 'pull-secret', origin: 'default/regcred' });
const nodes = credential('node', 'nodes!');
const wrong = credential('pod', 'wrong', { source: 'pull-secret' });

t.test('an index gives the facts of an image with one GET', async (t) => {
  const node = await start(t);
  const content = multiArch(['linux/amd64', 'linux/aarch64', 'linux/arm64/v8', 'linux/arm'], {
    attestations: true,
  });
  node.registry.push('team/app', 'v1', content);
  t.strictSame(await node.inspect(app), {
    image: app,
    digest: content.digest,
    mediaType: content.mediaType,
    platforms: [
      { os: 'linux', architecture: 'amd64' },
      { os: 'linux', architecture: 'arm64', written: 'aarch64' },
      { os: 'linux', architecture: 'arm64' },
      { os: 'linux', architecture: 'arm', variant: 'v7', written: 'arm' },
    ],
    source: 'registry',
    credentialSource: 'anonymous',
    endpoint: node.registry.host,
    confirmedAt: '2026-11-21T12:00:00.000Z',
    stale: false,
  });
  t.strictSame(node.registry.counts(), { 'GET manifests': 1 });
});

t.test('credentials are tried in the kubelet’s order, and the facts name their source', async (t) => {
  const node = await start(t, { auth: basic });
  node.registry.push('team/app', 'v1', multiArch(['linux/amd64']));
  const inspect = (pullCredentials: MatchedCredential[], own: MatchedCredential[]): Promise<ImageFacts> => {
    node.of.credentials = own;
    return node.inspect(app, { pullCredentials });
  };
  like(t, await inspect([pods], []), { credentialSource: 'pull-secret', error: undefined });
  like(t, await inspect([pods], [nodes]), { credentialSource: 'pull-secret' }, 'the pod’s come first');
  like(t, await inspect([], [nodes]), { credentialSource: 'docker-config' });
  like(t, await inspect([wrong], [nodes]), { credentialSource: 'docker-config' }, 'then the node’s');
  like(
    t,
    await inspect([pods], [{ ...pods, source: 'docker-config' }]),
    { credentialSource: 'docker-config' },
    'a credential of both counts as the node’s',
  );
  like(t, await inspect([wrong], []), { platforms: [], error: { code: 'unauthorized' } });
  like(t, await inspect([], []), { credentialSource: 'anonymous', error: { code: 'unauthorized' } });
});

t.test('a private registry gets no request without credentials, and the error says why', async (t) => {
  const repositories: string[] = [];
  const node = await start(t, {}, { mayAskAnonymously: (repository) => repositories.push(repository) === 0 });
  node.registry.push('team/app', 'v1', multiArch(['linux/amd64']));
  like(t, await node.inspect(app), {
    platforms: [],
    endpoint: 'corp.example',
    error: {
      code: 'unauthorized',
      message: /no credential matches corp\.example\/team\/app, and privateRegistries forbids/,
    },
  });
  t.strictSame(repositories, ['corp.example/team/app']);
  t.equal(node.registry.requests.length, 0);
  like(t, await node.inspect(app, { pullCredentials: [pods] }), { error: undefined });
  t.equal(repositories.length, 1, 'not checked with credentials');
  const mirror = await startRegistry(t, { auth: basic });
  mirror.push('team/app', 'v1', multiArch(['linux/arm64']));
  const ownCredential = { ...nodes, source: 'containerd' } as const;
  node.of.endpoints = [endpointOf(node.registry), endpointOf(mirror, { ownCredential })];
  node.registry.clearRequests();
  like(t, await node.inspect(app), { credentialSource: 'containerd', endpoint: mirror.host });
  t.equal(node.registry.requests.length, 0, 'only an endpoint with its own credential gets a request');
});

t.test('known facts are confirmed with one HEAD', async (t) => {
  const node = await start(t);
  node.registry.push('team/app', 'v1', multiArch(['linux/amd64']));
  const known = await node.inspect(app);
  node.registry.clearRequests();
  await node.time.advance(hour);
  const confirmed = await node.inspect(app, {}, { ...known, source: 'memory', stale: true });
  t.strictSame(confirmed, { ...known, confirmedAt: '2026-11-21T13:00:00.000Z' });
  t.strictSame(node.registry.counts(), { 'HEAD manifests': 1 });
  node.registry.push('team/app', 'v1', multiArch(['linux/arm64']));
  like(t, await node.inspect(app, {}, known), { platforms: [{ os: 'linux', architecture: 'arm64' }] });
});

t.test(
  'charts and artifacts are not-an-image, operator bundles are images; also after revalidation',
  async (t) => {
    const node = await start(t);
    const nameless = index([{ content: image('linux/amd64'), platform: platformOf('linux/-') }]);
    const Labels = { 'operators.operatorframework.io.bundle.manifests.v1': 'manifests/' };
    const bundle = image('linux/amd64', { config: { config: { Labels } } });
    for (const content of [helmChart(), artifact(), nameless, bundle]) {
      node.registry.push('team/app', 'v1', content);
      const facts = await node.inspect(app);
      for (const found of [facts, await node.inspect(app, {}, facts)]) {
        like(t, found, { digest: content.digest, platforms: [] });
        t.equal(found.error?.code, content === bundle ? undefined : 'not-an-image');
      }
    }
    node.registry.push('team/app', 'v1', index([attestation(image('linux/amd64'))]));
    like(t, await node.inspect(app), { platforms: [], error: { code: 'not-an-image' } });
  },
);

t.test('an index with more than 64 platforms is too large', async (t) => {
  const node = await start(t);
  const content = image('linux/amd64');
  const entries = Array.from({ length: 65 }, (_, number) => ({
    content,
    platform: { os: 'linux', architecture: 'amd64', variant: `v${number + 2}` },
  }));
  node.registry.push('team/app', 'v1', index(entries));
  like(t, await node.inspect(app), { platforms: [], error: { code: 'too-large' } });
  node.registry.push('team/app', 'v1', index(entries.slice(0, 64)));
  t.equal((await node.inspect(app)).platforms.length, 64);
});

t.test('failures are returned as facts with an error', async (t) => {
  const node = await start(t);
  node.registry.push('team/app', 'v1', multiArch(['linux/amd64']));
  like(t, await node.inspect('corp.example/team/app:v2'), {
    platforms: [],
    source: 'registry',
    stale: false,
    endpoint: node.registry.host,
    error: { code: 'not-found' },
  });
  node.registry.faults.add(/manifests/, { kind: 'status', status: 429, headers: { 'retry-after': '7' } });
  like(t, await node.inspect(app), { error: { code: 'rate-limited', retryAfterMs: 7000 } });
  node.registry.faults.clear();
  node.of.endpoints = [];
  like(t, await node.inspect(app), { error: { code: 'unavailable', message: /no endpoint/ } });
});

t.test('a credential source that fails on the node fails the lookup', async (t) => {
  const lookup = async (): Promise<never> => {
    throw new CredentialError('default/regcred', 'is no docker config');
  };
  const node = await start(t, {}, { credentials: { lookup } });
  like(t, await node.inspect(app), {
    error: { code: 'unauthorized', message: 'default/regcred: is no docker config' },
  });
  t.equal(node.registry.requests.length, 0);
});

/** A plugin for this image fails. */
const lookup: RegistrySourceOptions['credentials']['lookup'] = async (
  repository,
  _signal,
  _account,
  onProblem,
) => {
  const problem = { source: 'credential-provider', origin: 'plugin ecr', message: 'exit status 1' } as const;
  if (repository.endsWith('/app')) onProblem?.(problem);
  return [];
};

t.test('no plugin is the cause where no registry was asked', async (t) => {
  const cause = new TransportError('refused-address', '10.0.0.5', 'refused: a private address');
  const refusing = () => Promise.reject(new RegistryError('forbidden', '10.0.0.5', cause.message, { cause }));
  const node = await start(
    t,
    {},
    { credentials: { lookup }, registry: { lookup: refusing, tags: refusing } },
  );
  t.strictSame((await node.inspect(app)).error, { code: 'forbidden', message: 'refused: a private address' });
});

t.test('a refusal names the plugin that gave no credential, instead of pull secrets', async (t) => {
  for (const mayAskAnonymously of [() => true, () => false]) {
    const node = await start(t, { auth: basic }, { credentials: { lookup }, mayAskAnonymously });
    const { error } = await node.inspect(app);
    like(t, error, { code: 'unauthorized', cause: 'plugin' });
    t.match(
      error?.message,
      /: the node's credential plugin gave none: plugin ecr: exit status 1$|; the node's/,
    );
    t.notMatch(error?.message, /pull secret/);
    const withSecret = (await node.inspect(app, { pullCredentials: [wrong] })).error;
    like(t, withSecret, {
      cause: 'plugin',
      message: /: ask for a new password; the node's credential plugin gave/,
    });
    const other = (await node.inspect('corp.example/team/other:v1')).error;
    t.equal(other?.cause, undefined, 'no plugin is for it');
    t.match(other?.message, /give the pod a pull secret, .* \(kubeletConfig\)$/);
  }
});

t.test('rules on registries apply to what a short name stands for, not to docker.io', async (t) => {
  const rules = { denied: ['docker.io/library/app', 'quay.io/app'], private: ['docker.io/library/app'] };
  const node = await start(
    t,
    {},
    {
      forbidden: ({ domain, path }) =>
        rules.denied.includes(`${domain}/${path}`) ? 'the image is in deniedRegistries' : undefined,
      mayAskAnonymously: (repository) => !rules.private.includes(repository),
    },
  );
  node.registry.push('app', 'v1', multiArch(['linux/amd64']));
  const other = await startRegistry(t);
  other.push('app', 'v1', multiArch(['linux/arm64']));
  const at = { repository: 'app', acceptsCredentials: false };
  node.of.endpoints = [
    endpointOf(node.registry, { ...at, resolved: { domain: 'quay.io', path: 'app' } }),
    endpointOf(other, { ...at, resolved: { domain: 'ghcr.io', path: 'app' } }),
  ];
  const inspect = () => node.inspect('app:v1', { shortName: 'app', pullCredentials: [pods] });
  like(t, await inspect(), { endpoint: other.host, error: undefined });
  t.equal(node.targets[0]?.shortName, 'app');
  rules.denied.push('ghcr.io/app');
  const message = 'not inspected: the image is in deniedRegistries';
  like(t, await inspect(), { platforms: [], error: { code: 'forbidden', message } });
  rules.denied = [];
  rules.private = ['quay.io/app', 'ghcr.io/app'];
  like(t, await inspect(), {
    error: { code: 'unauthorized', message: /matches quay\.io\/app, ghcr\.io\/app, and privateRegistries/ },
  });
  t.equal(node.registry.requests.length, 0);
  t.equal(other.counts()['GET manifests'], 1);
});

t.test('an abort ends the lookup with a timeout and closes the socket', async (t) => {
  const { registry, source } = await start(t);
  const controller = new AbortController();
  registry.faults.add(/manifests/, { kind: 'hold' });
  const held = source.lookup(requestFor(app), { signal: controller.signal });
  const request = await registry.waitFor(({ path }) => path.includes('manifests'));
  controller.abort();
  like(t, await held, { error: { code: 'timeout' } });
  t.equal(await request.ended, 'aborted', 'the socket was closed');
});

t.test('unexpected exceptions are thrown', async (t) => {
  const lookup = async (): Promise<never> => {
    throw new TypeError('a mistake');
  };
  const node = await start(t, {}, { credentials: { lookup } });
  await t.rejects(node.inspect(app), { message: 'a mistake' });
});

t.test('requests of several namespaces at the same time share one GET', async (t) => {
  const node = await start(t);
  node.registry.push('team/app', 'v1', multiArch(['linux/amd64']));
  const all = ['a', 'b', 'c'].map((namespace) => node.inspect(app, { namespace }));
  t.equal((await Promise.all(all)).length, 3);
  t.strictSame(node.registry.counts(), { 'GET manifests': 1 });
});
