/** What `npm run vectors` does not compare with the library of CRI-O. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { loadCrioConf, defaultCrioConf, type CrioConf } from '../../../daemon/crio/crio-conf.ts';
import { NodeFiles } from '../../../daemon/node-files.ts';
import { like } from '../../support/like.ts';
import { writeFiles } from '../../support/write-files.ts';
import { loadRegistries, parseRegistriesConf } from '../../../daemon/crio/registries-conf.ts';
import { parsePolicy, loadPolicyFile, rejectingRule, rejectionOf } from '../../../daemon/crio/policy.ts';
import { parseReference } from '../../../src/images/references/reference.ts';
import { loadCertificates } from '../../../daemon/crio/certs-d.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { createCa } from '../../support/certificates.ts';

const main = '/etc/crio/crio.conf';
const image = (...lines: readonly string[]): string => ['[crio.image]', ...lines, ''].join('\n');
const auth = (path: string): string => image(`global_auth_file = "${path}"`);

function nodeWith(t: Test, content: Readonly<Record<string, string>>) {
  const root = t.testdir();
  writeFiles(root, content);
  return { root, files: new NodeFiles(root) };
}

const read = (t: Test, content: Readonly<Record<string, string>>) => loadCrioConf(nodeWith(t, content).files);

t.test('files in directories below crio.conf.d count too', async (t) => {
  const found = await read(t, {
    [main]: auth('/main'),
    '/etc/crio/crio.conf.d/a/x.conf.bak': auth('/a'),
    '/etc/crio/crio.conf.d/z': image('signature_policy = "/p"'),
  });
  like(t, found, { globalAuthFile: '/a', signaturePolicy: '/p', shortNameMode: undefined });
  t.strictSame(found.files, [main, '/etc/crio/crio.conf.d/a/x.conf.bak', '/etc/crio/crio.conf.d/z']);
  const unnamed = await read(t, {
    '/etc/systemd/system/crio.service': '[Service]\nExecStart=/usr/bin/crio --config=\n',
    '/etc/crio/crio.conf.d/z': auth('/z'),
  });
  t.strictSame(unnamed.files, ['/etc/crio/crio.conf.d/z']);
});

t.test('flags and variables of the service override the files', async (t) => {
  const found = await read(t, {
    '/usr/lib/systemd/system/crio.service':
      '[Service]\nEnvironmentFile=-/etc/sysconfig/crio\nEnvironment=XDG_RUNTIME_DIR=/run/user/0\nExecStart=/usr/bin/crio $CRIO_CONFIG_OPTIONS --global-auth-file=/flag\n',
    '/etc/sysconfig/crio':
      'CRIO_CONFIG_OPTIONS="-c /etc/other.conf --config-dir /etc/other.d --registries-conf /r.conf"\nCONTAINER_GLOBAL_AUTH_FILE=/variable\nCONTAINER_SIGNATURE_POLICY=/policy\nHOME=/home/crio\n',
    '/etc/other.conf': image('short_name_mode = "disabled"'),
    '/etc/other.d/x': auth('/file'),
    [main]: auth('/not read'),
  });
  like(t, found, {
    files: ['/etc/other.conf', '/etc/other.d/x'],
    globalAuthFile: '/flag',
    signaturePolicy: '/policy',
    shortNameMode: 'disabled',
    registriesConf: '/r.conf',
    home: '/home/crio',
    environment: { XDG_RUNTIME_DIR: '/run/user/0' },
  });
});

t.test('files with which CRI-O does not start', async (t) => {
  for (const text of ['[[crio]]\n', 'crio = 1\n']) await t.rejects(read(t, { [main]: text }), /crio\.conf: /);
  const service = '[Service]\nEnvironment=CONTAINER_CONFIG=/none.conf\n';
  const named = { '/etc/systemd/system/crio.service': service };
  await t.rejects(read(t, named), /none.conf: there is no such file/);
});

const registry = (...lines: readonly string[]): string => `[[registry]]\n${lines.join('\n')}\n`;
const mirror = (...lines: readonly string[]): string =>
  `[[registry.mirror]]\nlocation = "m"\n${lines.join('\n')}\n`;
const location = 'location = "a.test"';
const again = registry('prefix = "b.test"', location, 'blocked = true');
const byDigest = registry(location, 'mirror-by-digest-only = true');
const version1 = '[registries.block]\nregistries = ["a.test"]';

const refused: readonly (readonly [name: string, text: string, message: RegExp])[] = [
  ['a registry that is no table', 'registry = ["a.test"]', /registry must be a list of tables/],
  ['a prefix without location', registry('prefix = "a.test"'), /"a\.test" has no location/],
  ['an unknown use', registry(location) + mirror('pull-from-mirror = "x"'), /all, digest-only or tag-only/],
  ['a use of the registry itself', registry(location, 'pull-from-mirror = "all"'), /is for mirrors/],
  ['contradictory uses', byDigest + mirror('pull-from-mirror = "all"'), /exclude each other/],
  ['contradictory registries', registry(location) + again, /"a\.test" is defined .* conflicting blocked/],
  ['more mirrors than any registry has', registry(location) + mirror().repeat(101), /100 mirrors/],
  ['an alias of another type', '[aliases]\na = 1', /aliases\."a" must be a string/],
  ['an alias for localhost', '[aliases]\n"localhost/x" = "b.test/x"', /"localhost\/x" names a registry/],
  ['both versions', `short-name-mode = "disabled"\n${version1}`, /mixes keys/],
  ['credential helpers beside version 1', `credential-helpers = ["a"]\n${version1}`, /mixes keys/],
  ['an alias for a full name', '[aliases]\n"a.test/x" = "b.test/x"', /"a\.test\/x" names a registry/],
];

for (const [name, text, message] of refused) {
  t.test(`${name} is refused`, async (t) => {
    t.throws(() => parseRegistriesConf(text), { name: 'InvalidConfig', message });
  });
}

t.test('the lists of version 1 are flags of registries', async (t) => {
  const text =
    '[registries.insecure]\nregistries = ["a.test", "b.test"]\n[registries.block]\nregistries = ["b.test", "c.test"]';
  const flags = parseRegistriesConf(text).registries.map(({ prefix, insecure, blocked }) =>
    [prefix, insecure && 'insecure', blocked && 'blocked'].filter(Boolean).join(' '),
  );
  t.strictSame(flags, ['a.test insecure', 'b.test insecure blocked', 'c.test blocked']);
});

t.test('drop-ins that are directories, or links to nothing, are skipped', async (t) => {
  const { root, files } = nodeWith(t, {});
  mkdirSync(join(root, '/etc/containers/registries.conf.d/dir.conf'), { recursive: true });
  symlinkSync('/nowhere', join(root, '/etc/containers/registries.conf.d/link.conf'));
  t.strictSame((await loadRegistries(defaultCrioConf, files)).files, []);
});

t.test('the files of root’s home, and those that flags name, come first', async (t) => {
  const { files } = nodeWith(t, {
    '/root/.config/containers/registries.conf': registry('location = "own.test"'),
    '/r.conf': registry('location = "flag.test"'),
    '/d/x.conf': '',
  });
  const prefixes = async (changes: Partial<CrioConf> = {}) =>
    (await loadRegistries({ ...defaultCrioConf, ...changes }, files)).registries.map(({ prefix }) => prefix);
  t.strictSame(await prefixes(), ['own.test']);
  t.strictSame(await prefixes({ registriesConf: '/r.conf', registriesConfDir: '/d' }), ['flag.test']);
  await t.rejects(prefixes({ registriesConf: '/none' }), { where: '/none', message: /no such file/ });
});

const accept = [{ type: 'insecureAcceptAnything' }];
const reject = [{ type: 'reject' }];
const signed = [{ type: 'sigstoreSigned', keyPath: '/k' }];
const imageOf = (image: string) => parseReference(image).text;
const parse = (policy: unknown) => parsePolicy(Buffer.from(JSON.stringify(policy)));

t.test('all requirements of a list must allow', async (t) => {
  const rule = (requirements: unknown) => rejectingRule(parse({ default: requirements }), imageOf('x'));
  t.equal(rule([...signed, ...reject]), 'default');
  t.equal(rule([...accept, ...signed]), undefined);
});

t.test('documents that fail every pull', async (t) => {
  const documents = [
    '{}',
    '{"default":[{"type":"reject","x":1}]}',
    '{"default":[{"type":"reject"}],"more":1}',
    '{"default":[{"type":"reject"}],"transports":{"atomic":{"x":[]}}}',
    '{"default":[{"type":"reject"}],"transports":null}',
  ];
  for (const document of documents) t.throws(() => parsePolicy(Buffer.from(document)), document);
});

async function rejection(t: Test, content: Readonly<Record<string, unknown>>, signaturePolicy = '') {
  const texts = Object.entries(content).map(([path, value]) => [path, JSON.stringify(value)] as const);
  const { files } = nodeWith(t, Object.fromEntries(texts));
  const policy = await loadPolicyFile({ ...defaultCrioConf, signaturePolicy }, files);
  return policy ? rejectionOf(imageOf('nginx'), policy)?.message : 'missing';
}

t.test('which file is used', async (t) => {
  const etc = '/etc/containers/policy.json';
  const own = '/root/.config/containers/policy.json';
  const files = { [etc]: { default: reject }, [own]: { default: accept }, '/p.json': { default: reject } };
  t.equal(await rejection(t, files), undefined, 'that of root’s home');
  const system = await rejection(t, { [etc]: { default: reject } });
  t.match(system, `${etc}: default rejects docker.io/library/nginx`);
  t.match(await rejection(t, files, '/p.json'), '/p.json: default rejects');
  t.equal(await rejection(t, files, '/none.json'), 'missing');
});

t.test('a namespace may have a policy that allows the image', async (t) => {
  const refusing = { '/etc/containers/policy.json': { default: reject } };
  const team = { '/etc/crio/policies/team.json': { default: accept } };
  t.equal(await rejection(t, { ...refusing, ...team }), undefined);
  t.match(await rejection(t, { ...refusing, '/etc/crio/policies/README': 1 }), /default rejects/);
});

const ca = await createCa();
const pair = await ca.issue({ cn: 'client', client: true });
const pem = ca.cert.trim();

function nodeWithCertificates(t: Test, content: Readonly<Record<string, string>>) {
  const { root, files } = nodeWith(t, content);
  const find = async (host: string) => {
    const found = (await loadCertificates({ home: '/root' }, files)).get(host);
    if (found instanceof Error) throw found;
    return found;
  };
  return { root, files, find };
}

const etc = '/etc/containers/certs.d';

t.test('the directory in root’s home comes first', async (t) => {
  const { find, root, files } = nodeWithCertificates(t, { [`${etc}/a.test:5000/ca.crt`]: ca.cert });
  t.strictSame((await find('a.test:5000'))?.ca, [pem]);
  const own = '/root/.config/containers/certs.d';
  const watched = [own, etc, `${etc}/a.test:5000`, '/etc/docker/certs.d'];
  t.strictSame([...files.dirs], watched, 'all are watched');
  mkdirSync(join(root, 'root/.config/containers/certs.d/a.test:5000'), { recursive: true });
  t.strictSame((await find('a.test:5000'))?.ca, []);
});

t.test('a certificate goes with the key of its name', async (t) => {
  const { find } = nodeWithCertificates(t, {
    [`${etc}/a.test/c.cert`]: pair.cert,
    [`${etc}/a.test/c.key`]: pair.key,
  });
  const found = (await find('a.test'))?.client.map(({ certificate, key }) => [certificate, reveal(key)]);
  t.strictSame(found, [[pair.cert, pair.key]]);
});

t.test('links stay inside the root of the node', async (t) => {
  const { find, root } = nodeWithCertificates(t, {
    '/etc/pki/ours.pem': ca.cert,
    [`${etc}/a.test/README`]: ca.cert,
  });
  symlinkSync('/etc/pki/ours.pem', join(root, etc, 'a.test/ca.crt'));
  t.strictSame((await find('a.test'))?.ca, [pem]);
});

t.test('what fails the endpoint', async (t) => {
  for (const [what, file, content] of [
    ['a key is missing', '/c.cert', pair.cert],
    ['a certificate is missing', '/c.key', pair.key],
    ['it is a file', '', ''],
  ] as const) {
    const { find } = nodeWithCertificates(t, { [`${etc}/a.test${file}`]: content });
    await t.rejects(find('a.test'), { name: 'ConfigFileError' }, what);
    t.equal(await find('b.test'), undefined, 'other hosts are not affected');
  }
});
