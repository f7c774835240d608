/**
 * Service account tokens from end to end: a client requests facts from an agent over mutual TLS. The agent
 * requests tokens from an API server, passes them to a plugin (a real program), and presents its credential
 * to a registry. Facts of one account are never returned to another.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { configText, echoing, writePlugin } from '../../daemon/kubelet/support.ts';
import { createPki } from '../../fleet/support.ts';
import { json, startKubeServer, type KubeAnswer } from '../../support/kube-server.ts';
import { agentArgs, startAgent, type Agent } from './agent.ts';
import { run } from '../run.ts';
import { files, kubeconfig as kubeconfigOf, registryWithApp, resultsIn } from '../world.ts';
import { like } from '../../support/like.ts';

const audience = 'reg.example';

type World = Awaited<ReturnType<typeof world>>;

/** Tokens that name their account, as real ones do. */
const issue: KubeAnswer = (request, response) => {
  const [, namespace = '', name = ''] =
    /namespaces\/([^/]+)\/serviceaccounts\/([^/]+)\//.exec(request.path) ?? [];
  const { spec } = JSON.parse(request.body) as { spec: { audiences: string[] } };
  const token = `${spec.audiences.join('+')}.${namespace}.${name}`;
  json({ spec: { expirationSeconds: 600 }, status: { token } }, 201)(request, response);
};

/**
 * Service accounts `a`, `b` and `plain` of the namespace `team`; the registry knows only the robot of `a`.
 */
async function world(t: Test) {
  const users = { a: `got ${audience}.team.a` };
  const { server: host, image } = await registryWithApp(t, { auth: { kind: 'basic', users } });
  const kube = await startKubeServer();
  t.teardown(() => kube.close());
  for (const name of ['a', 'b', 'plain']) {
    const path = `/api/v1/namespaces/team/serviceaccounts/${name}`;
    const annotations = name === 'plain' ? {} : { 'team/robot': name };
    kube.script(path, json({ metadata: { uid: `uid-of-${name}`, annotations } }));
    kube.script(`${path}/token`, issue);
  }
  const { directory, config, ca, kubeconfig } = files(t, {
    ca: host.ca,
    config: configText({
      name: 'plugin',
      matchImages: [host.host],
      tokenAttributes: {
        serviceAccountTokenAudience: audience,
        cacheType: 'ServiceAccount',
        requireServiceAccount: true,
        requiredServiceAccountAnnotationKeys: ['team/robot'],
      },
    }),
    kubeconfig: kubeconfigOf(kube.access.server),
  });
  const bin = join(directory, 'bin');
  const stateDir = join(directory, 'state');
  for (const dir of [bin, stateDir]) mkdirSync(dir);
  chmodSync(bin, 0o755);
  writePlugin(join(bin, 'plugin'), echoing(host.host));
  const flags = ['--kubelet-config-config', config, '--kubelet-config-bin-dir', bin, '--ca-files', ca];
  flags.push('--kubeconfig', kubeconfig, '--docker-config', join(directory, 'none.json'));
  return { kube, pki: await createPki(t), flags, stateDir, image };
}

function start(t: Test, { pki, flags, stateDir }: World, ...more: string[]): Promise<Agent> {
  return startAgent(t, pki, [...agentArgs(pki, stateDir), ...flags, ...more]);
}

/** Requests facts of the image for a pod of this account of the namespace `team`, or without an account. */
async function ask(agent: Agent, { image }: World, account?: string): Promise<ImageFacts> {
  const [facts] = await agent.post({
    images: [{ image }],
    ...(account !== undefined && { serviceAccount: { namespace: 'team', name: account } }),
    deadlineMs: 20_000,
  });
  if (!facts) throw new Error('no answer');
  return facts;
}

const allowed = { credentialSource: 'service-account', error: undefined, platforms: { length: 2 } };
const refused = { digest: undefined, platforms: { length: 0 }, error: { code: 'unauthorized' } };

