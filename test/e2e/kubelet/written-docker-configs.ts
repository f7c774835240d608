/** Docker configurations of the node: which file is used, after pull secrets. */
import {
  dockerConfig,
  entries,
  host,
  pod,
  pullSecret,
  right,
  wrong,
  type Login,
  type PodCase,
  type Setup,
} from './setup.ts';

const file = (logins: Readonly<Record<string, Login>>): string => dockerConfig(entries(logins));
const legacyFile = (logins: Readonly<Record<string, Login>>): string => JSON.stringify(entries(logins));
const main = '/var/lib/kubelet/config.json';

function setup(name: string, files: Readonly<Record<string, string>>, pods: readonly PodCase[]): Setup {
  return { name, hostRoot: name.length % 2 === 0 ? '/' : '/host', env: {}, files, pods };
}

export const dockerConfigSetups: readonly Setup[] = [
  setup('docker config of the root directory', { [main]: file({ [host]: right('alice') }) }, [
    pod('d1-node', [`${host}/d1/a:1`]),
    pod('d1-secret-first', [`${host}/d1/b:1`], [pullSecret({ [host]: right('bob') })]),
    pod('d1-secret-wrong', [`${host}/d1/c:1`], [pullSecret({ [host]: wrong('bob') })]),
    pod(
      'd1-secret-elsewhere',
      [`${host}/d1/d:1`, `eu.${host}/d1/e:1`],
      [pullSecret({ 'other.example': right('bob') })],
    ),
    pod('d1-equal', [`${host}/d1/f:1`], [pullSecret({ [host]: right('alice') })]),
    { ...pod('d1-changed', [`${host}/d1/g:1`]), files: { [main]: file({ [host]: right('bob') }) } },
  ]),
  setup(
    'a broken docker config before a good one',
    {
      [main]: '{"auths":{"registry.example":{"auth":"%"}}}',
      '/root/.docker/config.json': file({ [`${host}/d2`]: right('bob'), [host]: wrong('alice') }),
    },
    [pod('d2-second-file', [`${host}/d2/a:1`, `${host}/other-d2:1`])],
  ),
  setup(
    'an empty docker config hides the next',
    { '/config.json': '{}', '/.docker/config.json': file({ [host]: right('bob') }) },
    [pod('d3-hidden', [`${host}/d3/a:1`])],
  ),
  setup(
    'an older dockercfg',
    { '/.dockercfg': legacyFile({ [host]: right('carol'), 'https://index.docker.io/v1/': right('dave') }) },
    [pod('d4-legacy', [`${host}/d4/a:1`, 'd4/hub:1'])],
  ),
  setup(
    'a config.json anywhere is used before a dockercfg',
    {
      '/var/lib/kubelet/.dockercfg': legacyFile({ [host]: wrong('carol') }),
      '/.docker/config.json': file({ [host]: right('dave') }),
    },
    [pod('d5-config-first', [`${host}/d5/a:1`])],
  ),
];
