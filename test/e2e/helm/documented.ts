/**
 * Commands of the documentation, run while archwright is installed: in its pods with the chart's rights, and as a plugin of kubectl beside
 * the cluster (README.md and the pages on explain, report, the kubectl plugin, the agent check and troubleshooting).
 */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deletePods, podOf, whereRuns } from './pods.ts';
import { kubectlOf, namespace } from './release.ts';
import { step } from './report.ts';
import type { World } from './world.ts';

const launcher = fileURLToPath(new URL('../../../cmd/archwright.js', import.meta.url));

interface Command {
  readonly does: string;
  /** Behind `kubectl`. */
  readonly words: readonly string[];
  readonly answers: readonly RegExp[];
}

/**
 * Runs each of them once; all must succeed.
 * @param world with a release of `cardValues`
 */
export async function documented(world: World, of: (name: string) => string): Promise<void> {
  const { cluster, images } = world;
  const plugins = '/tmp/plugins';
  mkdirSync(plugins);
  symlinkSync(launcher, join(plugins, 'kubectl-archwright'));
  const path = [plugins, dirname(process.execPath), '/usr/bin', '/bin'].join(':');
  const kubectl = kubectlOf(cluster, path);
  await cluster.create(podOf({ name: 'told', images: [images['plugin/mainframe'] ?? ''] }));
  await whereRuns(cluster, 'told');
  for (const { does, words, answers } of commands(images)) {
    await step(of(does), async () => {
      const said = await kubectl(words);
      for (const answer of answers) assert.match(said, answer);
    });
  }
  await step(of('archwright config check of the installed configuration'), async () => {
    const toml = await kubectl([
      '-n',
      namespace,
      'get',
      'configmap',
      'archwright',
      '-o',
      'jsonpath={.data.archwright\\.toml}',
    ]);
    assert.match(
      await kubectl(['archwright', 'config', 'check', '-'], toml),
      /sound, \d+ of \d+ settings set/,
    );
  });
  await deletePods(cluster, ['told']);
}

function commands(images: World['images']): readonly Command[] {
  const inside = (part: string, ...words: readonly string[]): readonly string[] => {
    return ['-n', namespace, 'exec', part, '--', 'archwright', ...words];
  };
  const agent = (...words: readonly string[]): readonly string[] =>
    inside('daemonset/archwright-agent', ...words);
  const controller = (...words: readonly string[]): readonly string[] =>
    inside('deployment/archwright-controller', ...words);
  const mainframe = images['plugin/mainframe'] ?? '';
  return [
    {
      does: 'explain in a controller pod uses the agents and their credentials',
      words: controller('explain', 'pod/told', '-n', 'default'),
      answers: [/decision +placed/, /requires +s390x/, /s390x +memory +credential-provider/],
    },
    {
      does: 'report in a controller pod uses the agents',
      words: controller('report', '--architecture', 's390x', '--namespace', 'default'),
      answers: [/S390X +WORKLOADS/, /default +Pod\/told +1 +s390x +\S+ +\S+ +yes/],
    },
    {
      does: 'agent --check',
      words: agent('agent', '--check'),
      answers: [/used +\/etc\/credential-provider\/config\.yaml/, /used +\/etc\/containerd\/config\.toml/],
    },
    {
      does: 'inspect --verbose: anonymously',
      words: agent('inspect', '--verbose', images['public/multi'] ?? ''),
      answers: [/anonymous +\S+ +linux\/amd64 linux\/arm64 linux\/s390x/, /GET +manifest .* 200 /],
    },
    {
      does: 'inspect --verbose: by a credential provider plugin',
      words: agent('inspect', '--verbose', mainframe),
      answers: [/credential-provider +\S+ +linux\/s390x/, / 401 [^]*credential-provider .* 200 /],
    },
    {
      does: 'inspect --verbose: by creds/<registry>.toml',
      words: agent('inspect', '--verbose', images['team/arm'] ?? ''),
      answers: [/registry-toml +\S+ +linux\/arm64/],
    },
    {
      does: 'kubectl archwright explain of a pod, without access to the nodes',
      words: ['archwright', 'explain', 'pod/told', '-n', 'default'],
      answers: [/decision +gated/, /unknown \(unavailable\)/],
    },
    {
      does: 'kubectl archwright explain of a Deployment, with the patch',
      words: ['archwright', 'explain', 'deploy/archwright-webhook', '-n', namespace, '--patch'],
      answers: [/workload-template +its images can run on amd64/, /patch: \[\]/],
    },
    {
      does: 'kubectl archwright probe',
      words: ['archwright', 'probe'],
      answers: [/the webhook answers: its decision/],
    },
    {
      does: 'kubectl archwright probe of a namespace',
      words: ['archwright', 'probe', '--pod-namespace', 'default'],
      answers: [/the webhook answers: its decision/],
    },
    {
      does: 'kubectl archwright clean --dry-run',
      words: ['archwright', 'clean', '--dry-run'],
      answers: [/WOULD CHANGE/, /webhook configuration +1 +-/],
    },
  ];
}
