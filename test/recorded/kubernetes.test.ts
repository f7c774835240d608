/**
 * Which nodes Kubernetes gives to random pods, by its DaemonSets and its scheduler (`e2e/cluster/random-pods.test.ts`):
 * the model of the scheduler, which judges decisions, and the controller's own rule say the same.
 */
import { test } from 'tap';
import { choosing, letsIn } from '../../src/controller/pods/chosen-nodes.ts';
import { selects, tolerates, type ModelNode } from '../support/scheduler-model.ts';
import type { Choice, RecordedNodes, Verdict } from '../e2e/cluster/random-pods/verdicts.ts';
import { recordedBy } from './recorded.ts';

const [{ nodes }, ...verdicts] = recordedBy('kubernetes') as readonly [RecordedNodes, ...Verdict[]];

const rules: Readonly<Record<string, (choice: Choice) => (node: ModelNode) => boolean>> = {
  'the model': (choice) => (node) =>
    selects({ ...choice, containers: [] }, node) && tolerates(choice.tolerations, node),
  'the controller': ({ nodeSelector = {}, affinity, tolerations = [] }) => {
    const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
    const isChosen = choosing({ nodeSelector: nodeSelector ?? {}, terms });
    return (node) => isChosen(node) && letsIn(node, tolerations ?? []);
  },
};

for (const [name, rule] of Object.entries(rules)) {
  test(`${name} gives each pod the nodes that Kubernetes gave it`, async (t) => {
    for (const { choice, nodes: given } of verdicts) {
      const found = nodes.filter(rule(choice)).map((node) => node.name);
      t.strictSame(found.sort(), given, JSON.stringify(choice));
    }
  });
}

test('the recorded pods are of all kinds', async (t) => {
  const some = verdicts.filter(({ nodes: given }) => given.length > 0 && given.length < nodes.length);
  t.ok(some.length > 50, 'some nodes');
  const isScheduled = ({ nodes: given, scheduled }: Verdict): boolean =>
    scheduled === null ? given.length === 0 : given.includes(scheduled);
  t.strictSame(
    verdicts.filter((verdict) => !isScheduled(verdict)),
    [],
    'the scheduler and DaemonSets agree',
  );
});
