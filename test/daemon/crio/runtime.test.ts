/** Endpoints of a node with CRI-O, from its files. Matching and rewriting are held by `npm run vectors`. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createCrio } from '../../../daemon/crio/runtime.ts';
import type { RuntimeOptions } from '../../../daemon/runtime.ts';
import { parseReference, shortNameOf } from '../../../src/images/references/reference.ts';
import { createCa } from '../../support/certificates.ts';
import { like } from '../../support/like.ts';
import { manualRefresh } from '../../support/manual-refresh.ts';
import { writeFiles } from '../../support/write-files.ts';

type Files = Readonly<Record<string, string>>;

const registriesConf = '/etc/containers/registries.conf';
const login = (host: string, user: string) => ({ [host]: { auth: btoa(`${user}:p`) } });

async function nodeWith(t: Test, files: Files, options: Partial<RuntimeOptions> = {}) {
  const root = t.testdir();
  writeFiles(root, files);
  const crio = await createCrio({ hostRoot: root, version: '1.36.3', ...manualRefresh, ...options });
  t.teardown(() => crio.close());
  const endpointsOf = async (image: string) => {
    const shortName = shortNameOf(image);
    const target = parseReference(image);
    return await crio.endpoints({ ...target, ...(shortName !== undefined && { shortName }) });
  };
  /** In short: `https://host/v2/path accepts own=user http why-refused`. */
  const shown = async (image: string) =>
    (await endpointsOf(image)).map((endpoint) =>
      [
        `${endpoint.base}/${endpoint.repository}`,
        endpoint.acceptsCredentials && 'accepts',
        endpoint.ownCredential && `own=${endpoint.ownCredential.credential.username}`,
        endpoint.httpFallback && endpoint.tls.skipVerify && 'http',
        endpoint.refusal?.message.replaceAll(root, ''),
        endpoint.ownFailure && 'no own credential',
      ]
        .filter(Boolean)
        .join(' '),
    );
  const write = async (changed: Files) => {
    writeFiles(root, changed);
    await crio.refresh();
  };
  return { root, crio, endpointsOf, shown, write };
}

const mirrored = `
[[registry]]
location = "docker.io"
  [[registry.mirror]]
  location = "mirror.test:5000/hub"
  insecure = true
`;

t.test('a node without files pulls from the registry itself', async (t) => {
  const { shown, endpointsOf, crio } = await nodeWith(t, {});
  t.strictSame(await shown('docker.io/nginx'), ['https://registry-1.docker.io/v2/library/nginx accepts']);
  like(t, await endpointsOf('corp.test/app'), [{ origin: 'default', namespaceParameter: false }]);
  t.strictSame(crio.report(), { runtime: { name: 'cri-o', version: '1.36.3' } });
  t.strictSame(crio.problems(), []);
});

t.test('files of OpenShift: pull secret, mirrors of digests and tags, search registries', async (t) => {
  const { shown, crio } = await nodeWith(t, {
    '/var/lib/kubelet/config.json': JSON.stringify({
      auths: { ...login('quay.io', 'pull'), ...login('mirror.test:5000', 'mirror') },
    }),
    '/etc/crio/crio.conf.d/00-default':
      '[crio.image]\nglobal_auth_file = "/var/lib/kubelet/config.json"\nshort_name_mode = "disabled"\n',
    [registriesConf]: `
unqualified-search-registries = ["registry.access.redhat.com", "docker.io"]
short-name-mode = ""
[[registry]]
  prefix = ""
  location = "quay.io/team"
  [[registry.mirror]]
    location = "mirror.test:5000/idms"
    pull-from-mirror = "digest-only"
  [[registry.mirror]]
    location = "mirror.test:5000/itms"
    insecure = true
    pull-from-mirror = "tag-only"
`,
    '/etc/containers/registries.conf.d/01-image-searchRegistries.conf':
      'unqualified-search-registries = ["quay.io"]\n',
  });
  const last = 'https://quay.io/v2/team/x accepts own=pull';
  t.strictSame(await shown('quay.io/team/x:1'), ['https://mirror.test:5000/v2/itms/x own=mirror http', last]);
  t.strictSame(await shown(`quay.io/team/x@sha256:${'a'.repeat(64)}`), [
    'https://mirror.test:5000/v2/idms/x own=mirror',
    last,
  ]);
  t.strictSame(await shown('app'), ['https://quay.io/v2/app own=pull']);
  t.strictSame(crio.problems(), []);
});

t.test('the kubelet’s credential goes to the registry that it was chosen for, and to no other', async (t) => {
  const { shown } = await nodeWith(t, {
    [registriesConf]: `
unqualified-search-registries = ["quay.io", "docker.io"]
[aliases]
"app" = "ghcr.io/team/app"
[[registry]]
prefix = "moved.test"
location = "elsewhere.test/a"
[[registry]]
prefix = "moved.test/whole/name"
location = "other.test/b"
`,
    '/etc/crio/crio.conf': '[crio.image]\nshort_name_mode = "disabled"\n',
  });
  t.strictSame(await shown('nginx'), [
    'https://quay.io/v2/nginx',
    'https://registry-1.docker.io/v2/library/nginx accepts',
  ]);
  t.strictSame(await shown('app'), ['https://ghcr.io/v2/team/app']);
  t.strictSame(await shown('moved.test/x'), ['https://elsewhere.test/v2/a/x']);
  t.strictSame(await shown('moved.test/whole/name'), ['https://other.test/v2/b']);
});

