/** Cases written by hand: one for each feature that generated cases combine, with containerd's known outcome. */
import { openRegistry, type Case } from './case.ts';
import { certificatePaths, quoted } from './generate-hosts.ts';
import type { Outcome } from './observed.ts';
import { knownUser, type Behavior } from './registry.ts';
import type { Places } from './world.ts';

export interface WrittenCase extends Case {
  /** Containerd's outcome. It shows that the case really reaches the registries. */
  readonly expected: Outcome;
}

const certsD = '/etc/containerd/certs.d';
const withPath = configToml(
  `[plugins."io.containerd.grpc.v1.cri".registry]\nconfig_path = ${quoted(certsD)}\n`,
);

interface Brief {
  readonly domain: string;
  readonly expected: Outcome;
  readonly serving: Readonly<Record<string, Partial<Behavior>>>;
  /** hosts.toml of the domain, or files by path below certs.d. */
  readonly hosts?: string | Readonly<Record<string, string>>;
  readonly configuration?: Case['configuration'];
  readonly auth?: Case['auth'];
}

export function writtenCases(places: Places, certificates: Case['hosts']): WrittenCase[] {
  const {
    hub,
    origin,
    originPort,
    secure,
    private: withCa,
    mutual,
    plain,
    gone,
    mirror,
    mirrorPrivate,
  } = places;
  const open: Partial<Behavior> = {};
  const absent: Partial<Behavior> = { answer: 'absent' };
  const closed: Partial<Behavior> = { auth: 'bearer', anonymous: false };
  const { username, password } = knownUser;
  const { ca, client, key } = certificatePaths;
  const briefs: Readonly<Record<string, Brief>> = {
    'Docker Hub, nothing configured': {
      domain: 'docker.io',
      expected: 'found',
      serving: { [hub]: open },
      configuration: configToml(''),
    },
    'a registry on this machine that speaks no TLS': {
      domain: plain,
      expected: 'found',
      serving: { [plain]: open },
      configuration: configToml(''),
    },
    'a registry out of reach': { domain: gone, expected: 'unavailable', serving: {} },
    'a tag that is not there': { domain: origin, expected: 'absent', serving: { [origin]: absent } },
    'Basic with the right credential': {
      domain: origin,
      expected: 'found',
      serving: { [origin]: { auth: 'basic' } },
      auth: knownUser,
    },
    'Basic with a wrong credential': {
      domain: origin,
      expected: 'denied',
      serving: { [origin]: { auth: 'basic' } },
      auth: { username, password: 'wrong' },
    },
    'Bearer without a credential': {
      domain: origin,
      expected: 'found',
      serving: { [origin]: { auth: 'bearer', anonymous: true } },
    },
    'Bearer of a token server elsewhere': {
      domain: originPort,
      expected: 'found',
      serving: { [originPort]: { auth: 'bearer-elsewhere' } },
      auth: knownUser,
    },
    'a mirror in front of the origin': {
      domain: 'docker.io',
      expected: 'found',
      serving: { [mirror]: open, [hub]: absent },
      hosts: mirrorToml(mirror, 'capabilities = ["pull", "resolve"]'),
    },
    'a mirror that is down': {
      domain: 'docker.io',
      expected: 'found',
      serving: { [hub]: open },
      hosts: mirrorToml(gone),
    },
    'a mirror that needs the credential of the pod': {
      domain: origin,
      expected: 'found',
      serving: { [mirror]: closed },
      hosts: mirrorToml(mirror),
      auth: knownUser,
    },
    'a mirror that may not resolve tags': {
      domain: origin,
      expected: 'found',
      serving: { [mirror]: open, [origin]: open },
      hosts: mirrorToml(mirror, 'capabilities = ["pull"]'),
    },
    'a server that is not the origin': {
      domain: origin,
      expected: 'absent',
      serving: { [mirror]: absent, [secure]: absent, [origin]: open },
      hosts: `server = "https://${mirror}"\n\n[host."https://${secure}"]\n`,
    },
    'a path of its own': {
      domain: origin,
      expected: 'found',
      serving: { [mirror]: open },
      hosts: `[host."https://${mirror}/proxy/v2"]\noverride_path = true\n`,
    },
    'a special header': {
      domain: origin,
      expected: 'found',
      serving: { [mirror]: open },
      hosts: `[host."https://${mirror}"]\n[host."https://${mirror}".header]\nX-Test = ["one", "two"]\n`,
    },
    'a private authority': {
      domain: origin,
      expected: 'found',
      serving: { [withCa]: open, [origin]: absent },
      hosts: mirrorToml(withCa, `ca = ${quoted(ca)}`),
    },
    'a client certificate': {
      domain: origin,
      expected: 'found',
      serving: { [mutual]: open, [origin]: absent },
      hosts: mirrorToml(mutual, `skip_verify = true\nclient = [[${quoted(client)}, ${quoted(key)}]]`),
    },
    'the directory for everything': {
      domain: originPort,
      expected: 'found',
      serving: { [secure]: open, [originPort]: absent },
      hosts: { '_default/hosts.toml': mirrorToml(secure) },
    },
    'a directory with the port in its name': {
      domain: originPort,
      expected: 'found',
      serving: { [secure]: open, [originPort]: absent },
      hosts: { 'origin.example_5000_/hosts.toml': mirrorToml(secure) },
    },
    'certificates beside each other': {
      domain: mirrorPrivate,
      expected: 'found',
      serving: { [mirrorPrivate]: open },
      hosts: { [`${mirrorPrivate}/ca.crt`]: certificates[ca] ?? '' },
    },
    'a deprecated mirror': {
      domain: 'docker.io',
      expected: 'found',
      serving: { [mirror]: open, [hub]: absent },
      configuration: configToml(
        `[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]\nendpoint = ["https://${mirror}"]\n`,
      ),
    },
    'a deprecated credential': {
      domain: origin,
      expected: 'found',
      serving: { [origin]: closed },
      configuration: configToml(
        `[plugins."io.containerd.grpc.v1.cri".registry.configs."${origin}".auth]\n` +
          `username = ${quoted(username)}\npassword = ${quoted(password)}\n`,
      ),
    },
  };
  return Object.entries(briefs).map(([name, brief]) => ({
    name,
    image: 'multi',
    by: 'tag',
    auth: brief.auth,
    domain: brief.domain,
    expected: brief.expected,
    configuration: brief.configuration ?? withPath,
    hosts: filesOf(brief),
    behaviors: new Map(
      Object.entries(brief.serving).map(([host, behavior]) => [host, { ...openRegistry, ...behavior }]),
    ),
  }));
}

function filesOf({ domain, hosts = {} }: Brief): Case['hosts'] {
  const files = typeof hosts === 'string' ? { [`${domain}/hosts.toml`]: hosts } : hosts;
  return Object.fromEntries(Object.entries(files).map(([path, text]) => [`${certsD}/${path}`, text]));
}

function configToml(text: string): Case['configuration'] {
  return { '/etc/containerd/config.toml': `version = 2\n${text}` };
}

function mirrorToml(host: string, keys = ''): string {
  return `[host."https://${host}"]\n${keys}\n`;
}
