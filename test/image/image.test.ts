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

t.test('every base image is the one that is pinned by digest', async (t) => {
  const text = readFileSync('Dockerfile', 'utf8');
  t.match(text, /^ARG NODE_IMAGE=\S+@sha256:[0-9a-f]{64}$/m);
  const bases = [...text.matchAll(/^FROM (?:--\S+ )*(\S+)/gim)].map(([, base]) => base);
  t.strictSame([...new Set(bases)], ['${NODE_IMAGE}']);
});
