/** Unusual pods and images, through a real API server, webhook, controller and scheduler. */
import t from 'tap';
import type { Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import {
  artifact,
  attestation,
  document,
  image,
  index,
  manifest,
  mediaTypes,
  multiArch,
  platformOf,
  schema1,
  type Content,
} from '../../support/registry/content.ts';
import { requiring } from '../../support/placement-input.ts';
import { until } from '../../support/until.ts';
import { startCluster } from './harness.ts';
import { nodeOf, podOf } from './control-plane/pods.ts';
import { startArchwright } from './archwright/start.ts';

const decision = 'arch.example/decision';

/** Limit of the API server for all annotations of an object (ValidateAnnotationsSize). */
const most = 256 * 1024;

function annotationsOf(length: number): Readonly<Record<string, string>> {
  const key = 'x.example/large';
  return { [key]: 'x'.repeat(length - key.length) };
}

function bytesOf(pod: Pod): number {
  return Object.entries(pod.metadata?.annotations ?? {}).reduce(
    (sum, [key, value]) => sum + key.length + value.length,
    0,
  );
}

void t.test('unusual pods are placed or skipped', async (t) => {
  const cluster = await startCluster(
    {
      nodes: [
        { name: 'amd64-0', architecture: 'amd64' },
        { name: 'arm64-0', architecture: 'arm64' },
        { name: 'windows-0', architecture: 'amd64', labels: { 'kubernetes.io/os': 'windows' } },
      ],
    },
    t,
  );
  // Half of what the API server waits. Only images that take longer are unknown, however busy the machine is.
  const webhookSettings = { 'inline-budget': '5s' };
  const settings = { 'on-unknown-image': 'gate' };
  const { images } = await startArchwright(cluster, { settings, webhookSettings });
  const push = (name: string, content: Content): string => {
    images.public.push(name, '1', content);
    return `${images.public.host}/${name}:1`;
  };
  const create = (
    name: string,
    image: string,
    spec: Partial<PodSpec> = {},
    annotations: Readonly<Record<string, string>> = {},
  ): Promise<Pod> => cluster.create<Pod>(podOf(name, image, spec, { annotations }));

  await t.test('a pod for Windows with only a nodeSelector runs on Windows', async (t) => {
    const app = images.push('both-systems', ['linux/arm64', 'windows/amd64']);
    await create('windows', app, { nodeSelector: { 'kubernetes.io/os': 'windows' } });
    t.equal(await nodeOf(cluster, 'windows'), 'windows-0');
    const onlyWindows = images.push('windows-only', ['windows/amd64']);
    await create('windows-only', onlyWindows, { nodeSelector: { 'kubernetes.io/os': 'windows' } });
    t.equal(await nodeOf(cluster, 'windows-only'), 'windows-0');
  });

  await t.test('pods whose images need no constraint, or cannot be inspected, are not gated', async (t) => {
    const odd = document(mediaTypes.ociConfig, { created: '2026-01-01T00:00:00Z' });
    const contents: readonly [string, Content][] = [
      ['wasm', image('wasi/wasm')],
      ['artifact', artifact()],
      ['empty-index', index([])],
      ['no-architecture', manifest(odd, [])],
      ['only-attestations', index([attestation(image('linux/amd64'))])],
    ];
    for (const [name, content] of contents) {
      const pod = await create(name, push(name, content));
      t.notOk(
        pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution,
        `${name} requires nothing`,
      );
      t.ok(await nodeOf(cluster, name), name);
    }
    await create('nonsense', 'UPPER/case::1');
    t.ok(await nodeOf(cluster, 'nonsense'), 'an invalid reference, which the kubelet refuses');
  });

  await t.test('images in nested and unusual indexes are placed', async (t) => {
    const arm = image('linux/arm64');
    const nested = index([{ content: multiArch(['linux/arm64'], { label: 'inner' }) }]);
    const contents: readonly [string, Content][] = [
      ['nested', nested],
      ['attested', multiArch(['linux/arm64'], { attestations: true, label: 'attested' })],
      ['nameless', index([{ content: arm }])],
      ['twice', index([{ content: arm, platform: platformOf('linux/arm64/v8') }, { content: arm }])],
      ['old', schema1('arm64')],
    ];
    for (const [name, content] of contents) {
      await create(name, push(name, content));
      t.equal(await nodeOf(cluster, name), 'arm64-0', name);
    }
    const tagged = push('tagged', multiArch(['linux/arm64'], { label: 'tagged' }));
    const { digest } = multiArch(['linux/arm64'], { label: 'tagged' });
    await create('by-digest', `${tagged}@${digest}`);
    t.equal(await nodeOf(cluster, 'by-digest'), 'arm64-0', 'tag and digest');
  });

  await t.test('pods with annotations up to the limit of the API server are accepted', async (t) => {
    const app = images.push('large', ['arm64']);
    for (const room of [0, 320, 800]) {
      const name = `large-${room}`;
      const pod = await create(name, app, {}, annotationsOf(most - room));
      t.ok(bytesOf(pod) <= most);
      t.equal(decision in (pod.metadata?.annotations ?? {}), room > 0, `room for ${room}`);
      t.equal(await nodeOf(cluster, name), 'arm64-0');
    }
    images.public.faults.add(/\/large-late\//u, { kind: 'delay', ms: 7000 });
    for (const room of [0, 150]) {
      const name = `late-${room}`;
      const late = images.push(`large-late/${room}`, ['arm64']);
      const spec = { initContainers: [{ name: 'known', image: app }] };
      const pod = await create(name, late, spec, annotationsOf(most - room));
      t.equal(pod.spec.schedulingGates?.length, 1, 'it is gated');
      t.equal(await nodeOf(cluster, name), 'arm64-0', 'it is placed later');
    }
  });

  await t.test('a tag that was pushed again with the missing architecture is looked up again', async (t) => {
    const both = [images.push('again', ['amd64']), images.push('next', ['arm64'])];
    const containers = both.map((each, position) => ({ name: `c${position}`, image: each }));
    await t.rejects(create('again', '', { containers }), { message: /again:1 has amd64/u });
    images.push('again', ['amd64', 'arm64']);
    // An answer of the registry refuses pods for five seconds.
    const created = () => create('again', '', { containers }).catch(() => undefined);
    await until(async () => (await created()) !== undefined);
    t.equal(await nodeOf(cluster, 'again'), 'arm64-0');
  });

  await t.test('a forged decision record has no effect', async (t) => {
    const app = images.push('forged', ['arm64']);
    const record = {
      v: 1,
      imagesKey: 'x',
      added: { terms: [[['kubernetes.io/arch', ['amd64']]]], made: true },
    };
    const terms = [
      { matchExpressions: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }] },
      { matchExpressions: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }] },
    ];
    await create('forged', app, requiring(...terms), { [decision]: JSON.stringify(record) });
    t.equal(await nodeOf(cluster, 'forged'), 'arm64-0');
    await create('rubbish', app, {}, { [decision]: '{"v":1,"added":[[]]' });
    t.equal(await nodeOf(cluster, 'rubbish'), 'arm64-0');
  });

  await t.test('a pod with hundreds of containers is placed', async (t) => {
    const app = images.push('many', ['amd64', 'arm64']);
    const last = images.push('last', ['arm64']);
    const containers = Array.from({ length: 300 }, (_, position) => ({
      name: `c${position}`,
      image: position === 299 ? last : app,
    }));
    await create('many', '', { containers });
    t.equal(await nodeOf(cluster, 'many'), 'arm64-0');
  });
});