t.test('short names depend on the mode, which exists since 1.34', async (t) => {
  const files = { [registriesConf]: 'unqualified-search-registries = ["quay.io", "docker.io"]\n' };
  const enforcing = '[crio.image]\nshort_name_mode = "enforcing"\n';
  for (const [version, conf, count] of [
    ['1.33.5', enforcing, 2],
    ['1.34.0', '', 0],
    [undefined, '', 2],
    [undefined, enforcing, 0],
  ] as const) {
    const { endpointsOf } = await nodeWith(t, { ...files, '/etc/crio/crio.conf': conf }, { version });
    const found = endpointsOf('nginx');
    if (count > 0) t.equal((await found).length, count);
    else await t.rejects(found, { code: 'forbidden', message: /short_name_mode is enforcing.*2 search/ });
  }
  const { endpointsOf } = await nodeWith(t, {});
  await t.rejects(endpointsOf('nginx'), { code: 'forbidden', message: /no unqualified-search-registries/ });
  await t.rejects(endpointsOf('[::1]:5000/app'), { code: 'forbidden', message: /no complete reference/ });
});

t.test('what stops CRI-O at one endpoint is its refusal', async (t) => {
  const { shown, endpointsOf } = await nodeWith(t, {
    [registriesConf]: `
[[registry]]
location = "blocked.test"
blocked = true
  [[registry.mirror]]
  location = "m.test"
[[registry]]
location = "bad.test"
  [[registry.mirror]]
  location = "M.test/UP"
`,
    '/etc/docker/certs.d/m.test/client.cert': 'no key beside it',
    '/etc/containers/policy.json': JSON.stringify({
      default: [{ type: 'insecureAcceptAnything' }],
      transports: { docker: { 'rejected.test': [{ type: 'reject' }] } },
    }),
    '/root/.docker/config.json': 'no JSON',
  });
  const blocked = await shown('blocked.test/x');
  t.match(blocked[0], /^https:\/\/m\.test\/v2\/x the node's CRI-O cannot use m\.test: .*client\.cert/);
  t.match(blocked[1], /accepts the registry blocked\.test is blocked in \/etc\/containers\/registries\.conf/);
  t.match(blocked[1], /no own credential$/);
  t.match((await shown('bad.test/x'))[0], /cannot pull bad\.test\/x:latest/);
  t.match((await shown('rejected.test/x'))[0], /policy\.json: .*rejected\.test.* rejects/);
  like(t, await endpointsOf('rejected.test/x'), [{ refusal: { where: 'rejected.test' } }]);
});

t.test('a host that the author of a pod names is checked like one without a configuration', async (t) => {
  const { endpointsOf } = await nodeWith(t, {
    [registriesConf]: `
unqualified-search-registries = ["localhost:5000"]
[aliases]
"known" = "localhost:6000/known"
[[registry]]
prefix = "*.corp.test"
[[registry]]
location = "named.test:10250"
[[registry]]
location = "any.test"
`,
  });
  const cases = ['a.corp.test/x', 'named.test:10250/x', 'any.test:10250/x', 'other.test/x', 'app', 'known'];
  const origins = await Promise.all(
    cases.map(async (image) => (await endpointsOf(image)).map(({ origin }) => origin).join()),
  );
  t.strictSame(origins, ['default', registriesConf, 'default', 'default', registriesConf, registriesConf]);
});

t.test('a change counts at once; a broken file leaves the last good one in force', async (t) => {
  const { crio, shown, endpointsOf, write, root } = await nodeWith(t, {});
  const prints = [crio.fingerprint()];
  await write({ [registriesConf]: mirrored });
  prints.push(crio.fingerprint());
  t.equal((await shown('docker.io/nginx')).length, 2);
  await write({ '/etc/containers/registries.conf.d/x.conf': '[[registry]]\nlocation = 1\n' });
  t.equal((await shown('docker.io/nginx')).length, 2);
  like(t, crio.problems(), [
    {
      source: 'cri-o',
      origin: '/etc/containers/registries.conf.d/x.conf',
      message:
        /location must be a string; CRI-O would not start with it; the last good content stays in force/,
    },
  ]);
  t.equal(crio.fingerprint(), prints[1]);
  await write({ '/etc/crio/crio.conf': 'nothing' });
  like(t, crio.problems(), [{ origin: '/etc/crio/crio.conf' }]);
  t.equal((await shown('docker.io/nginx')).length, 2);
  rmSync(join(root, '/etc/crio/crio.conf'));
  rmSync(join(root, '/etc/containers/registries.conf.d/x.conf'));
  await write({ '/root/.docker/config.json': JSON.stringify({ auths: login('a.test', 'a') }) });
  t.strictSame(crio.problems(), []);
  prints.push(crio.fingerprint());
  const { cert } = await createCa();
  await write({ '/etc/containers/certs.d/docker.io/ca.crt': cert });
  prints.push(crio.fingerprint());
  const [, tls] = (await endpointsOf('docker.io/nginx')).map((each) => each.tls);
  like(t, tls, { ca: [cert.trim()], skipVerify: false }, 'certificates of the host as written');
  t.equal(new Set(prints).size, 4, 'credentials and certificates count too');
});

t.test('a file that is broken at the start: nothing is known of the node until it is mended', async (t) => {
  for (const file of ['/etc/crio/crio.conf', registriesConf]) {
    const { crio, endpointsOf, write } = await nodeWith(t, { [file]: 'nothing' });
    await t.rejects(endpointsOf('docker.io/nginx'), {
      code: 'unavailable',
      message: /CRI-O is unknown: .*conf: line 1 is not valid TOML/,
    });
    like(t, crio.problems(), [
      { origin: file, message: /nothing is used, and what CRI-O runs with is unknown/ },
    ]);
    t.strictSame(crio.report(), { runtime: { name: 'cri-o', version: '1.36.3' } }, 'its program is known');
    const version = (await crio.describe()).find(({ where }) => where === 'cri-o');
    t.equal(version?.what, 'version 1.36.3');
    await write({ [file]: '' });
    t.equal((await endpointsOf('docker.io/nginx')).length, 1);
    await write({ [file]: 'nothing' });
    t.equal((await endpointsOf('docker.io/nginx')).length, 1, 'now there is a last good content');
  }
});

t.test('broken aliases that podman has noted refuse short names only', async (t) => {
  const file = '/var/cache/containers/short-name-aliases.conf';
  const search = 'unqualified-search-registries = ["a.test"]\n';
  const { crio, shown, endpointsOf } = await nodeWith(t, {
    [registriesConf]: `${search}${mirrored}`,
    [file]: 'nothing',
  });
  t.equal((await shown('docker.io/nginx')).length, 2);
  await t.rejects(endpointsOf('nginx'), { code: 'forbidden', message: /short name nginx: .*aliases\.conf/ });
  like(t, crio.problems(), [{ origin: file, message: /not valid TOML; short names cannot be pulled/ }]);
});

t.test('a policy that is too large for lookups is reported', async (t) => {
  const file = '/etc/containers/policy.json';
  const { crio } = await nodeWith(t, {
    [file]: `{"default": [{"type": "insecureAcceptAnything"}]}${' '.repeat(1_048_576)}`,
  });
  like(t, crio.problems(), [{ origin: file, message: /^is larger than .*; pulls that need it fail/ }]);
});

t.test('auth files count only if the helpers of registries.conf include them', async (t) => {
  const files = { '/root/.docker/config.json': '{' };
  for (const [helpers, isRead] of [
    ['[]', true],
    ['["x", "containers-auth.json"]', true],
    ['["x"]', false],
  ] as const) {
    const conf = { [registriesConf]: `credential-helpers = ${helpers}\n` };
    const { crio } = await nodeWith(t, { ...files, ...conf });
    t.equal(crio.problems().length, isRead ? 1 : 0, helpers);
  }
});

t.test('why the version is unknown is said where people look, and is no problem of the source', async (t) => {
  const { crio } = await nodeWith(t, { '/usr/bin/crio': 'no program' }, { version: undefined });
  t.strictSame(crio.problems(), []);
  const version = (await crio.describe()).find(({ where }) => where === 'cri-o');
  t.match(version?.what, /unknown: \/usr\/bin\/crio: .*; without short_name_mode/);
});

t.test('the parts for agent --check', async (t) => {
  const { crio } = await nodeWith(t, {
    [registriesConf]:
      'unqualified-search-registries = ["a.test"]\n[aliases]\nx = "a.test/x"\n[[registry]]\nprefix = "p.test"\nlocation = "l.test"\nblocked = true\n',
    '/etc/crio/crio.conf.d/10-crio.conf': '[crio.image]\nglobal_auth_file = "/auth.json"\n',
    '/auth.json': '{',
    '/etc/docker/certs.d/a.test/ca.crt': (await createCa()).cert,
  });
  const parts = await crio.describe();
  like(
    t,
    parts.map(({ where, state, what }) => `${state} ${where}: ${what}`),
    [
      'used /etc/crio/crio.conf.d/10-crio.conf: settings of CRI-O',
      'used cri-o: version 1.36.3',
      'used /etc/containers/registries.conf: registries: 1',
      'used short names: enforcing, aliases: 1, search registries: a.test',
      'used /etc/containers/registries.conf: blocked has no effect on p.test, whose location is another',
      'used /etc/docker/certs.d/a.test: CAs: 1, client certificates: 0',
      /^left-out \/auth\.json: .*; pulls that need it fail on this node$/,
    ],
  );
  t.match(crio.description(), /^\/etc\/containers\/registries\.conf of CRI-O 1\.36\.3$/);
});
