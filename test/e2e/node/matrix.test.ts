/**
 * containerd's choice of manifest, compared with the prediction from image facts: indexes and single
 * manifests of platform variants, for each version and pull method, on amd64. The vectors cover ARM.
 *
 *   E2E_SEED         other random indexes: any whole number (1)
 *   E2E_MATRIX       random indexes in addition to the 262 small ones (200), or `all`: every ordered triple
 *   E2E_CONTAINERD   versions to compare, such as `1.7,2.4`; all by default
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { containerdProgram, containerdVersions, type ContainerdVersion } from '../programs/containerd.ts';
import { startTestRegistry, type TestRegistry } from '../../support/registry/server.ts';
import { prepareNode, startContainerd, type RunningContainerd } from './containerd.ts';
import { documentsOf, exhaustiveImages, matrixImages, type MatrixImage } from './matrix-images.ts';
import { concurrently } from '../../../src/async/concurrently.ts';
import { platformsOf } from '../../../src/names/platform.ts';
import type { NodeClass, PullMode } from '../../../src/nodes/node-class.ts';
import { selectPlatform } from '../../../src/nodes/selection.ts';
import { readManifest } from '../../../src/registry/manifests/manifest.ts';
import { contentOf, readConfig } from '../../../src/registry/manifests/platforms-of-index.ts';
import { seedOfRun } from '../random.ts';

const seed = seedOfRun(1);
const more = process.env['E2E_MATRIX'] ?? '200';
const versions = (process.env['E2E_CONTAINERD']?.split(',') ??
  Object.keys(containerdVersions)) as ContainerdVersion[];

/** In memory containerd's database is several times faster. */
const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** Most of a pull waits for files. */
const pullsAtOnce = 4;

const images = more === 'all' ? exhaustiveImages() : matrixImages(seed, Number(more));
/** The result of each image on each node: the pulled id, or undefined. */
const outcomes = new Map<MatrixImage, (string | undefined)[]>(images.map((image) => [image, []]));

t.comment(`E2E_SEED=${seed}, ${images.length} images for each of containerd ${versions.join(', ')}`);

if (process.getuid?.() !== 0) {
  t.fail('containerd needs root for its mounts and files');
} else {
  const registry = await startTestRegistry({ tls: false });
  t.teardown(() => registry.close());
  for (const [number, { top }] of images.entries()) registry.push('team/matrix', `n${number}`, top);
  for (const minor of versions) {
    const modes: readonly PullMode[] = minor.startsWith('1.') ? ['local'] : ['local', 'transfer'];
    for (const pullMode of modes) {
      await t.test(`the prediction equals the choice of containerd ${minor}, ${pullMode} pull`, (t) =>
        compare(t, minor, pullMode, registry),
      );
    }
  }
  await t.test('with only the architecture known, the prediction is correct or uncertain', async (t) => {
    const wrong: string[] = [];
    for (const [image, ids] of outcomes) {
      const { verdict, chosen } = await predicted(image, { os: 'linux', architecture: 'amd64' });
      const pulled = ids.filter((id) => id !== undefined);
      // A manifest of another architecture is pulled, and cannot run.
      if (verdict === 'refused' && image.form === 'index' && pulled.length > 0)
        wrong.push(`${image.name}: refused, but some nodes pull it`);
      if (verdict === 'runs' && pulled.length < ids.length)
        wrong.push(`${image.name}: runs, but some nodes do not pull it`);
      if (chosen !== undefined && new Set(ids).size > 1)
        wrong.push(`${image.name}: one choice, but nodes differ`);
    }
    t.strictSame(wrong, [], 'refused images are pulled by no node, and images that run by all nodes');
  });
}

async function compare(
  t: Test,
  minor: ContainerdVersion,
  pullMode: PullMode,
  registry: TestRegistry,
): Promise<void> {
  const { path, version } = containerdProgram(minor);
  const node = { os: 'linux', architecture: 'amd64', runtime: { name: 'containerd', version }, pullMode };
  const containerd = await startNode(t, path, minor, pullMode);
  const differences: string[] = [];
  await concurrently([...images.entries()], pullsAtOnce, async ([number, image]) => {
    const name = `${registry.host}/team/matrix:n${number}`;
    const { id, error } = await containerd.cri.pull(name, undefined);
    outcomes.get(image)?.push(id);
    const { expected } = await predicted(image, node);
    if (id !== expected) {
      differences.push(
        `${image.name}: predicted ${described(image, expected)}, pulled ${described(image, id)} ${error?.message ?? ''}`,
      );
    }
  });
  const pulled = [...outcomes.values()].filter((ids) => ids.at(-1) !== undefined).length;
  t.comment(`containerd ${version}: ${pulled} of ${images.length} images pulled`);
  t.strictSame(differences, [], `${images.length} images, each as predicted`);
}

function described(image: MatrixImage, id: string | undefined): string {
  const position = image.entries.findIndex((entry) => entry.id === id);
  return id === undefined ? 'nothing' : position < 0 ? id : `number ${position}`;
}

/** As a webhook decides: from the platforms that an agent finds. */
async function predicted({ top, form, entries }: MatrixImage, node: NodeClass) {
  const documents = documentsOf(top);
  const bytesOf = (digest: string): Buffer => documents.get(digest) ?? Buffer.of();
  const content = await contentOf(readManifest(top.bytes, undefined), top.digest, {
    where: 'matrix',
    manifest: ({ digest, mediaType }) => Promise.resolve(readManifest(bytesOf(digest), mediaType)),
    config: ({ digest }) => Promise.resolve(readConfig(bytesOf(digest))),
  });
  const platforms = platformsOf(content.platforms);
  const { verdict, chosen } = selectPlatform(platforms, node, 1, form);
  const key = chosen === undefined ? undefined : JSON.stringify(platforms[chosen]);
  const entry = entries.find(({ named, platform: { os = '', architecture = '', variant = '' } }) => {
    const written = { os, architecture, variant, ...(!named && { unnamed: true as const }) };
    return JSON.stringify(platformsOf([written])[0]) === key;
  });
  return { verdict, chosen, expected: entry?.id };
}

async function startNode(
  t: Test,
  program: string,
  minor: ContainerdVersion,
  pullMode: PullMode,
): Promise<RunningContainerd> {
  const node = mkdtempSync(join(base, 'archwright-matrix-'));
  t.teardown(() => rmSync(node, { recursive: true, force: true }));
  prepareNode(node);
  mkdirSync(join(node, 'etc', 'containerd'), { recursive: true });
  const configuration = minor.startsWith('1.')
    ? 'version = 2\n'
    : `version = 3\n[plugins."io.containerd.cri.v1.images"]\nuse_local_image_pull = ${pullMode === 'local'}\n`;
  writeFileSync(join(node, 'etc', 'containerd', 'config.toml'), configuration);
  const containerd = await startContainerd({ program, node, env: {} });
  t.teardown(() => containerd.stop());
  return containerd;
}
