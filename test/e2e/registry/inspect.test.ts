/** `archwright inspect` with real registries and TLS finds what was pushed: every format, every way to log in, and mirrors. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { run } from '../../cmd/run.ts';
import { createCa } from '../../support/certificates.ts';
import {
  helmChart,
  image,
  index,
  multiArch,
  platformOf,
  type Content,
} from '../../support/registry/content.ts';
import { debianProgram } from '../programs/debian.ts';
import { distributionProgram } from '../programs/helm.ts';
import { push } from './push.ts';
import { directoryOf, htpasswd, startRegistry, type Auth } from './servers.ts';
import { startTokenServer } from './token-server.ts';

const user = { username: 'pusher', password: 'pass:word-of-the-test' };
const two = ['linux/amd64', 'linux/arm64'];
const three = ['linux/amd64', 'linux/arm/v7', 'linux/arm64'];
const entryOf = (platform: string) => ({ content: image(platform), platform: platformOf(platform) });
const inner = entryOf('linux/ppc64le');

const images: Readonly<Record<string, readonly [platforms: readonly string[], Content]>> = {
  multi: [three, multiArch(three)],
  list: [three, multiArch(three, { flavor: 'docker' })],
  'single-oci': [['linux/arm64'], image('linux/arm64')],
  'single-docker': [['linux/s390x'], image('linux/s390x', { flavor: 'docker' })],
  nested: [
    ['linux/amd64', 'linux/ppc64le'],
    index([entryOf('linux/amd64'), { ...inner, content: index([inner]) }]),
  ],
  attested: [two, multiArch(two, { attestations: true })],
  artifact: [[], helmChart()],
};

const programs = {
  'docker-registry': () => debianProgram('docker-registry'),
  distribution: distributionProgram,
};

for (const [name, find] of Object.entries(programs))
  void t.test(`${name}: anonymous, htpasswd and tokens, and pull-through mirrors`, async (t) => {
    const directory = directoryOf(t);
    const ca = await createCa('registry test CA');
    const caFile = join(directory, 'ca.crt');
    writeFileSync(caFile, ca.cert);
    /** All but mirrors have one storage. */
    const start = async (name: string, auth: Auth, upstream?: string, program = find()) => {
      const { host, stop } = await startRegistry({
        program,
        directory: join(directory, name),
        data: join(directory, upstream === undefined ? 'data' : `${name}-data`),
        tls: await ca.issue({ cn: 'registry', ip: ['127.0.0.1'] }),
        ca: ca.cert,
        auth,
        ...(upstream !== undefined && { upstream: { remoteurl: upstream, ...user } }),
      });
      t.teardown(stop);
      return host;
    };
    /** @param config a docker configuration; empty: there is none */
    const inspect = async (names: readonly string[], config: string, settings = '') => {
      const file = join(directory, 'archwright.toml');
      writeFileSync(file, `caFiles = [${JSON.stringify(caFile)}]\n${settings}`);
      const login = join(directory, config === '' ? 'no-login.json' : 'login.json');
      if (config !== '') writeFileSync(login, config);
      const flags = ['--config', file, '--docker-config', login];
      const { code, out, err } = await run(['inspect', '--output', 'json', '--verbose', ...flags, ...names]);
      return { code, text: out + err, results: (JSON.parse(out) as { results: ImageFacts[] }).results };
    };
    const compare = async (prefix: string, config: string): Promise<void> => {
      for (const isByDigest of [false, true]) {
        const names = Object.entries(images).map(
          ([name, [, { digest }]]) => `${prefix}/${name}${isByDigest ? `@${digest}` : ':1'}`,
        );
        const { code, results, text } = await inspect(names, config);
        t.equal(code, 1, 'an artifact is no image');
        for (const [at, [name, [platforms, { digest, mediaType }]]] of Object.entries(images).entries()) {
          const facts = results[at];
          t.strictSame(
            [writtenIn(facts), facts?.digest, facts?.mediaType],
            [platforms, digest, mediaType],
            name,
          );
          t.equal(facts?.error?.code, name === 'artifact' ? 'not-an-image' : undefined, text);
        }
      }
    };
    /** Without credentials and with wrong ones: no facts, and no password in the output. */
    const refuses = async (host: string): Promise<void> => {
      const wrong = dockerConfig(host, 'not-the-password');
      for (const config of ['', wrong]) {
        const { code, results, text } = await inspect([`${host}/team/multi:1`], config);
        t.strictSame([code, results[0]?.error?.code], [1, 'unauthorized'], text);
        t.notMatch(text, /not-the-password/);
        t.notOk(text.includes(Buffer.from(`${user.username}:not-the-password`).toString('base64')));
      }
    };
    /** A mirror in `proxies` stands in for an unreachable registry. */
    const throughMirror = async (t: Test, host: string, program: string): Promise<void> => {
      const mirror = await start(`mirror of ${host}`, { kind: 'none' }, `https://${host}`, program);
      const names = ['multi', 'single-oci'].map((name) => `origin.example/team/${name}:1`);
      const { results, text } = await inspect(names, '', `proxies = ["origin.example=${mirror}"]\n`);
      t.strictSame(results.map(writtenIn), [three, ['linux/arm64']], text);
      t.equal(results[0]?.endpoint, mirror);
    };

    const open = await start('open', { kind: 'none' });
    for (const repository of ['team', 'open'])
      for (const [name, [, content]] of Object.entries(images))
        await push({ host: open, ca: ca.cert }, `${repository}/${name}`, '1', content);
    await compare(`${open}/open`, '');
    const missing = await inspect([`${open}/open/multi:none`], '');
    t.strictSame([missing.code, missing.results[0]?.error?.code], [1, 'not-found']);
    await throughMirror(t, open, find());

    const basic = await start('basic', { kind: 'htpasswd', line: htpasswd(user.username, user.password) });
    await compare(`${basic}/team`, dockerConfig(basic));
    await refuses(basic);
    // docker-registry 2.8 cannot log in to a registry with Basic, so the mirror is always the newer one.
    await throughMirror(t, basic, distributionProgram());

    const [service, issuer] = ['registry.test', 'token.test'];
    const signer = await ca.issue({ cn: 'signer' });
    const tokens = await startTokenServer({
      tls: await ca.issue({ cn: 'token', ip: ['127.0.0.1'] }),
      signer,
      issuer,
      service,
      users: { [user.username]: user.password },
      publicPrefix: 'open/',
    });
    t.teardown(() => tokens.close());
    const token = await start('token', { kind: 'token', realm: tokens.realm, service, issuer, signer });
    await compare(`${token}/team`, dockerConfig(token));
    const [anonymous] = (await inspect([`${token}/open/multi:1`], '')).results;
    t.strictSame([writtenIn(anonymous), anonymous?.credentialSource], [three, 'anonymous']);
    await refuses(token);
  });

/** A docker configuration with a login of the user. */
function dockerConfig(host: string, password = user.password): string {
  const auth = Buffer.from(`${user.username}:${password}`).toString('base64');
  return JSON.stringify({ auths: { [host]: { auth } } });
}

/** Platforms as `os/architecture[/variant]`, sorted. */
function writtenIn(facts: ImageFacts | undefined): readonly string[] {
  return (facts?.platforms ?? [])
    .map(({ os, architecture, variant }) => [os, architecture, variant].filter(Boolean).join('/'))
    .sort();
}
