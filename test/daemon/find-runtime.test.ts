import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { findRuntime } from '../../daemon/find-runtime.ts';
import { like } from '../support/like.ts';
import { writeFiles } from '../support/write-files.ts';

const both = ['/etc/crio/crio.conf.d/10-crio.conf', '/etc/containerd/config.toml'];
const crioSocket = '/run/crio/crio.sock';
const containerdSocket = '/run/containerd/containerd.sock';
const wants = '/etc/systemd/system/multi-user.target.wants';

/** Empty files, besides those with a text. */
const files = (empty: readonly string[], texts: Readonly<Record<string, string>> = {}) => ({
  ...Object.fromEntries(empty.map((path) => [path, ''])),
  ...texts,
});
const kubeletFile = (name: string, text: string) => ({ [`/var/lib/kubelet/${name}`]: text });
const flags = 'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock"\n';
const setting = 'a: 1\ncontainerRuntimeEndpoint: "unix:///var/run/crio/crio.sock"\n';
const otherKeys =
  '# containerRuntimeEndpoint: unix:///run/crio/crio.sock\nx-containerRuntimeEndpoint: /run/crio/crio.sock\nxcontainerRuntimeEndpoint: crio\n';
const unit =
  '[Service]\nExecStart=/usr/bin/kubelet --container-runtime-endpoint /var/run/crio/crio.sock --v=2\n';
const withContainerd = [...both, containerdSocket];

const cases: readonly (readonly [string, ReturnType<typeof files>, runtime: string, reason: RegExp])[] = [
  ['nothing', {}, 'containerd', /no files of CRI-O/],
  ['empty directories', files(['/etc/containers/registries.conf']), 'containerd', /no files of CRI-O/],
  ['crio.conf', files(['/etc/crio/crio.conf']), 'cri-o', /files of CRI-O/],
  ['a drop-in of CRI-O beside config.toml', files(both), 'containerd', /config\.toml exists/],
  ['an enabled CRI-O', files([...both, `${wants}/crio.service`]), 'cri-o', /crio\.service is enabled/],
  [
    'the socket of k3s beside that of CRI-O',
    files([...both, crioSocket, '/run/k3s/containerd/containerd.sock']),
    'containerd',
    /k3s.*sock exists/,
  ],
  [
    'an enabled k0s',
    files(['/etc/crio/crio.conf', `${wants}/k0sworker.service`]),
    'containerd',
    /k0sworker\.service is enabled/,
  ],
  ['the socket of CRI-O', files([...withContainerd, crioSocket]), 'cri-o', /crio\.sock exists/],
  ['the socket of CRI-O alone', files([crioSocket]), 'cri-o', /crio\.sock exists/],
  ['the socket of containerd alone', files(withContainerd), 'containerd', /containerd\.sock exists/],
  ['an enabled containerd', files([...both, `${wants}/containerd.service`]), 'containerd', /is enabled/],
  [
    'both enabled',
    files([...both, `${wants}/containerd.service`, `${wants}/crio.service`]),
    'cri-o',
    /crio\.service is enabled/,
  ],
  [
    'flags of kubeadm',
    files([...both, crioSocket], kubeletFile('kubeadm-flags.env', flags)),
    'containerd',
    /kubeadm-flags\.env names its socket/,
  ],
  [
    "the kubelet's configuration",
    files(withContainerd, kubeletFile('config.yaml', setting)),
    'cri-o',
    /config\.yaml names its socket/,
  ],
  [
    'comments and other keys',
    files(withContainerd, kubeletFile('config.yaml', otherKeys)),
    'containerd',
    /containerd\.sock exists/,
  ],
  [
    "the kubelet's service",
    files(withContainerd, { '/etc/systemd/system/kubelet.service': unit }),
    'cri-o',
    /command line of the kubelet/,
  ],
];

for (const [name, paths, runtime, reason] of cases) {
  t.test(`${name}: ${runtime}`, async (t) => {
    const root = t.testdir();
    writeFiles(root, paths);
    like(t, await findRuntime(root), { name: runtime, reason });
  });
}

t.test('a masked service is not enabled', async (t) => {
  const root = t.testdir();
  writeFiles(root, files([...both, `${wants}/crio.service`]));
  symlinkSync('/dev/null', join(root, '/etc/systemd/system/crio.service'));
  like(t, await findRuntime(root), { name: 'containerd' });
});
