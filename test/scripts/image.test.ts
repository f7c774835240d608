/** The image: its Dockerfile, and what the bundle leaves out. */
import { readFileSync, readdirSync } from 'node:fs';
import t from 'tap';
import { like } from '../support/like.ts';
import { imageEnvironment } from '../support/image-environment.ts';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

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

t.test('the bundle loads no part of Node or of libraries that only costs memory', (t) => {
  const dir = t.testdir();
  execFileSync(process.execPath, ['scripts/bundle.ts', dir], { stdio: 'pipe' });
  const files = readdirSync(dir).filter((name) => name.endsWith('.mjs'));
  for (const name of files) {
    const text = readFileSync(join(dir, name), 'utf8');
    t.notOk(/from ?"(?:node:)?(?:http|tls)"/.test(text), `${name}: undici, certificates`);
    t.notOk(/application\/vnd\.openxmlformats/.test(text), `${name}: media types`);
    // Letters of full width are those of `report --csv`, which no server loads.
    const letter = text.replaceAll(/[＝＋－＠]/g, '').match(/.{0,30}[\u0100-\uffff]/)?.[0];
    t.equal(letter, undefined, `${name}: one such letter doubles the memory of its text`);
  }
  t.end();
});
