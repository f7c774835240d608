/** Documented commands, in archwright's pods with the chart's rights, and as a plugin of kubectl. */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deletePods, podOf, nodeArchitectureOf } from './pods.ts';
import { kubectlOf, namespace } from './release.ts';
import { step } from './report.ts';
import type { World } from './world.ts';

const launcher = fileURLToPath(new URL('../../../cmd/archwright.js', import.meta.url));

/** Description, the words after `kubectl`, and patterns of the output. */
type Command = readonly [title: string, words: readonly string[], ...patterns: readonly RegExp[]];

/** Runs each of them once; all must succeed. @param world with a release of `releaseValues` */
export async function documentedCommands(world: World, of: (name: string) => string): Promise<void> {
  const { cluster, image } = world;
  const plugins = '/tmp/plugins';
  mkdirSync(plugins);
  symlinkSync(launcher, join(plugins, 'kubectl-archwright'));
  const path = [plugins, dirname(process.execPath), '/usr/bin', '/bin'].join(':');
  const kubectl = kubectlOf(cluster, path);
  await cluster.create(podOf({ name: 'explained', images: [image('plugin/mainframe')] }));
  await nodeArchitectureOf(cluster, 'explained');
  for (const [title, words, ...patterns] of commands(image)) {
    await step(of(title), async () => {
      const output = await kubectl(words);
      for (const pattern of patterns) assert.match(output, pattern);
    });
  }
  await step(of('kubectl archwright explain --local has no access to the nodes: exit code 3'), async () => {
    const unknown = /exit code 3: [^]*requires s390x[^]*unknown \(unauthorized\)/;
    await assert.rejects(
      kubectl(['archwright', 'explain', '--local', 'pod/explained', '-n', 'default']),
      unknown,
    );
  });
  await step(of('archwright config check of the installed configuration'), async () => {
    const get = ['get', 'configmap', 'archwright', '-o', 'jsonpath={.data.archwright\\.toml}'];
    const toml = await kubectl(['-n', namespace, ...get]);
    const output = await kubectl(['archwright', 'config', 'check', '-'], toml);
    assert.match(output, /valid, \d+ of \d+ settings set/);
  });
  await deletePods(cluster, ['explained']);
}

function commands(image: World['image']): readonly Command[] {
  const inside = (part: string, words: string): readonly string[] =>
    ['-n', namespace, 'exec', part, '--', 'archwright'].concat(words.split(' '));
  const agent = (words: string): readonly string[] => inside('daemonset/archwright-agent', words);
  const controller = (words: string): readonly string[] => inside('deployment/archwright-controller', words);
  const plugin = (words: string): readonly string[] => ['archwright', ...words.split(' ')];
  return [
    [
      'explain in a controller pod uses the agents and their credentials',
      controller('explain pod/explained -n default'),
      /decided before: placed, requires s390x/,
      /requires +s390x/,
      /s390x +memory +credential-provider/,
    ],
    [
      'report in a controller pod uses the agents',
      controller('report --architecture s390x --namespace default'),
      /S390X +WORKLOADS/,
      /default +Pod\/explained +1 +placed +s390x +\S+ +\S+ +yes/,
    ],
    [
      'agent --check',
      agent('agent --check'),
      /used +\/etc\/credential-provider\/config\.yaml/,
      /used +\/etc\/containerd\/config\.toml/,
    ],
    [
      'inspect --verbose: anonymously',
      agent(`inspect --verbose ${image('public/multi')}`),
      /anonymous +\S+ +linux\/amd64 linux\/arm64 linux\/s390x/,
      /GET +manifest .* 200 /,
    ],
    [
      'inspect --verbose: by a credential provider plugin',
      agent(`inspect --verbose ${image('plugin/mainframe')}`),
      /credential-provider +\S+ +linux\/s390x/,
      /credential-provider .* 200 /,
    ],
    [
      'inspect --verbose: by creds/<registry>.toml',
      agent(`inspect --verbose ${image('team/arm')}`),
      /registry-toml +\S+ +linux\/arm64/,
    ],
    [
      'explain of a Deployment in a controller pod',
      controller(`explain deploy/archwright-webhook -n ${namespace}`),
      /Deployment archwright\/archwright-webhook/,
    ],
    [
      'kubectl archwright explain looks up images through the controller, without access to the nodes',
      plugin('explain pod explained -n default'),
      /decided before: placed, requires s390x/,
      /created again +placed/,
      /s390x +memory +credential-provider/,
      /looked up through archwright\/archwright-controller/,
    ],
    [
      'kubectl archwright report looks up images through the controller',
      plugin('report --architecture s390x --namespace default'),
      /default +Pod\/explained +1 +placed +s390x +\S+ +\S+ +yes/,
      /looked up through archwright\/archwright-controller/,
    ],
    [
      'kubectl archwright explain of a Deployment, with the patch',
      plugin(`explain deploy/archwright-webhook -n ${namespace} --patch`),
      /skip-excluded-namespace/,
      /patch: \[\]/,
    ],
    [
      'kubectl archwright status',
      plugin('status'),
      /archwright-controller-\S+ +\S+ +0\.\d+\.\d+ +yes +yes +[0-9a-f]{12}\n/,
      /webhooks +in-force/,
      /certificates +the first expires in /,
      /agents +1 of 1 ready/,
    ],
    ['kubectl archwright probe', plugin('probe'), /the webhook answers: its decision/],
    [
      'kubectl archwright probe of a namespace',
      plugin('probe --pod-namespace default'),
      /the webhook answers: its decision/,
    ],
    [
      'kubectl archwright clean --dry-run',
      plugin('clean --dry-run'),
      /WOULD DO/,
      /webhook configuration +1 +-/,
    ],
  ];
}
