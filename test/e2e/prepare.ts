/**
 * Installs and builds the programs of the end-to-end suites. The suites do the same; this can run in advance.
 *
 *   npm run e2e:prepare             for all suites: some twenty minutes on a machine without any of them
 *   npm run e2e:prepare -- NAME...  for these suites
 */
import { helmPrograms, kubeletPrograms } from './box/programs.ts';
import { baseImage } from './image/base.ts';
import { say } from './programs/cache.ts';
import {
  certManagerProgram,
  certManagerDefinitions,
  foreignDefinitions,
  openReportsDefinitions,
} from './programs/definitions.ts';
import { crioLibraryProgram } from './programs/crio.ts';
import { containerdProgram, containerdVersions, type ContainerdVersion } from './programs/containerd.ts';
import { debianProgram } from './programs/debian.ts';
import { distributionProgram, helmProgram } from './programs/helm.ts';
import { apiServerProgram, kubernetesPrograms, kwokStages, oldestKubernetes } from './programs/kubernetes.ts';

type Step = () => unknown;

const controlPlane = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kwok'] as const;
const cluster: readonly Step[] = [
  () => kubernetesPrograms([...controlPlane, 'kubectl']),
  kwokStages,
  () => helmProgram('helm3'),
];

const suites: Readonly<Record<string, readonly Step[]>> = {
  image: [() => debianProgram('buildah'), baseImage],
  registry: [() => debianProgram('docker-registry'), distributionProgram],
  kubelet: [kubeletPrograms],
  node: (Object.keys(containerdVersions) as ContainerdVersion[]).map(
    (minor) => () => containerdProgram(minor),
  ),
  crio: [crioLibraryProgram],
  cluster: [...cluster, () => debianProgram('jq'), certManagerDefinitions, certManagerProgram],
  helm: [helmPrograms, baseImage],
  'first-hour': [helmPrograms, baseImage],
  chart: [
    ...cluster,
    () => helmProgram('helm4'),
    foreignDefinitions,
    openReportsDefinitions,
    () => apiServerProgram(oldestKubernetes),
  ],
};

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(suites);
let failures = 0;
for (const suite of wanted) {
  const steps = suites[suite];
  if (steps === undefined) throw new Error(`no suite ${suite}; there are ${Object.keys(suites).join(', ')}`);
  for (const step of steps) {
    try {
      step();
    } catch (error) {
      // The suite fails by the same error; other programs are still worth building.
      failures += 1;
      say(error instanceof Error ? error.message : String(error));
    }
  }
}
say(failures === 0 ? `ready: ${wanted.join(', ')}` : `${failures} failures`);
process.exitCode = failures === 0 ? 0 : 1;
