/** Credential provider plugins: their input, how answers are used and cached, and failures. */
import { answers, host, pod, setup } from './plugin-setup.ts';
import { providersFile } from './provider.ts';
import {
  dockerConfig,
  entry,
  pluginConfig,
  pullSecret,
  response,
  right,
  wrong,
  type Behavior,
  type Setup,
} from './setup.ts';

const invocation = setup(
  'the input of a plugin',
  [
    {
      name: 'plain',
      matchImages: [`${host}/p1`],
      args: ['--flag', 'with space', '', '"quoted"', '$HOME'],
      env: { TWICE: 'configured', CONFIGURED: 'ünïcode', EMPTY: '' },
    },
  ],
  { plain: answers(host) },
  [
    pod('p1-given', [`${host}/p1/a:1`, `${host}/other-p1:1`]),
    pod('p1-digest', [`${host}/p1/b:tag-of_any.kind`]),
  ],
  { env: { TWICE: 'kubelet', AWS_REGION: 'xx-1', HTTPS_PROXY_NOTE: 'a=b=c' } },
);

const caches = setup(
  'how long answers are cached',
  [
    { name: 'by-image', matchImages: [`${host}/p2/image`], defaultCacheDuration: '1h' },
    {
      name: 'by-registry',
      matchImages: [`${host}/p2/registry`, `eu.${host}/p2/registry`],
      defaultCacheDuration: '1h',
    },
    {
      name: 'global',
      matchImages: [`${host}/p2/global`, `eu.${host}/p2/global`],
      defaultCacheDuration: '1h',
    },
    { name: 'never', matchImages: [`${host}/p2/never`], defaultCacheDuration: '0s' },
    { name: 'zero', matchImages: [`${host}/p2/zero`], defaultCacheDuration: '1h' },
    { name: 'negative', matchImages: [`${host}/p2/negative`], defaultCacheDuration: '1h' },
    { name: 'short', matchImages: [`${host}/p2/short`], defaultCacheDuration: '1h' },
    { name: 'nothing', matchImages: [`${host}/p2/nothing`], defaultCacheDuration: '1h' },
  ],
  {
    'by-image': answers(host),
    'by-registry': answers(host, right('bob'), { cacheKeyType: 'Registry' }),
    global: answers(host, right('carol'), { cacheKeyType: 'Global' }),
    never: answers(host),
    zero: answers(host, right('alice'), { cacheDuration: '0s' }),
    negative: answers(host, right('alice'), { cacheDuration: '-1m' }),
    short: answers(host, right('alice'), { cacheDuration: '5s' }),
    nothing: { stdout: response(null) },
  },
  [
    pod('p2-image', [`${host}/p2/image/a:1`, `${host}/p2/image/a:2`, `${host}/p2/image/b:1`]),
    pod('p2-registry', [`${host}/p2/registry/a:1`, `${host}/p2/registry/b:1`, `eu.${host}/p2/registry/a:1`]),
    pod('p2-global', [`${host}/p2/global/a:1`, `eu.${host}/p2/global/b:1`]),
    pod('p2-never', [`${host}/p2/never/a:1`, `${host}/p2/never/a:2`]),
    pod('p2-zero', [`${host}/p2/zero/a:1`, `${host}/p2/zero/a:2`]),
    pod('p2-negative', [`${host}/p2/negative/a:1`, `${host}/p2/negative/a:2`]),
    pod('p2-short', [`${host}/p2/short/a:1`, `${host}/p2/short/a:2`]),
    { ...pod('p2-short-later', [`${host}/p2/short/a:3`]), afterMs: 6000 },
    pod('p2-nothing', [`${host}/p2/nothing/a:1`, `${host}/p2/nothing/a:2`]),
    pod('p2-image-again', [`${host}/p2/image/a:3`, `${host}/p2/registry/c:1`]),
  ],
  { as: { format: 'yaml' } },
);

