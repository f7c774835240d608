/** `archwright inspect` with real registries, clients and TLS: its output equals what skopeo and crane read back. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createCa, type TestCa } from '../../support/certificates.ts';
import { debianProgram } from '../programs/debian.ts';
import { craneProgram, distributionProgram } from '../programs/helm.ts';
import { createClients, htpasswd, type Clients } from './clients.ts';
import {
  attestation,
  helmChart,
  index,
  platformOf,
  type Content,
  type IndexEntry,
} from '../../support/registry/content.ts';
import { unpackable, unpackableIndex, writeLayout } from '../layout.ts';
import { inspect, written } from './program.ts';
import { startRegistry, type Auth, type RunningRegistry } from './servers.ts';
import { startTokenServer } from './token-server.ts';

const user = { username: 'pusher', password: 'pass:word-of-the-test' };
const service = 'registry.test';
const issuer = 'token.test';

interface Pushed {
  readonly name: string;
  readonly how: 'skopeo' | 'skopeo v2s2' | 'crane';
  /** As written into the image. The client must read the same. */
  readonly platforms: readonly string[];
  readonly content: Content;
}

const [amd64, arm64, ppc64le] = ['linux/amd64', 'linux/arm64', 'linux/ppc64le'].map((platform) => ({
  content: unpackable(platform),
  platform: platformOf(platform),
})) as [IndexEntry, IndexEntry, IndexEntry];
const three = ['linux/amd64', 'linux/arm/v7', 'linux/arm64'];
const multi = unpackableIndex(three);

const images: readonly Pushed[] = [
  { name: 'multi', how: 'skopeo', platforms: three, content: multi },
  { name: 'list', how: 'skopeo v2s2', platforms: three, content: multi },
  { name: 'single-oci', how: 'skopeo', platforms: ['linux/arm64'], content: arm64.content },
  {
    name: 'single-docker',
    how: 'skopeo v2s2',
    platforms: ['linux/s390x'],
    content: unpackable('linux/s390x'),
  },
  {
    name: 'nested',
    how: 'crane',
    platforms: ['linux/amd64', 'linux/ppc64le'],
    content: index([amd64, { content: index([ppc64le]) }]),
  },
  {
    name: 'attested',
    how: 'crane',
    platforms: ['linux/amd64', 'linux/arm64'],
    content: index([amd64, arm64, attestation(amd64.content), attestation(arm64.content)]),
  },
  { name: 'artifact', how: 'crane', platforms: [], content: helmChart() },
];

/** Debian's registry 2.8, and version 3. */
const programs = {
  'docker-registry': () => debianProgram('docker-registry'),
  distribution: distributionProgram,
};
type RegistryProgram = keyof typeof programs;

interface World {
  readonly ca: TestCa;
  readonly directory: string;
  readonly config: string;
  readonly start: (
    name: string,
    program: RegistryProgram,
    auth: Auth,
    upstream?: string,
  ) => Promise<RunningRegistry>;
  readonly clients: (name: string, host: string) => Clients;
}

async function createWorld(t: Test): Promise<World> {
  const directory = t.testdir();
  const ca = await createCa('registry test CA');
  const tls = await ca.issue({ cn: 'registry', ip: ['127.0.0.1'] });
  const caFile = join(directory, 'ca.crt');
  writeFileSync(caFile, ca.cert);
  const config = join(directory, 'archwright.toml');
  writeFileSync(config, `caFiles = [${JSON.stringify(caFile)}]\n`);
  return {
    ca,
    directory,
    config,
    start: async (name, program, auth, upstream) => {
      const registry = await startRegistry({
        program: programs[program](),
        directory: join(directory, name),
        tls,
        ca: ca.cert,
        auth,
        ...(upstream === undefined ? {} : { upstream: { url: upstream, ...user } }),
      });
      t.teardown(() => registry.stop());
      return registry;
    },
    clients: (name, host) =>
      createClients({
        skopeo: debianProgram('skopeo'),
        crane: craneProgram(),
        directory: join(directory, `login-${name}`),
        caFile,
        logins: { [host]: user },
      }),
  };
}

async function push(world: World, clients: Clients, host: string, repository: string): Promise<void> {
  for (const image of images) {
    const directory = join(world.directory, 'layouts', `${host.replace(':', '-')}-${repository}`, image.name);
    writeLayout(directory, image.content);
    const target = `${host}/${repository}/${image.name}:1`;
    if (image.how === 'crane') await clients.crane(directory, target);
    else await clients.skopeo(directory, target, image.how === 'skopeo v2s2' ? 'v2s2' : 'oci');
  }
}

