/** An agent's own certificate: requested, kept, renewed and moved to another CA. */
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { systemClock, type Clock } from '../../../src/async/clock.ts';
import { createKubeClient } from '../../../src/kube/api/client.ts';
import { loadTlsMaterial } from '../../../src/serving/tls-files.ts';
import { issueAuthority, issueLeaf } from '../../../src/certificates/issue.ts';
import { AgentCertificate, renewalOf } from '../../../daemon/certificate/certificate.ts';
import { createRequest } from '../../../daemon/certificate/signing-request.ts';
import { alerts } from '../../../scripts/docs/chart/alerts.ts';
import {
  agentNameOn,
  agentRequestName,
  agentServerName,
  maxAgentRequests,
} from '../../../src/certificates/agent-names.ts';
import {
  requestsPath,
  startWorld as startLeader,
  userOf,
  type Token,
} from '../../controller/features/agent-certificates/world.ts';
import { until } from '../../support/until.ts';
import { readableLog } from '../../support/captured.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

const hour = 3_600_000;
/** Without jitter: agents move to another CA within minutes. Polls and pauses after failures are short. */
const clock: Clock = {
  ...systemClock,
  random: () => 0,
  sleep: (ms, signal) => systemClock.sleep(ms < 60_000 ? 10 : ms, signal),
};
const created = `POST ${requestsPath}`;
const subject = { commonName: agentServerName, names: [agentServerName], usage: 'server' } as const;

/** A leader, and the directories of an agent. */
async function startWorld(t: Test) {
  const world = await startLeader(t);
  const root = t.testdir();
  const [dir, authorityDir] = [join(root, 'tls'), join(root, 'authority')];
  mkdirSync(authorityDir);
  const life = { from: Date.now() - hour, to: Date.now() + hour };
  const mount = async (...authorities: (typeof world.authority)[]): Promise<void> => {
    const [signing = world.authority] = authorities;
    const sample = await issueLeaf(signing, subject, life);
    writeFileSync(join(authorityDir, 'tls.crt'), sample.certificate.pem);
    writeFileSync(
      join(authorityDir, 'ca.crt'),
      authorities.map(({ certificate }) => certificate.pem).join(''),
    );
  };
  await mount(world.authority);
  const token: { now: Token } = { now: { node: 'n1' } };
  // As the API server does it.
  world.store.fault(created, {
    before: ({ json }) => void Object.assign((json as { spec: object }).spec, userOf(token.now)),
  });
  const { log, lines } = readableLog();
  const start = (node = 'n1'): AgentCertificate => {
    const client = createKubeClient({ access: world.store.access, userAgent: 'test' });
    const agent = new AgentCertificate({ client, node, dir, authorityDir, clock, log });
    t.teardown(async () => {
      await agent.close();
      client.close();
    });
    return agent;
  };
  const certificate = (): X509Certificate => new X509Certificate(readFileSync(join(dir, 'tls.crt')));
  return {
    ...world,
    dir,
    mount,
    unmount: (): void => {
      for (const name of ['tls.crt', 'ca.crt']) rmSync(join(authorityDir, name));
    },
    token,
    start,
    certificate,
    log: lines,
    requests: () => world.store.received(created).length,
  };
}

t.test('an agent gets a certificate for its own key', async (t) => {
  const { start, dir, certificate, requests } = await startWorld(t);
  const agent = start();
  await agent.ready(neverAborted);
  await loadTlsMaterial(dir, true);
  const names = ['ca.crt', 'tls.crt', 'tls.key'];
  t.strictSame(readdirSync(dir).sort(), names);
  for (const name of names) t.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name);
  t.equal(certificate().subjectAltName, 'DNS:n1.archwright-agent, DNS:archwright-agent');
  const { serialNumber } = certificate();
  await agent.close();

  await start().ready(neverAborted);
  t.equal(certificate().serialNumber, serialNumber, 'a restarted agent keeps its certificate');
  t.equal(requests(), 1);
});

