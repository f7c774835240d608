import t from 'tap';
import { compileOverrides, noOverrides } from '../../../src/images/sources/overrides.ts';
import { parseReference } from '../../../src/images/references/reference.ts';
import { digestOf } from '../../support/facts.ts';
import { clockOfFacts } from '../support.ts';

const clock = clockOfFacts();
const digest = digestOf('content');

t.test('patterns match images', async (t) => {
  const cases: [string, string, boolean][] = [
    ['nginx', 'nginx', true],
    ['nginx', 'nginx:1.25', true],
    ['nginx', `nginx@${digest}`, true],
    ['nginx', 'docker.io/library/nginx:1', true],
    ['nginx', 'docker.io/nginxinc/nginx', false],
    ['nginx', 'nginx-unprivileged', false],
    ['nginx', 'ghcr.io/library/nginx', false],
    ['nginx*', 'nginx-unprivileged', true],
    ['team/app', 'docker.io/team/app:2', true],
    ['team/*', 'team/app', true],
    ['team/*', 'team/app/sub', false],
    ['team/**', 'team/app/sub', true],
    ['team/**', 'team', false],
    ['docker.io/library/nginx', 'nginx', true],
    ['index.docker.io/library/nginx', 'nginx', true],
    ['localhost/app', 'localhost/app', true],
    ['corp.example:5000/app', 'corp.example:5000/app:1', true],
    ['corp.example/app', 'corp.example:5000/app', false],
    ['corp.example:5000/app', 'corp.example/app', false],
    ['*.corp.example/app', 'eu.corp.example/app', true],
    ['*.corp.example/app', 'corp.example/app', false],
    ['corp.example/a.c', 'corp.example/abc', false],
    ['MY-REGISTRY/app', 'MY-REGISTRY/app', true],
    ['**', 'nginx', true],
    ['**', 'corp.example:5000/a/b/c:1', true],
    ['**/charts/**', 'corp.example/charts/app', true],
    ['nginx:1.*', 'nginx:1.25', true],
    ['nginx:1.*', 'nginx:2.0', false],
    ['nginx:1.*', 'nginx:1', false],
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
