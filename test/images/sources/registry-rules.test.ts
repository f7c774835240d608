import t from 'tap';
import { parseReference } from '../../../src/images/references/reference.ts';
import {
  compileRegistryRules,
  type RegistryRulesOptions,
} from '../../../src/images/sources/registry-rules.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { like } from '../../support/like.ts';

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
  ['docker.io/**', 'team/app', true],
  ['ghcr.io/team/*', 'ghcr.io/team/app', true],
  ['ghcr.io/team/*', 'ghcr.io/team/app/part', false],
  ['ghcr.io/team/**', 'ghcr.io/team/app/part', true],
  ['ghcr.io/team/**', 'ghcr.io/teams/app', false],
  ['ghcr.io', 'ghcr.io.evil.example/app', false],
  ['ghcr.io', 'evil.example/ghcr.io/app', false],
  ['*.corp.example', 'a.corp.example/app', true],
  ['*.corp.example', 'a.b.corp.example/app', true],
  ['*.corp.example', 'evil.example/a.corp.example/app', false],
  ['registry.corp:5000', 'registry.corp:5000/app', true],
  ['registry.corp:5000', 'registry.corp:6000/app', false],
  ['Registry.Corp', 'REGISTRY.corp/app', true],
  ['**', 'nginx', true],
];

for (const [glob, image, matches] of globs) {
  t.test(`${glob} ${matches ? 'matches' : 'does not match'} ${image}`, async (t) => {
    const denied = refused(image, { deniedRegistries: [glob] });
    t.equal(denied, matches ? 'not inspected: the image is in deniedRegistries' : undefined);
    const other = refused(image, { allowedRegistries: [glob] });
    t.equal(other, matches ? undefined : 'not inspected: the image is not in allowedRegistries');
    t.ok(refused(image, { allowedRegistries: [glob], deniedRegistries: [glob] }), 'denied wins');
  });
}

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