t.test('a request has the shortest lengths: the API server reads only DER', async (t) => {
  const forms = new Set<number>();
  const check = (bytes: Buffer): void => {
    for (let at = 0; at < bytes.length;) {
      const [tag = 0, first = 0] = bytes.subarray(at);
      const more = Math.max(0, first - 0x80);
      const length = more === 0 ? first : bytes.readUIntBE(at + 2, more);
      forms.add(more);
      t.ok(length >= ([0, 0x80, 0x100][more] ?? Infinity), `${length} in ${more} more bytes`);
      const start = at + 2 + more;
      at = start + length;
      if (tag & 0x20) check(bytes.subarray(start, at));
    }
  };
  check(Buffer.from(createRequest('n1').request.replaceAll(/-----.*-----/g, ''), 'base64'));
  t.strictSame(forms, new Set([2, 1, 0]));
});

t.test('an agent renews its certificate before the alert fires', async (t) => {
  const { start, certificate, authority } = await startWorld(t);
  await start().ready(neverAborted);
  const { pem } = authority.certificate;
  const own = certificate();
  const latest = renewalOf(own.toString(), { ca: pem, sample: pem }, 'n1', 1)?.at ?? 0;
  const { expr = '' } = alerts.find(({ name }) => name === 'ArchwrightCertificateExpires') ?? {};
  const [, seconds] =
    /archwright_tls_certificate_expiry_timestamp_seconds > 0\) - time\(\) < (\d+)$/.exec(expr) ?? [];
  t.ok(own.validToDate.getTime() - latest > Number(seconds) * 1000);
});

t.test('without the mounted Secret, the CA comes with the certificate', async (t) => {
  const { start, unmount, mount, dir, authority, certificate, requests, log } = await startWorld(t);
  unmount();
  const agent = start();
  await agent.ready(neverAborted);
  const { pem } = authority.certificate;
  t.equal(readFileSync(join(dir, 'ca.crt'), 'utf8'), pem);
  t.ok(certificate().verify(authority.certificate.x509.publicKey));
  await agent.close();

  await start().ready(neverAborted);
  t.equal(requests(), 1, 'a restarted agent keeps its certificate');
  const next = await issueAuthority({ from: Date.now() - hour, to: Date.now() + 48 * hour });
  await mount(authority, next);
  await until(() => readFileSync(join(dir, 'ca.crt'), 'utf8') === `${pem}${next.certificate.pem}`);
  t.equal(requests(), 1, 'with a mounted Secret its files are used');
  t.notMatch(log(), '"level":"error"');
});

t.test('a node uses few names for certificate requests', async (t) => {
  const { start, store, log, certificate } = await startWorld(t);
  const names = Array.from({ length: maxAgentRequests }, (_, slot) => agentRequestName('n1', slot));
  for (const name of names) store.put(`${requestsPath}/${name}`, { metadata: { name }, spec: {} });
  const agent = start();
  const failures = () => [...log().matchAll(/this node has 32 requests; the API server.*"pauseMs":(\d+)/g)];
  await until(() => failures().length > 1);
  t.ok(Number(failures()[1]?.[1]) > Number(failures()[0]?.[1]), 'the pauses grow');
  store.remove(`${requestsPath}/${names[20]}`);
  await agent.ready(neverAborted);
  like(t, store.get(`${requestsPath}/${names[20]}`), { status: { certificate: /./ } });
  t.equal(certificate().subjectAltName, 'DNS:n1.archwright-agent, DNS:archwright-agent');
});

t.test('an agent with the token of another node gets none', async (t) => {
  const { start, token, log } = await startWorld(t);
  token.now = { node: 'n2' };
  const agent = start('n1');
  await until(() =>
    log().includes('was refused: the token belongs to node n2: only the name n2.archwright-agent'),
  );
  await t.rejects(agent.ready(AbortSignal.timeout(1)));
});

