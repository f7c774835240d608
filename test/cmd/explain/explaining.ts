/** Helpers for tests of `explain`. */
import type { Test } from 'tap';
import { image, multiArch } from '../../support/registry/content.ts';
import type { TestRegistry } from '../../support/registry/server.ts';
import { json, startKubeServer, type KubeServer } from '../../support/kube-server.ts';
import { run, type Result, type RunOptions } from '../run.ts';
import { files, kubeconfig, registry, type Explained } from '../world.ts';

/** Explains a text. Without output, the results are empty. */
export async function explain(
  t: Test,
  text: string,
  args: readonly string[] = [],
  options: RunOptions = {},
): Promise<Result & { readonly results: readonly Explained[]; readonly file: string }> {
  const { 'input.yaml': file } = files(t, { 'input.yaml': text });
  const result = await run(['explain', '-f', file, '-o', 'json', ...args], options);
  const results = result.out === '' ? [] : (JSON.parse(result.out) as { results: Explained[] }).results;
  return { ...result, results, file };
}

export async function cluster(t: Test): Promise<KubeServer> {
  const server = await startKubeServer({ isPlain: true });
  t.teardown(() => server.close());
  return server;
}

export async function explainIn(
  t: Test,
  { access }: { readonly access: { readonly server: string } },
  args: readonly string[],
  stdin = '',
): Promise<Result & { readonly results: readonly Explained[]; readonly explained: Explained | undefined }> {
  const { config } = files(t, { config: kubeconfig(access.server) });
  const result = await run(['explain', '-o', 'json', '--kubeconfig', config, ...args], { stdin });
  const isJson = result.out.startsWith('{');
  const { results } = (isJson ? JSON.parse(result.out) : { results: [] }) as { results: Explained[] };
  return { ...result, results, explained: results[0] };
}

/** A registry with images of several architectures. */
export async function shop(t: Test): Promise<TestRegistry> {
  const server = await registry(t);
  server.push('web', '1', multiArch(['linux/amd64', 'linux/arm64', 'linux/s390x']));
  server.push('proxy', '1', multiArch(['linux/amd64', 'linux/arm64']));
  server.push('old', '1', image('linux/amd64'));
  server.push('arm', '1', image('linux/arm64'));
  return server;
}

/** The namespaces `shop` and `bank`, and a registry with images for amd64 and arm64, and for arm64 alone. */
export async function setup(t: Test) {
  const kube = await cluster(t);
  for (const namespace of ['shop', 'bank']) {
    kube.script(`/api/v1/namespaces/${namespace}`, json({ metadata: { name: namespace } }));
    kube.script(`/api/v1/namespaces/${namespace}/serviceaccounts/default`, json({}));
  }
  const server = await shop(t);
  return { server, kube, both: `${server.host}/proxy:1`, arm: `${server.host}/arm:1` };
}

export const pod = (spec: object, metadata: object = {}) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', ...metadata }, spec });
export const containers = (...images: readonly string[]) =>
  images.map((image, index) => ({ name: `c${index}`, image }));
export const rulesOf = (explained: Explained | undefined) => explained?.rules.map(({ rule }) => rule);
