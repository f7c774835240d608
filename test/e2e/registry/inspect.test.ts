/** `archwright inspect` with real registries, clients and TLS: output equals that of skopeo and crane. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createCa } from '../../support/certificates.ts';
import { debianProgram } from '../programs/debian.ts';
import { distributionProgram } from '../programs/helm.ts';
import { createClients, htpasswd, inspect, written, type Clients } from './clients.ts';
import {
  attestation,
  helmChart,
  index,
  platformOf,
  type Content,
  type IndexEntry,
} from '../../support/registry/content.ts';
import { unpackable, unpackableIndex, writeLayout } from '../layout.ts';
import { directoryOf, startRegistry, type Auth } from './servers.ts';
import { startTokenServer } from './token-server.ts';

const user = { username: 'pusher', password: 'pass:word-of-the-test' };
const service = 'registry.test';
const issuer = 'token.test';

const [amd64, arm64, ppc64le] = ['linux/amd64', 'linux/arm64', 'linux/ppc64le'].map((platform) => ({
  content: unpackable(platform),
  platform: platformOf(platform),
})) as [IndexEntry, IndexEntry, IndexEntry];
const three = ['linux/amd64', 'linux/arm/v7', 'linux/arm64'];
const multi = unpackableIndex(three);

/** Name → how it is pushed, its platforms (the client must read the same), and its content. */
const images: Readonly<Record<string, readonly ['oci' | 'v2s2' | 'crane', readonly string[], Content]>> = {
  multi: ['oci', three, multi],
  list: ['v2s2', three, multi],
  'single-oci': ['oci', ['linux/arm64'], arm64.content],
  'single-docker': ['v2s2', ['linux/s390x'], unpackable('linux/s390x')],
  nested: [
    'crane',
    ['linux/amd64', 'linux/ppc64le'],
    index([amd64, { ...ppc64le, content: index([ppc64le]) }]),
  ],
  attested: [
    'crane',
    ['linux/amd64', 'linux/arm64'],
    index([amd64, arm64, attestation(amd64.content), attestation(arm64.content)]),
  ],
  artifact: ['crane', [], helmChart()],
};

const programs = {
  'docker-registry': () => debianProgram('docker-registry'),
  distribution: distributionProgram,
};
type RegistryProgram = keyof typeof programs;

type World = Awaited<ReturnType<typeof createWorld>>;

async function createWorld(t: Test) {
  const directory = directoryOf(t);
  const ca = await createCa('registry test CA');
  const tls = await ca.issue({ cn: 'registry', ip: ['127.0.0.1'] });
  const caFile = join(directory, 'ca.crt');
  writeFileSync(caFile, ca.cert);
  const caFiles = `caFiles = [${JSON.stringify(caFile)}]\n`;
  return {
    ca,
    directory,
    start: async (name: string, program: RegistryProgram, auth: Auth, upstream?: string) => {
      const registry = await startRegistry({
        program: programs[program](),
        directory: join(directory, name),
        tls,
        ca: ca.cert,
        auth,
        ...(upstream !== undefined && { upstream: { remoteurl: upstream, ...user } }),
      });
      t.teardown(() => registry.stop());
      return registry;
    },
    clients: (name: string, host: string): Clients =>
      createClients({ directory: join(directory, `login-${name}`), caFile, host, login: user }),
    inspect: (args: readonly string[], settings = '') => {
      const config = join(directory, 'archwright.toml');
      writeFileSync(config, `${caFiles}${settings}`);
      return inspect(['--config', config, ...args]);
    },
    /** Flag of a docker configuration; without `auth` there is no such file. */
    login: (auth?: object): string => {
      const file = join(directory, auth === undefined ? 'no-login' : 'login.json');
      if (auth !== undefined) writeFileSync(file, JSON.stringify({ auths: auth }));
      return `--docker-config=${file}`;
    },
  };
}

async function push(world: World, clients: Clients, host: string, repository: string): Promise<void> {
  for (const [name, [how, , content]] of Object.entries(images)) {
    const directory = join(world.directory, 'layouts', `${host.replace(':', '-')}-${repository}`, name);
    writeLayout(directory, content);
    await clients.push(directory, `${host}/${repository}/${name}:1`, how);
  }
}

