import t, { type Test } from 'tap';
import {
  RegistryError,
  registryErrorCodes,
  type RegistryErrorCode,
} from '../../src/registry/manifest-lookup.ts';
import { registryError } from '../../src/registry/outcome.ts';
import { clientFor, credential, lookUp, startRegistry } from '../support/registry/client.ts';
import type { Fault } from '../support/registry/faults.ts';
import { multiArch } from '../support/registry/content.ts';
import { createIssuer } from '../support/registry/tokens.ts';
import { like } from '../support/like.ts';

async function registryThat(t: Test, fault: Fault) {
  const registry = await startRegistry(t);
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  registry.faults.add(/manifests/, fault);
  return registry;
}

const status = (code: number): Fault => ({ kind: 'status', status: code });
const gone: Fault = { kind: 'drop' };
const large: Fault = { kind: 'endless' };

t.test('of several endpoints the most specific error is reported', async (t) => {
  const cases: readonly (readonly [first: Fault, last: Fault, code: RegistryErrorCode])[] = [
    [gone, status(404), 'not-found'],
    [status(404), gone, 'unavailable'],
    [gone, status(401), 'unauthorized'],
    [status(404), status(401), 'unauthorized'],
    [status(401), status(404), 'unauthorized'],
    [status(403), status(404), 'forbidden'],
    [status(403), status(401), 'forbidden'],
    [status(404), status(500), 'unavailable'],
    [status(500), status(404), 'unavailable'],
    [status(429), status(500), 'rate-limited'],
    [large, status(500), 'too-large'],
    [status(404), large, 'too-large'],
    [{ kind: 'gzip' }, status(404), 'unsupported-media-type'],
    [gone, gone, 'unavailable'],
  ];
  for (const [first, last, code] of cases) {
    const client = clientFor(t);
    const [mirror, origin] = [await registryThat(t, first), await registryThat(t, last)];
    const error: unknown = await lookUp(client, [mirror, origin]).catch((e: unknown) => e);
    like(t, error, { name: 'RegistryError', code }, JSON.stringify([first, last]));
    t.equal(mirror.requests.length, 1);
    t.equal(origin.requests.length, 1);
  }
});

t.test('if the origin is also its own mirror, its first answer is reported', async (t) => {
  for (const code of [401, 404]) {
    const client = clientFor(t);
    const origin = await registryThat(t, gone);
    origin.faults.add(/manifests/, status(code), { times: 1 });
    const error: unknown = await lookUp(client, [origin, origin]).catch((e: unknown) => e);
    like(t, error, { code: code === 401 ? 'unauthorized' : 'not-found' });
    t.ok(origin.requests.length >= 2);
  }
});

t.test('the result of an accepted credential is reported, not the refusal of others', async (t) => {
  const at = (origin: string) => ({ origin });
  const [ann, bea] = [
    credential('ann', 'password-a', at('/etc/old.json')),
    credential('bea', 'password-b', at('shop/regcred')),
  ];
  const users = { bea: 'password-b' };
  const issuer = createIssuer({ users });
  const origin = await startRegistry(t, { auth: { kind: 'basic', users } });
  const withTokens = await startRegistry(t, { auth: { kind: 'bearer', issuer } });
  for (const registry of [origin, withTokens]) {
    for (const credentials of [
      [ann, bea],
      [bea, ann],
    ]) {
      const error = await failureOf(lookUp(clientFor(t), registry, { credentials }));
      t.equal(error.code, 'not-found', credentials.map(({ origin }) => origin).join());
      t.match(
        error.message,
        /404 for library\/app with the credential docker-config registry\.test \(shop\/regcred\)/,
      );
      t.match(error.message, /; refused were: docker-config registry\.test \(\/etc\/old\.json\)$/);
    }
  }
  const refusing = await registryThat(t, status(401));
  const failing = (at: Parameters<typeof lookUp>[1], used = ann) =>
    failureOf(lookUp(clientFor(t), at, { credentials: [used] }));
  like(t, await failing([refusing, origin], bea), { code: 'not-found' });
  // A mirror without the image does not hide the refusal of the origin.
  like(t, await failing([origin, refusing], bea), { code: 'unauthorized', where: refusing.host });
  const open = await startRegistry(t);
  // A credential that was not sent is not named, unless the registry refuses.
  const message = /404 for library\/app without a credential: check/;
  like(t, await failing(open), { code: 'not-found', message });
  open.faults.add(/manifests/, status(403));
  const unsent = /403 .* without a credential: the credential .* was not sent/;
  like(t, await failing(open), { code: 'forbidden', message: unsent });
  const unknown = /401 .* without a credential: .* was not sent: the registry names no known way/;
  like(t, await failing(refusing), { code: 'unauthorized', message: unknown });
});

t.test(
  'a credential without user name or password is not sent, and the message says which is missing',
  async (t) => {
    const users = { ann: 'password-a' };
    const registry = await startRegistry(t, { auth: { kind: 'basic', users } });
    const cases = [
      [credential('', 'password-a'), /was not sent: it has no user name$/],
      [credential('ann', ''), /was not sent: it has no password$/],
      [credential('', '', { source: 'credential-provider' }), /was not sent: it has no user name$/],
    ] as const;
    for (const [given, message] of cases)
      like(t, await failureOf(lookUp(clientFor(t), registry, { credentials: [given] })), {
        code: 'unauthorized',
        message,
      });
  },
);

async function failureOf(lookup: Promise<unknown>): Promise<RegistryError> {
  const error = await lookup.catch((cause: unknown) => cause);
  if (error instanceof RegistryError) return error;
  throw new Error('expected a RegistryError', { cause: error });
}

t.test('if no endpoint responds, other credentials are not tried', async (t) => {
  const client = clientFor(t);
  const [mirror, origin] = [await registryThat(t, gone), await registryThat(t, gone)];
  const credentials = ['a', 'b', 'c'].map((name) => credential(name, `password-${name}`));
  await t.rejects(lookUp(client, [mirror, origin], { credentials }), { code: 'unavailable' });
  t.equal(mirror.requests.length + origin.requests.length, 2);
  const [answering, silent] = [await registryThat(t, status(403)), await registryThat(t, gone)];
  await t.rejects(lookUp(client, [answering, silent], { credentials }), { code: 'unavailable' });
  t.equal(answering.requests.length, 3, 'an endpoint that responds gets each credential');
});

t.test('unexpected errors become a typed, temporary error without their message', async (t) => {
  t.equal(registryErrorCodes.length, 10);
  const about = { host: 'registry.corp', repository: 'library/app', credential: undefined };
  const fault = registryError(new TypeError('secret detail'), about, 0);
  like(t, fault, { name: 'RegistryError', code: 'unavailable', where: 'registry.corp' });
  t.notMatch(fault.message, /secret detail/);
  t.equal(registryError(fault, about, 0), fault);
});
