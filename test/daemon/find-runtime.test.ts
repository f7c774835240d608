import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { findRuntime } from '../../daemon/find-runtime.ts';
import { like } from '../support/like.ts';
import { writeFiles } from '../support/write-files.ts';

type Files = Readonly<Record<string, string>>;

const both = { '/etc/crio/crio.conf.d/10-crio.conf': '', '/etc/containerd/config.toml': '' };
const crioSocket = { '/run/crio/crio.sock': '' };
const containerdSocket = { '/run/containerd/containerd.sock': '' };
const wants = '/etc/systemd/system/multi-user.target.wants';

const cases: readonly (readonly [name: string, files: Files, runtime: string, reason: RegExp])[] = [
  ['nothing', {}, 'containerd', /no files of CRI-O/],
  ['empty directories', { '/etc/containers/registries.conf': '' }, 'containerd', /no files of CRI-O/],
  ['crio.conf', { '/etc/crio/crio.conf': '' }, 'cri-o', /files of CRI-O/],
  ['a drop-in of CRI-O beside config.toml', both, 'containerd', /config\.toml exists/],
  ['an enabled CRI-O', { ...both, [`${wants}/crio.service`]: '' }, 'cri-o', /crio\.service is enabled/],
  [
    'the socket of k3s beside that of CRI-O',
    { ...both, ...crioSocket, '/run/k3s/containerd/containerd.sock': '' },
    'containerd',
    /k3s.*sock exists/,
  ],
  [
    'an enabled k0s',
    { '/etc/crio/crio.conf': '', [`${wants}/k0sworker.service`]: '' },
    'containerd',
    /k0sworker\.service is enabled/,
  ],
  ['the socket of CRI-O', { ...both, ...crioSocket, ...containerdSocket }, 'cri-o', /crio\.sock exists/],
  [
    'the socket of containerd alone',
    { ...both, ...containerdSocket },
    'containerd',
    /containerd\.sock exists/,
  ],
  ['an enabled containerd', { ...both, [`${wants}/containerd.service`]: '' }, 'containerd', /is enabled/],
  [
    'both enabled',
    { ...both, [`${wants}/containerd.service`]: '', [`${wants}/crio.service`]: '' },
    'cri-o',
    /crio\.service is enabled/,
  ],
  [
    'flags of kubeadm',
    {
      ...both,
      ...crioSocket,
      '/var/lib/kubelet/kubeadm-flags.env':
        'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock"\n',
    },
    'containerd',
    /kubeadm-flags\.env names its socket/,
  ],
  [
    "the kubelet's configuration",
    {
      ...both,
      ...containerdSocket,
      '/var/lib/kubelet/config.yaml': 'a: 1\ncontainerRuntimeEndpoint: "unix:///var/run/crio/crio.sock"\n',
    },
    'cri-o',
    /config\.yaml names its socket/,
  ],
  [
    'comments and other keys',
    {
      ...both,
      ...containerdSocket,
      '/var/lib/kubelet/config.yaml':
        '# containerRuntimeEndpoint: unix:///run/crio/crio.sock\nx-containerRuntimeEndpoint: /run/crio/crio.sock\nxcontainerRuntimeEndpoint: crio\n',
    },
    'containerd',
    /containerd\.sock exists/,
  ],
  [
    "the kubelet's service",
    {
      ...both,
      ...containerdSocket,
      '/etc/systemd/system/kubelet.service':
        '[Service]\nExecStart=/usr/bin/kubelet --container-runtime-endpoint /var/run/crio/crio.sock --v=2\n',
    },
    'cri-o',
    /command line of the kubelet/,
  ],
];

for (const [name, files, runtime, reason] of cases) {
  t.test(`${name}: ${runtime}`, async (t) => {
    const root = t.testdir();
    writeFiles(root, files);
    like(t, await findRuntime(root), { name: runtime, reason });
  });
}

t.test('a masked service is not enabled', async (t) => {
  const root = t.testdir();
  writeFiles(root, { ...both, [`${wants}/crio.service`]: '' });
  symlinkSync('/dev/null', join(root, '/etc/systemd/system/crio.service'));
  like(t, await findRuntime(root), { name: 'containerd' });
});