/** Compares every image, by tag and by digest, with the client's output. */
async function compare(
  t: Test,
  world: World,
  clients: Clients,
  prefix: string,
  args: readonly string[],
): Promise<void> {
  const names = Object.keys(images).map((name) => `${prefix}/${name}:1`);
  const readBack = await Promise.all(names.map((name) => clients.readBack(name)));
  const byDigest = names.map((name, index) => `${name.slice(0, -2)}@${readBack[index]?.digest ?? ''}`);
  const byTag = await world.inspect([...args, ...names]);
  const again = await world.inspect([...args, ...byDigest]);
  t.equal(byTag.code, 1, 'an artifact is no image');
  for (const [index, [name, [, platforms]]] of Object.entries(images).entries()) {
    const client = readBack[index];
    t.same(client?.platforms, platforms, `${name}: the client reads what was pushed`);
    const wrong = name === 'artifact' ? 'not-an-image' : undefined;
    for (const facts of [byTag.results[index], again.results[index]]) {
      t.same(written(facts), client?.platforms, `${name}: platforms`);
      t.equal(facts?.digest, client?.digest, `${name}: digest`);
      t.equal(facts?.mediaType, client?.mediaType, `${name}: media type`);
      t.equal(facts?.error?.code, wrong, `${name}: error`);
    }
  }
}

for (const program of Object.keys(programs) as RegistryProgram[]) {
  void t.test(`${program}: anonymous access, and a pull-through mirror`, async (t) => {
    const world = await createWorld(t);
    const { host } = await world.start('open', program, { kind: 'none' });
    const clients = world.clients('open', host);
    await push(world, clients, host, 'open');
    await compare(t, world, clients, `${host}/open`, []);
    const missing = await world.inspect([`${host}/open/multi:none`]);
    t.equal(missing.code, 1);
    t.equal(missing.results[0]?.error?.code, 'not-found');
    await throughMirror(t, world, program, host, 'open');
  });

  void t.test(`${program}: htpasswd, and a pull-through mirror`, async (t) => {
    const world = await createWorld(t);
    const auth = { kind: 'htpasswd', line: htpasswd(user.username, user.password) } as const;
    const { host } = await world.start('basic', program, auth);
    const clients = world.clients('basic', host);
    await push(world, clients, host, 'team');
    await compare(t, world, clients, `${host}/team`, ['--docker-config', clients.login]);
    await refused(t, world, host, 'team');

    // docker-registry 2.8 cannot log in to a registry with Basic, so the mirror is always the newer one.
    await throughMirror(t, world, 'distribution', host, 'team');
  });

  void t.test(`${program}: tokens`, async (t) => {
    const world = await createWorld(t);
    const signer = await world.ca.issue({ cn: 'signer' });
    const tokens = await startTokenServer({
      tls: await world.ca.issue({ cn: 'token', ip: ['127.0.0.1'] }),
      signer,
      issuer,
      service,
      users: { [user.username]: user.password },
      publicPrefix: 'open/',
    });
    t.teardown(() => tokens.close());
    const auth = { kind: 'token', realm: tokens.realm, service, issuer, signer } as const;
    const { host } = await world.start('token', program, auth);
    const clients = world.clients('token', host);
    await push(world, clients, host, 'team');
    await push(world, clients, host, 'open');
    await compare(t, world, clients, `${host}/team`, ['--docker-config', clients.login]);
    const open = await world.inspect([world.login(), `${host}/open/multi:1`]);
    t.equal(open.code, 0, open.text);
    t.equal(open.results[0]?.credentialSource, 'anonymous');
    await refused(t, world, host, 'team');
  });
}

/** A mirror in `proxies` stands in for an unreachable registry. */
async function throughMirror(
  t: Test,
  world: World,
  program: RegistryProgram,
  host: string,
  repository: string,
): Promise<void> {
  const mirror = await world.start('mirror', program, { kind: 'none' }, `https://${host}`);
  const names = ['multi', 'single-oci'].map((name) => `origin.example/${repository}/${name}:1`);
  const through = await world.inspect(names, `proxies = ["origin.example=${mirror.host}"]\n`);
  t.equal(through.code, 0, through.text);
  t.same(written(through.results[0]), ['linux/amd64', 'linux/arm/v7', 'linux/arm64']);
  t.same(written(through.results[1]), ['linux/arm64']);
  t.equal(through.results[0]?.endpoint, mirror.host);
}

/** Without credentials and with wrong ones: exit code 1, `unauthorized`, and no password in the output. */
async function refused(t: Test, world: World, host: string, repository: string): Promise<void> {
  const image = `${host}/${repository}/multi:1`;
  const none = await world.inspect([world.login(), image]);
  t.equal(none.code, 1, none.text);
  t.equal(none.results[0]?.error?.code, 'unauthorized', none.text);
  const auth = Buffer.from(`${user.username}:not-the-password`).toString('base64');
  const answer = await world.inspect([world.login({ [host]: { auth } }), '--verbose', image]);
  t.equal(answer.code, 1);
  t.equal(answer.results[0]?.error?.code, 'unauthorized', answer.text);
  t.notMatch(answer.text, /not-the-password/);
  t.notOk(answer.text.includes(auth));
}
