/** Handlers of containers_auth.json, containers_certs_d.json and the policies of registries_conf.json. */
import { chmod, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import {
  authFilePaths,
  CredentialHelpers,
  hostOfKey,
  keysFor,
  loadAuthFiles,
} from '../../daemon/crio/auth-files.ts';
import { certificateRoots, loadCertificates } from '../../daemon/crio/certs-d.ts';
import { defaultCrioConf, loadCrioConf, type CrioConf } from '../../daemon/crio/crio-conf.ts';
import { parsePolicy, rejectingRule } from '../../daemon/crio/policy.ts';
import { pullSources } from '../../daemon/crio/pull-sources.ts';
import { loadRegistries } from '../../daemon/crio/registries-conf.ts';
import { NodeFiles } from '../../daemon/node-files.ts';
import { ConfigFileError, fieldsOf, InvalidConfig, parseTable } from '../../daemon/toml.ts';
import { DockerConfigError } from '../../src/credentials/docker/docker-config.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { createCa } from '../../test/support/certificates.ts';
import { inDirectory, write } from './directory.ts';
import { notCompared, type Handlers, type Input } from './handler.ts';
import { flag, isObject, object, text, texts } from './input.ts';

export const crioCredentials: Handlers = {
  credentials: (input) => inDirectory((root) => refused(() => credentials(input, root))),

  lookup_order: (input) => ({ keys: keysFor(text(input, 'key'), formatOf(input)) }),

  normalize_key: (input) => ({ key: hostOfKey(text(input, 'key'), formatOf(input)) }),

  auth_path: (input) => {
    // CRI-O itself skips an XDG_RUNTIME_DIR that is missing; podman fails.
    if (object(input, 'env')['XDG_RUNTIME_DIR'] === '/no/such/dir') return notCompared;
    // CRI-O has no setting for a named file of the older format.
    const named = [input['authFile'], input['legacyAuthFile']].find((path) => typeof path === 'string');
    const environment = object(input, 'env') as CrioConf['environment'];
    const paths = authFilePaths({ ...defaultCrioConf, globalAuthFile: named ?? '', environment });
    return { path: [...paths.keys()][0], userSpecified: paths.size === 1 };
  },

  crio_conf: (input) =>
    inDirectory((root) =>
      refused(async () => {
        await writeAll(root, object(input, 'files'));
        const conf = await loadCrioConf(new NodeFiles(root));
        const { globalAuthFile, signaturePolicy, signaturePolicyDir } = conf;
        const { shortNameMode = 'enforcing' } = conf;
        return { ok: true, globalAuthFile, signaturePolicy, signaturePolicyDir, shortNameMode };
      }),
    ),

  cert_dir: (input) =>
    inDirectory(async (root) => {
      for (const dir of texts(input, 'dirs')) {
        const isFile = dir.endsWith('!');
        await write(isFile ? join(root, dir.slice(0, -1)) : join(root, dir, 'README'), '');
      }
      const host = text(input, 'host');
      const last = join(certificateRoots(defaultCrioConf).at(-1) ?? '', host);
      const found = (await loadCertificates(defaultCrioConf, new NodeFiles(root))).get(host);
      return { ok: true, dir: found instanceof ConfigFileError ? found.where : (found?.dir ?? last) };
    }),

  load_dir: (input) =>
    inDirectory((root) =>
      refused(async () => {
        const dir = '/etc/containers/certs.d/a.test';
        await mkdir(join(root, dir), { recursive: true });
        const made = await createCertificates();
        for (const file of texts(input, 'files')) await writeCertificate(join(root, dir), file, made);
        const found = (await loadCertificates(defaultCrioConf, new NodeFiles(root))).get('a.test');
        if (found instanceof ConfigFileError) throw found;
        const { ca, client } = found ?? { ca: [], client: [] };
        // We always add to the roots of the system, so we have no pool of our own.
        return { ok: true, caPool: notCompared, extraCAs: ca.length > 0, clientCertificates: client.length };
      }),
    ),

  cert_hosts: (input) =>
    inDirectory(async (root) => {
      await write(join(root, '/etc/containers/registries.conf'), text(input, 'registriesConf'));
      const registries = await loadRegistries(defaultCrioConf, new NodeFiles(root));
      const image = parseReference(text(input, 'ref')).text;
      return { hosts: pullSources(image, registries).map(({ domain }) => domain) };
    }),

  policy: (input) =>
    refused(() => {
      const policy = parsePolicy(Buffer.from(JSON.stringify(input['policy'])));
      const image = text(input, 'image');
      const rule = rejectingRule(policy, parseReference(image).text);
      if (rule === undefined) return { ok: true, allowed: true };
      return { ok: true, allowed: false, error: notCompared };
    }),
};

/** Our messages are our own; whether something fails is compared. */
async function refused(act: () => unknown): Promise<unknown> {
  try {
    return await act();
  } catch (error) {
    const isOurs = [ConfigFileError, InvalidConfig, DockerConfigError].some((type) => error instanceof type);
    if (!isOurs) throw error;
    return { ok: false, error: notCompared };
  }
}

async function writeAll(root: string, files: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) await write(join(root, path), String(content));
}