/** Compares every image, by tag and by digest, with what the client reads back. */
async function compare(t: Test, clients: Clients, prefix: string, args: readonly string[]): Promise<void> {
  const names = images.map(({ name }) => `${prefix}/${name}:1`);
  const said = await Promise.all(names.map((name) => clients.said(name)));
  const byDigest = names.map((name, index) => `${name.slice(0, -2)}@${said[index]?.digest ?? ''}`);
  const byTag = await inspect([...args, ...names]);
  const again = await inspect([...args, ...byDigest]);
  t.equal(byTag.code, 1, 'an artifact is no image');
  for (const [index, image] of images.entries()) {
    const client = said[index];
    t.same(client?.platforms, image.platforms, `${image.name}: what was pushed is what the client reads`);
    for (const facts of [byTag.results[index], again.results[index]]) {
      t.same(written(facts), client?.platforms, `${image.name}: platforms`);
      t.equal(facts?.digest, client?.digest, `${image.name}: digest`);
      t.equal(facts?.mediaType, client?.mediaType, `${image.name}: media type`);
      t.equal(
        facts?.error?.code,
        image.name === 'artifact' ? 'not-an-image' : undefined,
        `${image.name}: error`,
      );
    }
  }
}

for (const program of Object.keys(programs) as RegistryProgram[]) {
  void t.test(`${program}: anonymous, and a pull-through mirror of it`, async (t) => {
    const world = await createWorld(t);
    const { host } = await world.start('open', program, { kind: 'none' });
    const clients = world.clients('open', host);
    await push(world, clients, host, 'open');
    await compare(t, clients, `${host}/open`, ['--config', world.config]);
    const missing = await inspect(['--config', world.config, `${host}/open/multi:none`]);
    t.equal(missing.code, 1);
    t.equal(missing.results[0]?.error?.code, 'not-found');
    await throughMirror(t, world, program, host, 'open');
  });

  void t.test(`${program}: htpasswd, and a pull-through mirror of it`, async (t) => {
    const world = await createWorld(t);
    const auth = { kind: 'htpasswd', line: htpasswd(user.username, user.password) } as const;
    const { host } = await world.start('basic', program, auth);
    const clients = world.clients('basic', host);
    await push(world, clients, host, 'team');
    const flags = ['--config', world.config];
    await compare(t, clients, `${host}/team`, [...flags, '--docker-config', clients.login]);
    await refused(t, world, host, 'team');

    // docker-registry 2.8 cannot log in to a registry that wants Basic, so here the mirror is always the newer one.
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
    const flags = ['--config', world.config];
    await compare(t, clients, `${host}/team`, [...flags, '--docker-config', clients.login]);
    const open = await inspect([
      ...flags,
      '--docker-config',
      join(world.directory, 'no-login'),
      `${host}/open/multi:1`,
    ]);
    t.equal(open.code, 0, open.text);
    t.equal(open.results[0]?.credentialSource, 'anonymous');
    await refused(t, world, host, 'team');
  });
}

/** A mirror named in `proxies` answers for a registry that cannot be reached itself. */
async function throughMirror(
  t: Test,
  world: World,
  program: RegistryProgram,
  host: string,
  repository: string,
): Promise<void> {
  const mirror = await world.start('mirror', program, { kind: 'none' }, `https://${host}`);
  const config = join(world.directory, 'mirror.toml');
  const caFiles = JSON.stringify([join(world.directory, 'ca.crt')]);
  writeFileSync(config, `caFiles = ${caFiles}\nproxies = ["origin.example=${mirror.host}"]\n`);
  const through = await inspect([
    '--config',
    config,
    `origin.example/${repository}/multi:1`,
    `origin.example/${repository}/single-oci:1`,
  ]);
  t.equal(through.code, 0, through.text);
  t.same(written(through.results[0]), ['linux/amd64', 'linux/arm/v7', 'linux/arm64']);
  t.same(written(through.results[1]), ['linux/arm64']);
  t.equal(through.results[0]?.endpoint, mirror.host);
}

/** Without credentials and with wrong ones: exit code 1, `unauthorized`, and no password in anything that was printed. */
async function refused(t: Test, world: World, host: string, repository: string): Promise<void> {
  const image = `${host}/${repository}/multi:1`;
  const none = await inspect([
    '--config',
    world.config,
    '--docker-config',
    join(world.directory, 'no-login'),
    image,
  ]);
  t.equal(none.code, 1, none.text);
  t.equal(none.results[0]?.error?.code, 'unauthorized', none.text);
  const wrong = join(world.directory, 'wrong.json');
  const auth = Buffer.from(`${user.username}:not-the-password`).toString('base64');
  writeFileSync(wrong, JSON.stringify({ auths: { [host]: { auth } } }));
  const answer = await inspect(['--config', world.config, '--docker-config', wrong, '--verbose', image]);
  t.equal(answer.code, 1);
  t.equal(answer.results[0]?.error?.code, 'unauthorized', answer.text);
  t.notMatch(answer.text, /not-the-password/);
  t.notOk(answer.text.includes(auth));
}