t.test('a certificate for another key is not written', async (t) => {
  const { start, depose, dir, store, authority, log, requests } = await startWorld(t);
  depose();
  start();
  await until(() => requests() === 1 && log().includes('the agent requested a certificate'));
  const [, name = ''] = /"request":"([^"]+)"/.exec(log()) ?? [];
  const life = { from: Date.now() - hour, to: Date.now() + hour };
  const { certificate } = await issueLeaf(authority, { ...subject, names: [agentNameOn('n1')] }, life);
  const request = store.get(`${requestsPath}/${name}`) as object;
  store.put(`${requestsPath}/${name}`, {
    ...request,
    status: { certificate: Buffer.from(certificate.pem).toString('base64') },
  });
  await until(() => /tls\.key of the new certificate is not the key of tls\.crt/.test(log()));
  t.notOk(existsSync(dir));
});

t.test(
  'when the CA changes, the agent requests a new certificate; until then both CAs are trusted',
  async (t) => {
    const { start, mount, store, authority, certificate, dir, requests } = await startWorld(t);
    await start().ready(neverAborted);
    const next = await issueAuthority({ from: Date.now() - hour, to: Date.now() + 48 * hour });
    await mount(authority, next);
    await until(() => readFileSync(join(dir, 'ca.crt'), 'utf8').includes(next.certificate.pem));
    t.equal(requests(), 1, 'a CA that does not sign yet changes nothing');
    const secret = '/api/v1/namespaces/archwright/secrets/archwright-ca';
    const { data } = store.get(secret) as { data?: object } & object;
    const encoded = (text: string): string => Buffer.from(text).toString('base64');
    const { reveal } = await import('../../../src/telemetry/secret.ts');
    store.put(secret, {
      data: { ...data, 'ca.crt': encoded(next.certificate.pem), 'ca.key': encoded(reveal(next.key)) },
    });
    await mount(next, authority);
    await until(() => certificate().verify(next.certificate.x509.publicKey));
    t.equal(requests(), 2);
  },
);

t.test('a certificate is renewed after two thirds of its life, or when the CA changes', async (t) => {
  const now = Date.now();
  const [authority, other] = await Promise.all(
    [1, 2].map(() => issueAuthority({ from: now - hour, to: now + 1000 * hour })),
  );
  if (authority === undefined || other === undefined) throw new TypeError('no authority');
  const issue = async (from: typeof authority, names: readonly string[], hours = 300) => {
    const life = { from: now, to: now + hours * hour };
    return (await issueLeaf(from, { commonName: agentServerName, names, usage: 'server' }, life)).certificate
      .pem;
  };
  const own = await issue(authority, [agentNameOn('n1')]);
  const ca = authority.certificate.pem;
  const both = { ca: `${other.certificate.pem}${ca}`, sample: await issue(other, [agentServerName]) };
  const alone = { ca, sample: await issue(authority, [agentServerName]) };
  const minutes = (ms = 0): number => Math.round((ms - now) / 60_000);
  like(t, renewalOf(own, alone, 'n1', 0), { moves: false, lifeMs: 300 * hour });
  t.equal(minutes(renewalOf(own, alone, 'n1', 0)?.at), 200 * 60, 'after two thirds');
  t.equal(minutes(renewalOf(own, alone, 'n1', 1)?.at), 230 * 60, 'not all agents at the same time');
  like(t, renewalOf(own, both, 'n1', 0), { moves: true });
  t.equal(renewalOf(own, alone, 'n2', 0), undefined, 'for another node');
  t.equal(renewalOf(await issue(authority, [agentServerName]), alone, 'n1', 0), undefined, 'the shared name');
  t.equal(
    renewalOf(await issue(other, [agentNameOn('n1')]), alone, 'n1', 0),
    undefined,
    'from a CA that clients do not trust',
  );
});