/** Helpers need the programs of this machine, so paths get the directory as a prefix, and the root is `/`. */
async function credentials(input: Input, root: string): Promise<unknown> {
  const files = object(input, 'files');
  await writeAll(root, files);
  for (const [name, answers] of Object.entries(isObject(input['helpers']) ? input['helpers'] : {}))
    await writeHelper(join(root, 'bin', `docker-credential-${name}`), answers as Answers);
  const explicit = input['authFile'] ?? input['dockerCompatAuthFile'];
  const conf: CrioConf = {
    ...defaultCrioConf,
    globalAuthFile: typeof explicit === 'string' ? root + explicit : '',
    home: join(root, 'root'),
    // Without the variable, the directory is /run/containers/0.
    environment: { PATH: `${root}/bin:/usr/bin:/bin`, XDG_RUNTIME_DIR: join(root, 'xdg') },
  };
  await mkdir(join(root, 'xdg'));
  await symlink(join(root, 'run/containers/0'), join(root, 'xdg/containers'));
  const written = files['/etc/containers/registries.conf'] ?? '';
  const registries = fieldsOf(parseTable(typeof written === 'string' ? written : ''), '');
  const helpers = registries.texts('credential-helpers');
  const authFiles = await loadAuthFiles(conf, helpers, new NodeFiles('/'));
  const found = await new CredentialHelpers('/', new AbortController().signal).credentialFor(
    text(input, 'key'),
    helpers,
    authFiles,
    conf.environment,
  );
  const { username = '', password, isIdentityToken } = found?.credential ?? {};
  const secret = password === undefined ? '' : reveal(password);
  if (isIdentityToken !== true) return { ok: true, username, password: secret, identityToken: '' };
  // A user name beside an identity token is never sent.
  return { ok: true, username: notCompared, password: '', identityToken: secret };
}

type Answers = Readonly<
  Record<string, { readonly username?: string; readonly secret?: string; error?: string }>
>;

async function writeHelper(path: string, answers: Answers): Promise<void> {
  const cases = Object.entries(answers).map(([host, { username, secret, error }]) => {
    const answer = error ?? JSON.stringify({ ServerURL: host, Username: username, Secret: secret });
    return `${host}) echo '${answer}'; exit ${error === undefined ? 0 : 1};;`;
  });
  const none = `*) echo 'credentials not found in native keychain'; exit 1;;`;
  await write(path, `#!/bin/sh\ncase "$(cat)" in\n${[...cases, none].join('\n')}\nesac\n`);
  await chmod(path, 0o755);
}

function formatOf(input: Input) {
  return flag(input, 'legacy') ? 'dockercfg' : 'config.json';
}

/** @param file `NAME`, or `NAME=WHAT` */
async function writeCertificate(dir: string, file: string, { ca, own, other }: Certificates): Promise<void> {
  const [name = '', what] = file.split('=');
  const path = join(dir, name);
  if (what === 'dangling') await symlink('/nowhere', path);
  else if (what === 'dir') await mkdir(path);
  else if (what === 'garbage') await write(path, 'garbage');
  else if (what === 'other-key') await write(path, other.key);
  else if (name.endsWith('.cert')) await write(path, own.cert);
  else await write(path, name.endsWith('.key') ? own.key : ca.cert);
}

type Certificates = Awaited<ReturnType<typeof createCertificates>>;

async function createCertificates() {
  const ca = await createCa();
  const [own, other] = [await ca.issue({ cn: 'a', client: true }), await ca.issue({ cn: 'b', client: true })];
  return { ca, own, other };
}
