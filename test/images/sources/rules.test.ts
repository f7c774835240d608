import t from 'tap';
import { compileOverrides, noOverrides } from '../../../src/images/sources/overrides.ts';
import { parseReference } from '../../../src/images/references/reference.ts';
import { digestOf } from '../../support/facts.ts';
import { clockOfFacts } from '../support.ts';
import {
  compileRegistryRules,
  type RegistryRulesOptions,
} from '../../../src/images/sources/registry-rules.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { like } from '../../support/like.ts';

const clock = clockOfFacts();
const digest = digestOf('content');

t.test('patterns match images', async (t) => {
  const cases: [string, string, boolean][] = [
    ['nginx', 'nginx', true],
    ['nginx', 'nginx:1.25', true],
    ['nginx', `nginx@${digest}`, true],
    ['nginx', 'nginx-unprivileged', false],
    ['nginx', 'ghcr.io/library/nginx', false],
    ['nginx*', 'nginx-unprivileged', true],
    ['team/app', 'docker.io/team/app:2', true],
    ['team/*', 'team/app/sub', false],
    ['team/**', 'team/app/sub', true],
    ['docker.io/library/nginx', 'nginx', true],
    ['index.docker.io/library/nginx', 'nginx', true],
    ['localhost/app', 'localhost/app', true],
    ['corp.example:5000/app', 'corp.example:5000/app:1', true],
    ['corp.example/app', 'corp.example:5000/app', false],
    ['*.corp.example/app', 'eu.corp.example/app', true],
    ['corp.example/a.c', 'corp.example/abc', false],
    ['MY-REGISTRY/app', 'MY-REGISTRY/app', true],
    ['**', 'nginx', true],
    ['**', 'corp.example:5000/a/b/c:1', true],
    ['**/charts/**', 'corp.example/charts/app', true],
    ['nginx:1.*', 'nginx:1.25', true],
    ['nginx:1.*', 'nginx:2.0', false],
    ['nginx:latest', 'nginx', true],
    ['nginx:latest', `nginx@${digest}`, false],
    ['nginx:1.25', `nginx:1.25@${digest}`, true],
    ['corp.example:5000/app:v?', 'corp.example:5000/app:v1', false],
    [`nginx@${digest}`, `nginx@${digest}`, true],
    [`nginx@${digest}`, `nginx:1.25@${digest}`, true],
    [`nginx@${digest}`, `nginx@${digestOf('other')}`, false],
    [`nginx@${digest}`, 'nginx', false],
  ];
  for (const [match, image, expected] of cases) {
    const overrides = compileOverrides([{ match, architectures: ['arm64'] }], clock);
    t.equal(overrides.find(image, parseReference(image)) !== undefined, expected, `${match} ~ ${image}`);
  }
});

t.test('an override gives facts of its architectures', async (t) => {
  const overrides = compileOverrides([{ match: 'nginx', architectures: ['arm64', 's390x'] }], clock);
  t.strictSame(overrides.find('nginx:1', parseReference('nginx:1')), {
    image: 'nginx:1',
    platforms: [
      { os: 'linux', architecture: 'arm64' },
      { os: 'linux', architecture: 's390x' },
      { os: 'windows', architecture: 'arm64' },
      { os: 'windows', architecture: 's390x' },
    ],
    source: 'override',
    credentialSource: 'anonymous',
    endpoint: '',
    confirmedAt: '2026-11-21T12:00:00.000Z',
    stale: false,
  });
});

t.test('the first matching override applies', async (t) => {
  const overrides = compileOverrides(
    [
      { match: 'nginx:1.25', architectures: [] },
      { match: 'nginx', architectures: ['arm64'] },
      { match: '**', architectures: ['amd64'] },
    ],
    clock,
  );
  const architectures = (image: string): string[] | undefined =>
    overrides
      .find(image, parseReference(image))
      ?.platforms.map(({ os, architecture }) => `${os}/${architecture}`);
  t.strictSame(architectures('nginx:1.25'), []);
  t.strictSame(architectures('nginx:1.26'), ['linux/arm64', 'windows/arm64']);
  t.strictSame(architectures('redis'), ['linux/amd64', 'windows/amd64']);
  t.equal(compileOverrides([], clock).find('nginx', parseReference('nginx')), undefined);
  t.equal(noOverrides.find('nginx', parseReference('nginx')), undefined);
});

