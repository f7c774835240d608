import t from 'tap';
import { secret } from '../../../src/telemetry/secret.ts';
import {
  clientFor,
  credential,
  endpointOf,
  lookUp,
  startRegistry,
  tracing,
} from '../../support/registry/client.ts';
import { createCa } from '../../support/certificates.ts';
import { image, multiArch } from '../../support/registry/content.ts';
import { createIssuer } from '../../support/registry/tokens.ts';

const users = { ann: 'password-a' };
const ann = credential('ann', 'password-a');

t.test('a redirect to another host gets neither credentials nor headers', async (t) => {
  const ca = await createCa();
  const storage = await startRegistry(t, { tls: ca });
  const auth = { kind: 'bearer', issuer: createIssuer({ users }) } as const;
  const registry = await startRegistry(t, { tls: ca, auth });
  const content = image('linux/arm64');
  for (const place of [registry, storage]) place.push('library/app', 'v1', content);
  const stored = `${storage.url}/v2/library/app/blobs/${content.blobs[0]?.digest}`;
  registry.faults.add(/blobs/, { kind: 'redirect', to: `${stored}?signature=presigned` });
  const headers = [{ name: 'X-Team', value: secret('platform-team') }];
  const { trace, lines, attempts } = tracing();
  const answer = await lookUp(clientFor(t), endpointOf(registry, { headers }), { credentials: [ann], trace });
  t.strictSame(answer.platforms, [{ os: 'linux', architecture: 'arm64' }]);
  t.strictSame(lines.slice(-2), ['GET config 307', 'GET config 200']);
  t.equal(attempts.at(-1)?.url, stored, 'without its signature');
  t.equal(storage.requests.length, 1);
  t.equal(storage.requests[0]?.headers.authorization, undefined);
  t.equal(storage.requests[0]?.headers['x-team'], undefined);
  t.equal(storage.requests[0]?.query.get('signature'), 'presigned');
});

t.test('a redirect on the same host keeps the credentials', async (t) => {
  const registry = await startRegistry(t, { auth: { kind: 'basic', users } });
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  registry.push('moved/app', 'v1', multiArch(['linux/arm64']));
  registry.faults.add(/library/, { kind: 'redirect', to: '/v2/moved/app/manifests/v1', status: 301 });
  const answer = await lookUp(clientFor(t), registry, { credentials: [ann] });
  t.strictSame(answer.platforms, [{ os: 'linux', architecture: 'arm64' }]);
  t.equal(registry.requests.at(-1)?.authorization?.user, 'ann');
});

t.test('a redirect target that answers 401 gets no credentials', async (t) => {
  const ca = await createCa();
  const target = await startRegistry(t, { tls: ca, auth: { kind: 'basic', users } });
  const registry = await startRegistry(t, { tls: ca, auth: { kind: 'basic', users } });
  const to = `${target.url}/v2/library/app/manifests/v1`;
  registry.faults.add(/manifests/, { kind: 'redirect', to });
  await t.rejects(lookUp(clientFor(t), registry, { credentials: [ann] }), {
    code: 'unauthorized',
    where: target.host,
    message: /never gets any/,
  });
  t.strictSame(
    target.requests.map(({ headers }) => headers.authorization),
    [undefined],
  );
});

t.test('a redirect back to the first host stays without headers', async (t) => {
  const ca = await createCa();
  const other = await startRegistry(t, { tls: ca });
  const registry = await startRegistry(t, { tls: ca });
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  registry.faults.add(/manifests\/v1$/, { kind: 'redirect', to: `${other.url}/hop` });
  other.faults.add(/hop/, { kind: 'redirect', to: `${registry.url}/v2/library/app/manifests/v1?again` });
  const headers = [{ name: 'X-Team', value: secret('platform-team') }];
  await lookUp(clientFor(t), endpointOf(registry, { headers }));
  t.strictSame(
    registry.requests.map((request) => request.headers['x-team']),
    ['platform-team', undefined],
  );
});

t.test('circular, malformed and local redirects are refused', async (t) => {
  const plain = await startRegistry(t, { tls: false });
  const cases = [
    ['a circle', () => '', /in a circle/, 'unavailable'],
    ['no Location', () => undefined, /something other than a URL/, 'unavailable'],
    ['another scheme', () => 'ftp://example.com/', /redirects to ftp:/, 'unavailable'],
    ['user info', () => 'https://a:b@example.com/', /user info/, 'unavailable'],
    ['https to http', () => `${plain.url}/x`, /from https to http/, 'unavailable'],
    ['metadata', () => 'https://169.254.169.254/latest/meta-data', /metadata address/, 'forbidden'],
    ['metadata in disguise', () => 'https://[::ffff:a9fe:a9fe]/latest', /metadata address/, 'forbidden'],
    ["the node's own services", () => 'https://127.0.0.1:10250/pods', /port 10250/, 'forbidden'],
  ] as const;
  for (const [name, to, message, code] of cases) {
    const registry = await startRegistry(t);
    const location = to();
    registry.faults.add(/manifests/, {
      kind: 'status',
      status: 307,
      headers: location === undefined ? {} : { location },
    });
    await t.rejects(lookUp(clientFor(t), registry), { code, message }, name);
    t.equal(registry.requests.length, 1, name);
  }
  t.strictSame(plain.requests, []);
});

t.test('at most five redirects are followed', async (t) => {
  const registry = await startRegistry(t);
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  const hop = (from: number, last: number) => {
    const to = from === last ? '/v2/library/app/manifests/v1?end' : `/hop${from + 1}`;
    registry.faults.add(new RegExp(`/hop${from}$`), { kind: 'redirect', to });
  };
  registry.faults.add(/manifests\/v1$/, { kind: 'redirect', to: '/hop1' });
  for (const from of [1, 2, 3, 4]) hop(from, 4);
  t.equal((await lookUp(clientFor(t), registry)).platforms.length, 1);
  for (const from of [1, 2, 3, 4, 5]) hop(from, 5);
  await t.rejects(lookUp(clientFor(t), registry), { message: /redirects more than 5 times/ });
});
