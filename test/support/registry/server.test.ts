import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import t from 'tap';
import { attestation, image, index, mediaTypes, multiArch, platformOf } from './content.ts';
import { startTestRegistry, type TestRegistry } from './server.ts';
import { createIssuer } from './tokens.ts';

interface Got {
  status: number;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

async function ask(
  registry: TestRegistry,
  path: string,
  init: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Got> {
  const sent = request(`${registry.url}${path}`, {
    ca: registry.ca,
    agent: false,
    method: init.method ?? 'GET',
    headers: init.headers ?? {},
  });
  sent.end(init.body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) };
}

const basic = (user: string, password: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

t.test('what was pushed is served by tag and by digest, and recorded', async (t) => {
  const registry = await startTestRegistry();
  t.teardown(() => registry.close());
  const content = multiArch(['linux/amd64', 'linux/arm64'], { attestations: true });
  registry.push('library/app', 'v1', content);

  const byTag = await ask(registry, '/v2/library/app/manifests/v1');
  t.equal(byTag.status, 200);
  t.equal(byTag.headers['content-type'], mediaTypes.ociIndex);
  t.equal(
    byTag.headers['docker-content-digest'],
    `sha256:${createHash('sha256').update(byTag.body).digest('hex')}`,
  );
  const child = content.children[0];
  const byDigest = await ask(registry, `/v2/library/app/manifests/${child?.digest}`);
  t.same(byDigest.body, child?.bytes);
  const blob = await ask(registry, `/v2/library/app/blobs/${child?.blobs[0]?.digest}`);
  t.match(JSON.parse(blob.body.toString()), { architecture: 'amd64' });
  const head = await ask(registry, '/v2/library/app/manifests/v1', { method: 'HEAD' });
  t.equal(head.headers['content-length'], String(content.bytes.length));
  t.equal(head.body.length, 0);
  t.equal((await ask(registry, '/v2/library/app/manifests/v2')).status, 404);
  t.equal((await ask(registry, '/v2/library/app/manifests/v1?ns=docker.io')).status, 404);
  t.same(registry.counts(), { 'GET manifests': 4, 'GET blobs': 1, 'HEAD manifests': 1 });
});

t.test('an index holds what its entries say', async (t) => {
  const subject = image('linux/arm/v7');
  const built = index([
    { content: subject, platform: platformOf('linux/arm/v7') },
    { content: image('linux/amd64') },
    attestation(subject),
  ]);
  t.match(JSON.parse(built.bytes.toString()), {
    manifests: [
      { platform: { os: 'linux', architecture: 'arm', variant: 'v7' } },
      { platform: undefined },
      { platform: { os: 'unknown' }, annotations: { 'vnd.docker.reference.digest': subject.digest } },
    ],
  });
});

t.test('basic authentication', async (t) => {
  const registry = await startTestRegistry({ auth: { kind: 'basic', users: { ann: 'secret' } } });
  t.teardown(() => registry.close());
  registry.push('app', 'v1', image('linux/amd64'));
  const refused = await ask(registry, '/v2/app/manifests/v1');
  t.equal(refused.status, 401);
  t.match(refused.headers['www-authenticate'], 'Basic realm=');
  t.equal((await ask(registry, '/v2/app/manifests/v1', { headers: basic('ann', 'wrong') })).status, 401);
  t.equal((await ask(registry, '/v2/app/manifests/v1', { headers: basic('ann', 'secret') })).status, 200);
  t.match(registry.requests.at(-1)?.authorization, { scheme: 'basic', user: 'ann' });
});

t.test('bearer authentication: tokens hold what they grant, for as long as they say', async (t) => {
  let now = 0;
  const issuer = createIssuer({
    users: { ann: 'secret' },
    access: (user, repository) => user === 'ann' || repository === 'public',
    lifetimeSeconds: 100,
    now: () => now,
  });
  const registry = await startTestRegistry({ auth: { kind: 'bearer', issuer } });
  t.teardown(() => registry.close());
  registry.push('app', 'v1', image('linux/amd64'));
  registry.push('public', 'v1', image('linux/amd64'));

  const refused = await ask(registry, '/v2/app/manifests/v1');
  t.match(
    refused.headers['www-authenticate'],
    `Bearer realm="${registry.url}/token",service="${registry.host}",scope="repository:app:pull"`,
  );
  const scope = 'scope=repository:app:pull&scope=repository:public:pull';
  const anonymous = JSON.parse((await ask(registry, `/token?${scope}`)).body.toString()) as { token: string };
  const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
  const pull = async (path: string, token: string): Promise<number> =>
    (await ask(registry, path, { headers: bearer(token) })).status;
  t.equal(await pull('/v2/public/manifests/v1', anonymous.token), 200);
  t.equal(await pull('/v2/app/manifests/v1', anonymous.token), 401);
  t.equal((await ask(registry, `/token?${scope}`, { headers: basic('ann', 'wrong') })).status, 401);

  const body = 'grant_type=password&username=ann&password=secret&scope=repository:app:pull';
  const posted = JSON.parse((await ask(registry, '/token', { method: 'POST', body })).body.toString()) as {
    access_token: string;
    expires_in: number;
  };
  t.equal(posted.expires_in, 100);
  t.equal(await pull('/v2/app/manifests/v1', posted.access_token), 200);
  t.equal(registry.requests.at(-1)?.authorization?.user, 'ann');
  now += 100_000;
  t.equal(await pull('/v2/app/manifests/v1', posted.access_token), 401);
});

t.test('mirror content, redirected blobs, and closing with requests in flight', async (t) => {
  const storage = await startTestRegistry({ tls: false });
  const registry = await startTestRegistry({ prefix: '/cache', blobsAt: storage.url, head: false });
  t.teardown(() => storage.close());
  const content = image('linux/s390x');
  registry.push('library/app', 'v1', content, 'docker.io');
  t.equal((await ask(registry, '/cache/v2/library/app/manifests/v1')).status, 404);
  t.equal((await ask(registry, '/cache/v2/library/app/manifests/v1?ns=docker.io')).status, 200);
  const digest = content.blobs[0]?.digest;
  const moved = await ask(registry, `/cache/v2/library/app/blobs/${digest}?ns=docker.io`);
  t.equal(moved.headers.location, `${storage.url}/storage/${digest}?signature=presigned`);
  const path = '/cache/v2/library/app/manifests/v1?ns=docker.io';
  t.equal((await ask(registry, path, { method: 'HEAD' })).status, 405);

  registry.faults.add({ path: /manifests/, fault: { kind: 'hold' } });
  const held = ask(registry, path).catch((error: NodeJS.ErrnoException) => error.code);
  await registry.waitFor((request) => registry.requests.indexOf(request) === 4);
  await registry.close();
  t.equal(await held, 'ECONNRESET');
  t.equal(await registry.requests[4]?.ended, 'aborted');
  t.equal(registry.connections, 0);
});
