/**
 * Debian's docker-registry with `http.tls.clientcas` requires a client certificate of one authority. `archwright inspect --host-root` must
 * find it in each place of the node's containerd configuration.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { createCa, type PemPair } from '../../support/certificates.ts';
import { debianProgram } from '../programs/debian.ts';
import { unpackableIndex, writeLayout } from '../layout.ts';
import { inspect, written } from './program.ts';
import { startRegistry } from './servers.ts';

const server = await createCa('registry CA');
const clients = await createCa('client CA');
const right = await clients.issue({ cn: 'node', client: true, server: false });
const wrong = await (await createCa('another CA')).issue({ cn: 'node', client: true, server: false });

const directory = mkdtempSync(join(tmpdir(), 'archwright-e2e-'));
t.teardown(() => rmSync(directory, { recursive: true, force: true }));

const registry = await startRegistry({
  program: debianProgram('docker-registry'),
  directory: join(directory, 'registry'),
  tls: await server.issue({ cn: 'registry', ip: ['127.0.0.1'] }),
  ca: server.cert,
  clients: { ca: clients.cert, probe: right },
  auth: { kind: 'none' },
});
t.teardown(() => registry.stop());

/** Writes files below a directory; gives the directory back. */
function write(root: string, files: Readonly<Record<string, string>>): string {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

push();

/** By skopeo, which has the certificate too. */
function push(): void {
  const certificates = write(join(directory, 'skopeo'), {
    'ca.crt': server.cert,
    'client.cert': right.cert,
    'client.key': right.key,
  });
  const layout = join(directory, 'layout');
  writeLayout(layout, unpackableIndex(['linux/amd64', 'linux/s390x']));
  for (const repository of ['team/app', 'library/app']) {
    execFileSync(debianProgram('skopeo'), [
      '--insecure-policy',
      'copy',
      '--quiet',
      '--all',
      `--dest-cert-dir=${certificates}`,
      `oci:${layout}:1`,
      `docker://${registry.host}/${repository}:1`,
    ]);
  }
}

const certsD =
  'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry]\nconfig_path = "/etc/containerd/certs.d"\n';
const hosts = `etc/containerd/certs.d/${registry.host}`;
const escaped = `etc/containerd/certs.d/${registry.host.replace(/:(\d+)$/, '_$1_')}`;

/** Certificates of a node. */
const pem = (dir: string, { cert, key }: PemPair) => ({
  [`${dir}/ca.pem`]: server.cert,
  [`${dir}/node.pem`]: cert,
  [`${dir}/node.key`]: key,
});

const pair = 'ca = "ca.pem"\nclient = [["node.pem", "node.key"]]\n';
const url = `https://${registry.host}`;

const nodes: readonly (readonly [
  name: string,
  files: Readonly<Record<string, string>>,
  image?: string | undefined,
  version?: string,
])[] = [
  [
    'hosts.toml of the registry',
    {
      'etc/containerd/config.toml': certsD,
      [`${hosts}/hosts.toml`]: `server = "${url}"\n${pair}`,
      ...pem(hosts, right),
    },
  ],
  [
    'hosts.toml in a directory whose name has no colon',
    {
      'etc/containerd/config.toml': certsD,
      [`${escaped}/hosts.toml`]: `[host."${url}"]\n${pair}`,
      ...pem(escaped, right),
    },
  ],
  [
    'certificate and key in one file',
    {
      'etc/containerd/config.toml': certsD,
      [`${hosts}/hosts.toml`]: `server = "${url}"\nca = ["/etc/pki/ca.pem"]\nclient = "both.pem"\n`,
      'etc/pki/ca.pem': server.cert,
      [`${hosts}/both.pem`]: `${right.cert}\n${right.key}`,
    },
  ],
  [
    'files beside, as docker has them',
    {
      'etc/containerd/config.toml': certsD,
      [`${hosts}/ca.crt`]: server.cert,
      [`${hosts}/client.cert`]: right.cert,
      [`${hosts}/client.key`]: right.key,
    },
  ],
  [
    'a mirror of Docker Hub',
    {
      'etc/containerd/config.toml': certsD,
      'etc/containerd/certs.d/docker.io/hosts.toml': `[host."${url}"]\n${pair}`,
      ...pem('etc/containerd/certs.d/docker.io', right),
    },
    'app:1',
  ],
  [
    'the deprecated tables of config.toml',
    {
      'etc/containerd/config.toml': `version = 2
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."${registry.host}"]
endpoint = ["${url}"]
[plugins."io.containerd.grpc.v1.cri".registry.configs."${registry.host}".tls]
ca_file = "/etc/pki/ca.pem"
cert_file = "/etc/pki/node.pem"
key_file = "/etc/pki/node.key"
`,
      ...pem('etc/pki', right),
    },
    undefined,
    '1.7.24',
  ],
];

function ask(t: Test, files: Readonly<Record<string, string>>, image?: string, version?: string) {
  const root = write(mkdtempSync(join(directory, 'node-')), files);
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  const flags = ['--host-root', root, ...(version === undefined ? [] : ['--containerd-version', version])];
  return inspect([...flags, image ?? `${registry.host}/team/app:1`]);
}

for (const [name, files, image, version] of nodes) {
  t.test(name, async (t) => {
    const { code, results, text } = await ask(t, files, image, version);
    t.equal(code, 0, text);
    t.same(written(results[0]), ['linux/amd64', 'linux/s390x']);
    t.equal(results[0]?.endpoint, registry.host);
    t.notMatch(text, /PRIVATE KEY/);
  });
}

const refused: readonly (readonly [name: string, files: Readonly<Record<string, string>>])[] = [
  [
    'no certificate',
    {
      'etc/containerd/config.toml': certsD,
      [`${hosts}/hosts.toml`]: `server = "${url}"\nca = "ca.pem"\n`,
      [`${hosts}/ca.pem`]: server.cert,
    },
  ],
  [
    'a certificate of another authority',
    {
      'etc/containerd/config.toml': certsD,
      [`${hosts}/hosts.toml`]: `server = "${url}"\n${pair}`,
      ...pem(hosts, wrong),
    },
  ],
  [
    'a certificate for another registry only',
    {
      'etc/containerd/config.toml': certsD,
      [`${hosts}/ca.crt`]: server.cert,
      'etc/containerd/certs.d/other.test/hosts.toml': `server = "https://other.test"\n${pair}`,
      ...pem('etc/containerd/certs.d/other.test', right),
    },
  ],
];

for (const [name, files] of refused) {
  t.test(`${name}: an error that names hosts.toml`, async (t) => {
    const { code, results } = await ask(t, files);
    t.equal(code, 1);
    t.match(results[0]?.error, { code: 'unavailable', message: /client certificate.* in hosts\.toml/ });
  });
}