t.test('malformed patterns are refused', async (t) => {
  const cases = [
    '',
    ':1',
    '@',
    'nginx:',
    'nginx@',
    `nginx@${digest}@${digest}`,
    'ngi nx',
    'a'.repeat(513),
    '*a'.repeat(9),
  ];
  for (const match of cases) {
    t.throws(
      () => compileOverrides([{ match, architectures: [] }], clock),
      { name: 'OverridePatternError', message: /^image override "/ },
      match,
    );
  }
  t.doesNotThrow(() => compileOverrides([{ match: '*a'.repeat(8), architectures: [] }], clock));
});

t.test('an override of only the level does not override architectures', async (t) => {
  const overrides = compileOverrides(
    [
      { match: 'tool', level: 'v3' },
      { match: 'both', architectures: ['amd64'], level: 'v2' },
      { match: 'none', architectures: ['amd64'] },
      { match: '**', level: 'v4' },
    ],
    clock,
  );
  const cases: [image: string, architectures: string | undefined, level: number | undefined][] = [
    ['tool:1', undefined, 3],
    ['both:1', 'amd64', 2],
    ['none:1', 'amd64', undefined],
    ['corp.example/other', undefined, 4],
  ];
  for (const [image, architecture, level] of cases) {
    const reference = parseReference(image);
    t.equal(overrides.find(image, reference)?.platforms[0]?.architecture, architecture, image);
    t.equal(overrides.levelOf?.(reference), level, image);
  }
  t.equal(compileOverrides([{ match: '**', architectures: [] }], clock).levelOf, undefined);
});

const all: RegistryRulesOptions = {
  allowedRegistries: [],
  deniedRegistries: [],
  allowLoopbackRegistries: true,
};

function refused(image: string, options: Partial<RegistryRulesOptions>): string | undefined {
  const find = compileRegistryRules({ ...all, ...options }, createFakeClock());
  const facts = find(image, parseReference(image));
  if (facts) like(t, facts, { image, source: 'override', platforms: [], error: { code: 'forbidden' } });
  return facts?.error?.message;
}

t.test('without rules every registry is allowed', async (t) => {
  for (const image of ['nginx', 'localhost:5000/app', 'registry.corp/a/b/c']) {
    t.equal(refused(image, {}), undefined, image);
  }
});

const globs: readonly (readonly [glob: string, image: string, matches: boolean])[] = [
  ['docker.io', 'nginx', true],
  ['docker.io/library/*', 'nginx:1.25', true],
  ['docker.io/library/*', 'team/app', false],
  ['ghcr.io/team/*', 'ghcr.io/team/app/part', false],
  ['ghcr.io/team/**', 'ghcr.io/team/app/part', true],
  ['ghcr.io/team/**', 'ghcr.io/teams/app', false],
  ['ghcr.io', 'ghcr.io.evil.example/app', false],
  ['ghcr.io', 'evil.example/ghcr.io/app', false],
  ['*.corp.example', 'a.corp.example/app', true],
  ['*.corp.example', 'a.b.corp.example/app', true],
  ['*.corp.example', 'evil.example/a.corp.example/app', false],
  ['registry.corp:5000', 'registry.corp:6000/app', false],
  ['Registry.Corp', 'REGISTRY.corp/app', true],
  ['**', 'nginx', true],
];

t.test('globs match repositories', async (t) => {
  for (const [glob, image, matches] of globs) {
    const denied = refused(image, { deniedRegistries: [glob] });
    t.equal(
      denied,
      matches ? 'not inspected: the image is in deniedRegistries' : undefined,
      `${glob} ${image}`,
    );
    const other = refused(image, { allowedRegistries: [glob] });
    t.equal(other, matches ? undefined : 'not inspected: the image is not in allowedRegistries');
    t.ok(refused(image, { allowedRegistries: [glob], deniedRegistries: [glob] }), 'denied wins');
  }
});

t.test('another spelling of a host is denied with it, and not allowed with it', async (t) => {
  for (const [glob, image] of [
    ['evil.example', 'evil.example:443/app'],
    ['evil.example', 'evil.example:8443/app'],
    ['evil.example', 'EVIL.example/app'],
    ['10.0.0.1', '0x0a.1/app'],
    ['10.0.0.1', '167772161:443/app'],
    ['10.0.0.*', '012.0.0.1:5000/app'],
  ] as const) {
    t.ok(refused(image, { deniedRegistries: [glob] }), `${glob} denies ${image}`);
    if (!image.startsWith('EVIL')) t.ok(refused(image, { allowedRegistries: [glob] }), `${glob}, ${image}`);
  }
});
