/** `inspect --host-root` finds client certificates in each place of the node's containerd configuration. */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createCa } from '../../support/certificates.ts';
import { writeFiles } from '../../support/write-files.ts';
import { debianProgram } from '../programs/debian.ts';
import { unpackableIndex, writeLayout } from '../layout.ts';
import { copyImage, inspect, written } from './clients.ts';
import { directoryOf, startRegistry } from './servers.ts';

type Files = Readonly<Record<string, string>>;

const server = await createCa('registry CA');
const clients = await createCa('client CA');
const right = await clients.issue({ cn: 'node', client: true, server: false });
const wrong = await (await createCa('another CA')).issue({ cn: 'node', client: true, server: false });

const directory = directoryOf(t);
const registry = await startRegistry({
  program: debianProgram('docker-registry'),
  directory: join(directory, 'registry'),
  tls: await server.issue({ cn: 'registry', ip: ['127.0.0.1'] }),
  ca: server.cert,
  clients: { ca: clients.cert, probe: right },
  auth: { kind: 'none' },
});
t.teardown(() => registry.stop());

function write(root: string, files: Files): string {
  writeFiles(root, files);
  return root;
}

/** As docker has them. */
const certificateFiles = { 'ca.crt': server.cert, 'client.cert': right.cert, 'client.key': right.key };
const layout = join(directory, 'layout');
writeLayout(layout, unpackableIndex(['linux/amd64', 'linux/s390x']));
const login = `--dest-cert-dir=${write(join(directory, 'skopeo'), certificateFiles)}`;
for (const repository of ['team/app', 'library/app'])
  await copyImage(`oci:${layout}:1`, `${registry.host}/${repository}:1`, [login]);

const config = 'etc/containerd/config.toml';
const cri = 'plugins."io.containerd.grpc.v1.cri".registry';
const certsD = 'etc/containerd/certs.d';
const hosts = `${certsD}/${registry.host}`;
const escaped = hosts.replace(/:(\d+)$/, '_$1_');
const url = `https://${registry.host}`;
const pair = 'ca = "ca.pem"\nclient = [["node.pem", "node.key"]]\n';

const pem = (dir: string, { cert, key } = right): Files => ({
  [`${dir}/ca.pem`]: server.cert,
  [`${dir}/node.pem`]: cert,
  [`${dir}/node.key`]: key,
});
const hostsToml = (dir: string, text: string, client = right): Files => ({
  [`${dir}/hosts.toml`]: `${text}\n${pair}`,
  ...pem(dir, client),
});

const nodes: Readonly<Record<string, readonly [Files, ...words: string[]]>> = {
  'hosts.toml of the registry': [hostsToml(hosts, `server = "${url}"`)],
  'hosts.toml in a directory whose name has no colon': [hostsToml(escaped, `[host."${url}"]`)],
  'certificate and key in one file': [
    {
      [`${hosts}/hosts.toml`]: `server = "${url}"\nca = ["/etc/pki/ca.pem"]\nclient = "both.pem"\n`,
      'etc/pki/ca.pem': server.cert,
      [`${hosts}/both.pem`]: `${right.cert}\n${right.key}`,
    },
  ],
  'files in the host directory, as docker has them': [
    Object.fromEntries(Object.entries(certificateFiles).map(([name, text]) => [`${hosts}/${name}`, text])),
  ],
  'a mirror of Docker Hub': [hostsToml(`${certsD}/docker.io`, `[host."${url}"]`), 'app:1'],
  'the deprecated tables of config.toml': [
    {
      [config]: `version = 2
[${cri}.mirrors."${registry.host}"]
endpoint = ["${url}"]
[${cri}.configs."${registry.host}".tls]
ca_file = "/etc/pki/ca.pem"
cert_file = "/etc/pki/node.pem"
key_file = "/etc/pki/node.key"
`,
      ...pem('etc/pki'),
    },
    '--containerd-version=1.7.24',
    `${registry.host}/team/app:1`,
  ],
};

const refused: Readonly<Record<string, Files>> = {
  'no certificate': {
    [`${hosts}/hosts.toml`]: `server = "${url}"\nca = "ca.pem"\n`,
    [`${hosts}/ca.pem`]: server.cert,
  },
  'a certificate of another authority': hostsToml(hosts, `server = "${url}"`, wrong),
  'a certificate for another registry only': {
    [`${hosts}/ca.crt`]: server.cert,
    ...hostsToml(`${certsD}/other.test`, 'server = "https://other.test"'),
  },
};

function ask(files: Files, words: readonly string[]): ReturnType<typeof inspect> {
  const withPath = { [config]: `version = 2\n[${cri}]\nconfig_path = "/${certsD}"\n`, ...files };
  const root = write(mkdtempSync(join(directory, 'node-')), withPath);
  return inspect(['--host-root', root, ...(words.length > 0 ? words : [`${registry.host}/team/app:1`])]);
}

for (const [name, [files, ...words]] of Object.entries(nodes)) {
  t.test(name, async (t) => {
    const { code, results, text } = await ask(files, words);
    t.equal(code, 0, text);
    t.same(written(results[0]), ['linux/amd64', 'linux/s390x']);
    t.equal(results[0]?.endpoint, registry.host);
    t.notMatch(text, /PRIVATE KEY/);
  });
}

for (const [name, files] of Object.entries(refused)) {
  t.test(`${name}: the error names hosts.toml`, async (t) => {
    const { code, results } = await ask(files, []);
    t.equal(code, 3);
    t.match(results[0]?.error, { code: 'unavailable', message: /client certificate.* in hosts\.toml/ });
  });
}
