import { readFileSync } from 'node:fs';
import t from 'tap';
import { like } from '../support/like.ts';
import { imageEnvironment } from '../support/image-environment.ts';

t.test('the Dockerfile has the Node, the version and the license of the project', async (t) => {
  const text = readFileSync('Dockerfile', 'utf8').replaceAll(/\\\n\s*/g, ' ');
  const last = text.split(/^FROM /m).at(-1) ?? '';
  const project = JSON.parse(readFileSync('package.json', 'utf8')) as {
    readonly version: string;
    readonly license: string;
    readonly devDependencies: Readonly<Record<string, string>>;
  };
  t.match(text, `ARG NODE_IMAGE=docker.io/library/node:${project.devDependencies['node']}-slim@`);
  t.match(text, `ARG VERSION=${project.version}\n`);
  t.match(last, `org.opencontainers.image.licenses="${project.license}"`);
  const variables = Object.entries(imageEnvironment()).map(([name, value]) => `${name}=${value}`);
  like(t, variables, ['NODE_ENV=production', /^MALLOC_MMAP_THRESHOLD_=\d+$/, 'MALLOC_ARENA_MAX=1']);
  t.notMatch(last, /^RUN /m, 'no program of another architecture runs');
});

t.test('every base image is pinned by digest', async (t) => {
  t.strictSame(unpinnedBases(readFileSync('Dockerfile', 'utf8')), []);
  const digest = `sha256:${'a'.repeat(64)}`;
  const unpinned = [
    'FROM node:24',
    'from --platform=$BUILDPLATFORM node AS build',
    'FROM node@sha256:abc',
    'FROM ${BASE}',
    `ARG BASE=node:24\nFROM $BASE`,
    `ARG BASE=node@${digest}\nFROM \${BASE}-slim`,
    `FROM build\nFROM node@${digest} AS build`,
  ];
  for (const text of unpinned) t.equal(unpinnedBases(text).length, 1, text);
  t.strictSame(unpinnedBases(`ARG BASE=node:24@${digest}\nFROM \${BASE} AS a\nFROM a\nFROM scratch`), []);
});

/** The base images that a registry can change: without digest, not an earlier stage, not `scratch`. */
function unpinnedBases(dockerfile: string): string[] {
  const args = new Map<string, string>();
  const stages = new Set(['scratch']);
  const found: string[] = [];
  for (const line of dockerfile.split('\n')) {
    const [, name = '', value = ''] = /^ARG (\w+)=(\S+)$/.exec(line) ?? [];
    args.set(name, value);
    const [, image, stage = ''] = /^FROM (?:--platform=\S+ )?(\S+)(?: AS (\S+))?$/i.exec(line) ?? [];
    if (image === undefined) continue;
    const base = image.replaceAll(/\$\{?(\w+)\}?/g, (_, arg: string) => args.get(arg) ?? '');
    if (!stages.has(base) && !/@sha256:[0-9a-f]{64}$/.test(base)) found.push(line);
    stages.add(stage);
  }
  return found;
}
