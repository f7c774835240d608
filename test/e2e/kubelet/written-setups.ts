/**
 * Credential provider plugins: what generated setups lack of input, use and caching of responses, failures and
 * tokens; and a login that changes.
 */
import {
  credentialsFor,
  dockerConfig,
  entry,
  host,
  plugin,
  pod,
  pullSecret,
  response,
  right,
  setup,
  wrong,
  type Behavior,
  type Setup,
} from './setup.ts';

const invocation = setup(
  'the input of a plugin',
  {
    plain: plugin(`${host}/p1`, credentialsFor(host), {
      args: ['--flag', 'with space', '', '"quoted"', '$HOME'],
      env: { TWICE: 'configured', CONFIGURED: 'ünïcode', EMPTY: '' },
    }),
  },
  [
    pod('p1-given', [`${host}/p1/a:1`, `${host}/other-p1:1`]),
    pod('p1-digest', [`${host}/p1/b:tag-of_any.kind`]),
  ],
  { env: { TWICE: 'kubelet', AWS_REGION: 'xx-1', HTTPS_PROXY_NOTE: 'a=b=c' } },
);

const hour = { defaultCacheDuration: '1h' };
const caches = setup(
  'responses that expire, or are empty',
  {
    short: plugin(`${host}/p2/short`, credentialsFor(host, right('alice'), { cacheDuration: '5s' }), hour),
    nothing: plugin(`${host}/p2/nothing`, { stdout: response(null) }, hour),
  },
  [
    pod('p2-short', [`${host}/p2/short/a:1`]),
    { ...pod('p2-short-later', [`${host}/p2/short/a:2`]), afterMs: 6000 },
    pod('p2-nothing', [`${host}/p2/nothing/a:1`, `${host}/p2/nothing/a:2`]),
  ],
);

const good = response({ [host]: right('alice') });
/** Output of failing plugins. */
const failures: Readonly<Record<string, string>> = {
  garbage: 'no JSON',
  silent: '',
  'wrong-version': response({ [host]: right('alice') }, { version: 'v1beta1' }),
  'wrong-key-type': response({ [host]: right('alice') }, { cacheKeyType: 'image' }),
  'unknown-member': good.replace('"auth"', '"extra":1,"auth"'),
  'wrong-case': good.replace('"auth"', '"Auth"'),
  'twice-a-member': good.replace('"auth"', '"cacheKeyType":"Image","auth"'),
  'number-as-duration': response({ [host]: right('alice') }, { cacheDuration: 'x' }).replace('"x"', '5'),
  trailing: `${good} {}`,
};
const yaml = `kind: CredentialProviderResponse
apiVersion: credentialprovider.kubelet.k8s.io/v1
cacheKeyType: Image
auth: {${host}: {username: alice, password: alice-secret}}
`;
const unusual: Readonly<Record<string, Behavior>> = {
  'exits-three': { stdout: good, stderr: 'no such role\n', exit: 3, failing: true },
  ...Object.fromEntries(Object.entries(failures).map(([name, stdout]) => [name, { stdout, failing: true }])),
  'in-lines': { stdout: JSON.stringify(JSON.parse(response({ [host]: right('bob') })), null, 2) },
  yaml: { stdout: yaml },
};

const failing = setup(
  'plugins that fail',
  Object.fromEntries(
    Object.entries(unusual).map(([name, does]) => [name, plugin(`${host}/p4/${name}`, does)]),
  ),
  [
    ...Object.keys(unusual).map((name) => pod(`p4-${name}`, [`${host}/p4/${name}/a:1`])),
    pod('p4-again', [`${host}/p4/exits-three/a:2`, `${host}/p4/exits-three/b:1`]),
    pod('p4-with-secret', [`${host}/p4/garbage/b:1`], [pullSecret({ [host]: right('alice') })]),
  ],
);

const tokenAttributes = (serviceAccountTokenAudience: string, cacheType: string, required: boolean) => ({
  serviceAccountTokenAudience,
  cacheType,
  requireServiceAccount: required,
});

const tokens = setup(
  'a plugin that requires tokens of service accounts',
  {
    'wants-token': plugin(
      `${host}/p9`,
      { ...credentialsFor(host, wrong('bob')), wantsToken: true },
      { tokenAttributes: tokenAttributes('audience', 'ServiceAccount', true) },
    ),
    other: plugin(`${host}/p9`, credentialsFor(host, right('alice'))),
  },
  [pod('p9-token', [`${host}/p9/a:1`])],
);

const podWith = (
  serviceAccount: string,
  name: string,
  ...paths: readonly string[]
): Setup['pods'][number] => ({
  ...pod(
    name,
    paths.map((path) => `${host}/pa/${path}`),
  ),
  serviceAccount,
});
const accounts = setup(
  'tokens of service accounts, allowed',
  {
    'by-account': plugin(
      `${host}/pa/account`,
      credentialsFor(host, right('alice'), { cacheKeyType: 'Registry' }),
      {
        ...hour,
        tokenAttributes: {
          ...tokenAttributes('audience-one', 'ServiceAccount', true),
          requiredServiceAccountAnnotationKeys: ['example.com/role'],
          optionalServiceAccountAnnotationKeys: ['example.com/note'],
        },
      },
    ),
    'by-token': plugin(
      `${host}/pa/token`,
      { ...credentialsFor(host, right('bob')), rememberedByToken: true },
      { ...hour, tokenAttributes: tokenAttributes('audience-two', 'Token', false) },
    ),
  },
  [
    podWith('with-role', 'pa-first', 'account/a:1', 'account/b:1'),
    podWith('with-role', 'pa-again', 'account/c:1'),
    podWith('with-role-and-note', 'pa-other', 'account/d:1'),
    podWith('without-role', 'pa-without', 'account/e:1'),
    podWith('default', 'pa-default', 'account/f:1'),
    podWith('without-role', 'pa-token', 'token/a:1', 'token/a:2'),
    podWith('default', 'pa-token-default', 'token/b:1'),
    podWith('without-role', 'pa-token-again', 'token/a:3'),
  ],
  {
    serviceAccountTokens: true,
    accounts: {
      'with-role': { 'example.com/role': 'reader', 'example.com/unrelated': 'x' },
      'with-role-and-note': { 'example.com/role': 'reader', 'example.com/note': '<&>' },
      'without-role': {},
    },
  },
);

const login = '/var/lib/kubelet/config.json';
const changing: Setup = {
  name: 'a docker config that changes',
  hostRoot: '/host',
  env: {},
  files: { [login]: dockerConfig({ [host]: entry(right('alice')) }) },
  pods: [
    pod('d1-before', [`${host}/d1/a:1`]),
    {
      ...pod('d1-changed', [`${host}/d1/b:1`]),
      files: { [login]: dockerConfig({ [host]: entry(right('bob')) }) },
    },
  ],
};

export const writtenSetups: readonly Setup[] = [tokens, accounts, invocation, caches, failing, changing];