const several = setup(
  'several plugins for one image',
  [
    { name: 'zulu', matchImages: [`${host}/p3`] },
    { name: 'alpha', matchImages: ['*.example', `${host}/p3/team`] },
    { name: 'specific', matchImages: [`${host}/p3/team`] },
    { name: 'elsewhere', matchImages: [`${host}/p3`] },
  ],
  {
    zulu: answers(host, wrong('bob')),
    alpha: answers(host, wrong('alice')),
    specific: answers(`${host}/p3/team`, wrong('carol')),
    elsewhere: {
      stdout: response({ 'other.example': right('alice'), [`${host}/p3/team/ok`]: right('dave') }),
    },
  },
  [
    pod('p3-order', [`${host}/p3/team/a:1`, `${host}/p3/b:1`]),
    pod('p3-last-is-right', [`${host}/p3/team/ok:1`]),
    pod('p3-after-secret', [`${host}/p3/team/c:1`], [pullSecret({ [host]: wrong('dave') })]),
  ],
  {
    files: { '/var/lib/kubelet/config.json': dockerConfig({ [host]: entry(wrong('node-user')) }) },
    as: { version: 'v1beta1' },
  },
);

const failures: Readonly<Record<string, Behavior>> = {
  'exits-three': {
    stdout: response({ [host]: right('alice') }),
    stderr: 'no such role\n',
    exit: 3,
    failing: true,
  },
  garbage: { stdout: 'no JSON', failing: true },
  silent: { stdout: '', failing: true },
  'wrong-version': { stdout: response({ [host]: right('alice') }, { version: 'v1beta1' }), failing: true },
  'wrong-key-type': {
    stdout: response({ [host]: right('alice') }, { cacheKeyType: 'image' }),
    failing: true,
  },
  'unknown-member': {
    stdout: response({ [host]: right('alice') }).replace('"auth"', '"extra":1,"auth"'),
    failing: true,
  },
  'wrong-case': { stdout: response({ [host]: right('alice') }).replace('"auth"', '"Auth"'), failing: true },
  'twice-a-member': {
    stdout: response({ [host]: right('alice') }).replace('"auth"', '"cacheKeyType":"Image","auth"'),
    failing: true,
  },
  'number-as-duration': {
    stdout: response({ [host]: right('alice') }, { cacheDuration: 'x' }).replace('"x"', '5'),
    failing: true,
  },
  trailing: { stdout: `${response({ [host]: right('alice') })} {}`, failing: true },
  'in-lines': { stdout: JSON.stringify(JSON.parse(response({ [host]: right('bob') })), null, 2) },
  yaml: {
    stdout: [
      'kind: CredentialProviderResponse',
      'apiVersion: credentialprovider.kubelet.k8s.io/v1',
      'cacheKeyType: Image',
      `auth: {${host}: {username: alice, password: alice-secret}}`,
      '',
    ].join('\n'),
  },
};

const failing = setup(
  'plugins that fail',
  Object.keys(failures).map((name) => ({ name, matchImages: [`${host}/p4/${name}`] })),
  failures,
  [
    ...Object.keys(failures).map((name) => pod(`p4-${name}`, [`${host}/p4/${name}/a:1`])),
    pod('p4-again', [`${host}/p4/exits-three/a:2`, `${host}/p4/exits-three/b:1`]),
    pod('p4-with-secret', [`${host}/p4/garbage/b:1`], [pullSecret({ [host]: right('alice') })]),
  ],
);

const hanging = setup(
  'a plugin that hangs',
  [
    { name: 'hangs', matchImages: [`${host}/p5`] },
    { name: 'works', matchImages: [`${host}/p5`] },
  ],
  { hangs: { stdout: '', hangs: true, failing: true }, works: answers(host) },
  [pod('p5-hangs', [`${host}/p5/a:1`])],
);