t.test('each account gets its own facts, whichever account came before', async (t) => {
  const place = await world(t);
  const agent = await start(t, place, '--service-account-tokens');
  const others = ['b', 'plain', 'default', undefined];
  for (const other of others) like(t, await ask(agent, place, other), refused, `${other} before`);
  like(t, await ask(agent, place, 'a'), { ...allowed, source: 'registry' });
  for (const other of others) like(t, await ask(agent, place, other), refused, `${other} after`);
  like(t, await ask(agent, place, 'a'), { ...allowed, source: 'memory' });
  t.equal(await agent.known(), '', 'a starting webhook gets none of them');

  const tokenRequests = place.kube.requests.filter(({ method }) => method === 'POST');
  const paths = tokenRequests.map(({ path }) => path);
  const ofAccounts = '/api/v1/namespaces/team/serviceaccounts';
  const wanted = [`${ofAccounts}/b/token`, `${ofAccounts}/a/token`];
  t.strictSame(paths, wanted, 'one token request per account, only for workloads that opted in');
  like(t, JSON.parse(tokenRequests[1]?.body ?? ''), {
    metadata: { uid: 'uid-of-a' },
    spec: { audiences: [audience], expirationSeconds: 600, boundObjectRef: undefined },
  });
  t.equal(tokenRequests[0]?.authorization, 'Bearer token-of-the-user');

  t.equal(await agent.stop(), 0);
  const stateFile = join(place.stateDir, 'image-facts.ndjson');
  t.notMatch(existsSync(stateFile) ? readFileSync(stateFile, 'utf8') : '', /team\/app/, 'no facts on disk');
  t.notMatch(agent.log(), /reg\.example\.team/, 'no token in the log');
  const again = await start(t, place, '--service-account-tokens');
  like(t, await ask(again, place, 'b'), refused, 'no facts after a restart');
  like(t, await ask(again, place, 'a'), { ...allowed, source: 'registry' });
  t.equal(await again.stop(), 0);
});

t.test('`inspect` acts for a pod of an account, and tells why a plugin has no credential', async (t) => {
  const { kube, flags, image } = await world(t);
  const inspect = (...more: string[]) => run(['inspect', ...flags, ...more, image]);
  const asA = await inspect('--service-account-tokens', '--service-account', 'team/a', '-o', 'json');
  t.equal(asA.code, 0, asA.err);
  like(t, resultsIn(asA.out), [allowed]);
  const verbose = await inspect('--service-account-tokens', '--service-account', 'team/a', '-v');
  t.match(verbose.out, /service-account .* \(plugin plugin for team\/a\)/);
  t.notMatch(verbose.out, /left out/);

  const off = await inspect('-v');
  t.equal(off.code, 1);
  t.match(
    off.out,
    /ignored: .*plugin plugin.*the agent may not request one.*\(serviceAccountTokens is off\)/,
  );

  const message = 'serviceaccounts "a" is forbidden: User "x" cannot create resource "serviceaccounts/token"';
  kube.script('/api/v1/namespaces/team/serviceaccounts/a/token', json({ kind: 'Status', message }, 403));
  const forbidden = await inspect('--service-account-tokens', '--service-account', 'team/a', '-v');
  t.equal(forbidden.code, 1);
  t.match(forbidden.out, /plugin plugin.*Error getting service account token team\/a: .*403.*cannot create/);

  t.notMatch([asA, verbose, off, forbidden].map(({ out, err }) => out + err).join(''), /reg\.example\.team/);
});

t.test('without a cluster, only the plugin is not used', async (t) => {
  const { flags, image } = await world(t);
  const without = flags.filter((_, index) => !flags.slice(index - 1, index + 1).includes('--kubeconfig'));
  const inspect = ['inspect', '-v', '--service-account-tokens', ...without, image];
  t.match((await run(inspect)).out, /this is not a pod/);
  const { broken } = files(t, { broken: '{{{' });
  t.match((await run([...inspect, `--kubeconfig=${broken}`])).out, /cannot connect to the cluster: /);
});
