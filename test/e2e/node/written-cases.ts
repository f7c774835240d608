/** Hand-written cases: one for each feature of the generated cases, with containerd's known outcome. */
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

type Brief = readonly [
  domain: string,
  expected: Outcome,
  serving: Readonly<Record<string, Partial<Behavior>>>,
  more?: {
    /** hosts.toml of the domain, or files by path below certs.d. */
    readonly hosts?: string | Readonly<Record<string, string>>;
    readonly configuration?: Case['configuration'];
    readonly auth?: Case['auth'];
  },
];

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
    'Docker Hub, nothing configured': [
      'docker.io',
      'found',
      { [hub]: open },
      { configuration: configToml('') },
    ],
    'a loopback registry without TLS': [plain, 'found', { [plain]: open }, { configuration: configToml('') }],
    'an unreachable registry': [gone, 'unavailable', {}],
    'a missing tag': [origin, 'absent', { [origin]: absent }],
    'Basic with the right credential': [
      origin,
      'found',
      { [origin]: { auth: 'basic' } },
      { auth: knownUser },
    ],
    'Basic with a wrong credential': [
      origin,
      'denied',
      { [origin]: { auth: 'basic' } },
      { auth: { username, password: 'wrong' } },
    ],
    'Bearer without a credential': [origin, 'found', { [origin]: { auth: 'bearer', anonymous: true } }],
    'Bearer with a token server on another host': [
      originPort,
      'found',
      { [originPort]: { auth: 'bearer-elsewhere' } },
      { auth: knownUser },
    ],
    'a mirror in front of the origin': [
      'docker.io',
      'found',
      { [mirror]: open, [hub]: absent },
      { hosts: mirrorToml(mirror, 'capabilities = ["pull", "resolve"]') },
    ],
    'a mirror that is down': ['docker.io', 'found', { [hub]: open }, { hosts: mirrorToml(gone) }],
    'a mirror that needs the credential of the pod': [
      origin,
      'found',
      { [mirror]: closed },
      { hosts: mirrorToml(mirror), auth: knownUser },
    ],
    'a mirror that may not resolve tags': [
      origin,
      'found',
      { [mirror]: open, [origin]: open },
      { hosts: mirrorToml(mirror, 'capabilities = ["pull"]') },
    ],
    'a server that is not the origin': [
      origin,
      'absent',
      { [mirror]: absent, [secure]: absent, [origin]: open },
      { hosts: `server = "https://${mirror}"\n\n[host."https://${secure}"]\n` },
    ],
    override_path: [
      origin,
      'found',
      { [mirror]: open },
      { hosts: `[host."https://${mirror}/proxy/v2"]\noverride_path = true\n` },
    ],
    'a special header': [
      origin,
      'found',
      { [mirror]: open },
      { hosts: `[host."https://${mirror}"]\n[host."https://${mirror}".header]\nX-Test = ["one", "two"]\n` },
    ],
    'a private authority': [
      origin,
      'found',
      { [withCa]: open, [origin]: absent },
      { hosts: mirrorToml(withCa, `ca = ${quoted(ca)}`) },
    ],
    'a client certificate': [
      origin,
      'found',
      { [mutual]: open, [origin]: absent },
      { hosts: mirrorToml(mutual, `skip_verify = true\nclient = [[${quoted(client)}, ${quoted(key)}]]`) },
    ],
    'the _default directory': [
      originPort,
      'found',
      { [secure]: open, [originPort]: absent },
      { hosts: { '_default/hosts.toml': mirrorToml(secure) } },
    ],
    'a directory with the port in its name': [
      originPort,
      'found',
      { [secure]: open, [originPort]: absent },
      { hosts: { 'origin.example_5000_/hosts.toml': mirrorToml(secure) } },
    ],
    'certificate files in the host directory': [
      mirrorPrivate,
      'found',
      { [mirrorPrivate]: open },
      { hosts: { [`${mirrorPrivate}/ca.crt`]: certificates[ca] ?? '' } },
    ],
    'a deprecated mirror': [
      'docker.io',
      'found',
      { [mirror]: open, [hub]: absent },
      {
        configuration: configToml(
          `[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]\nendpoint = ["https://${mirror}"]\n`,
        ),
      },
    ],
    'a deprecated credential': [
      origin,
      'found',
      { [origin]: closed },
      {
        configuration: configToml(
          `[plugins."io.containerd.grpc.v1.cri".registry.configs."${origin}".auth]\n` +
            `username = ${quoted(username)}\npassword = ${quoted(password)}\n`,
        ),
      },
    ],
  };
  return Object.entries(briefs).map(([name, [domain, expected, serving, more = {}]]) => ({
    name,
    image: 'multi',
    by: 'tag',
    auth: more.auth,
    domain,
    expected,
    configuration: more.configuration ?? withPath,
    hosts: filesOf(domain, more.hosts),
    behaviors: new Map(
      Object.entries(serving).map(([host, behavior]) => [host, { ...openRegistry, ...behavior }]),
    ),
  }));
}

function filesOf(domain: string, hosts: string | Readonly<Record<string, string>> = {}): Case['hosts'] {
  const files = typeof hosts === 'string' ? { [`${domain}/hosts.toml`]: hosts } : hosts;
  return Object.fromEntries(Object.entries(files).map(([path, text]) => [`${certsD}/${path}`, text]));
}

function configToml(text: string): Case['configuration'] {
  return { '/etc/containerd/config.toml': `version = 2\n${text}` };
}

function mirrorToml(host: string, keys = ''): string {
  return `[host."https://${host}"]\n${keys}\n`;
}