const older = setup(
  'older versions of the protocol',
  [
    { name: 'beta', matchImages: [`${host}/p6/beta`], version: 'v1beta1' },
    { name: 'alpha', matchImages: [`${host}/p6/alpha`], version: 'v1alpha1' },
  ],
  {
    beta: answers(host, right('alice'), { version: 'v1beta1' }),
    alpha: answers(host, right('bob'), { version: 'v1alpha1', cacheKeyType: 'Registry' }),
  },
  [pod('p6-older', [`${host}/p6/beta/a:1`, `${host}/p6/alpha/a:1`])],
  { as: { version: 'v1alpha1', format: 'yaml' }, hostRoot: '/' },
);

const directory: Setup = {
  name: 'a directory of configurations',
  hostRoot: '/host',
  env: { LANG: 'C' },
  plugins: {
    config: pluginConfig,
    isDirectory: true,
    behaviors: {
      first: answers(host, wrong('alice')),
      second: answers(host, wrong('bob')),
      third: answers(host),
    },
  },
  files: {
    [`${pluginConfig}/20.yaml`]: providersFile([{ name: 'second', matchImages: [`${host}/p7`] }], {
      format: 'yaml',
    }),
    [`${pluginConfig}/10.json`]: providersFile([{ name: 'third', matchImages: [`${host}/p7`] }], {
      version: 'v1beta1',
    }),
    [`${pluginConfig}/30.yml`]: providersFile([{ name: 'first', matchImages: [`${host}/p7`] }], {
      format: 'yaml',
    }),
    [`${pluginConfig}/40.txt`]: 'not read',
    [`${pluginConfig}/sub.yaml/50.yaml`]: 'not read either',
  },
  pods: [pod('p7-directory', [`${host}/p7/a:1`])],
};

const patterns = setup(
  'the images that a plugin matches',
  [
    { name: 'hub', matchImages: ['docker.io'] },
    { name: 'old-hub', matchImages: ['index.docker.io'] },
    { name: 'port', matchImages: [`${host}:5000`] },
    { name: 'stars', matchImages: ['*.*.corp.example', '*.registry.example/p8'] },
    { name: 'path-star', matchImages: [`${host}/p8/*`] },
    { name: 'prefix', matchImages: [`${host}/p8/te`] },
    { name: 'local', matchImages: ['localhost:5001', '127.0.0.1:5001'] },
    { name: 'tokens', matchImages: ['https://tokens.example/p8/'] },
  ],
  {
    hub: answers('docker.io'),
    'old-hub': answers('index.docker.io', right('bob')),
    port: answers(`${host}:5000`),
    stars: { stdout: response({ '*.*.corp.example': right('alice'), '*.registry.example': right('bob') }) },
    'path-star': answers(host),
    prefix: answers(`${host}/p8/te`, right('carol')),
    local: { stdout: response({ 'localhost:5001': right('alice'), '127.0.0.1:5001': wrong('bob') }) },
    tokens: answers('tokens.example', right('dave'), { cacheKeyType: 'Global', cacheDuration: '1h' }),
  },
  [
    pod('p8-hub', ['p8-official:1', 'p8/user:1', 'docker.io/p8/full:1']),
    pod('p8-ports', [`${host}:5000/p8/a:1`, `${host}/p8x:1`]),
    pod('p8-stars', ['a.b.corp.example/p8/a:1', `eu.${host}/p8/b:1`, `eu.${host}/q8/c:1`]),
    pod('p8-prefix', [`${host}/p8/team:1`, `${host}/p8/a:1`]),
    pod('p8-local', ['localhost:5001/p8/a:1', '127.0.0.1:5001/p8/b:1']),
    pod('p8-tokens', ['tokens.example/p8/a:1', 'tokens.example/p8/b:1', 'tokens.example/q8:1']),
  ],
);

export const pluginSetups: readonly Setup[] = [
  invocation,
  caches,
  several,
  failing,
  older,
  directory,
  patterns,
  hanging,
];
