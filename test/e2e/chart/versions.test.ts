/**
 * The chart and the API servers of the oldest supported Kubernetes and of the newest: strict validation of everything that can be
 * rendered, with the definitions of the foreign kinds; Pod Security; the admission policy; the custom resources.
 */
import t from 'tap';
import { kubernetes, oldestKubernetes } from '../programs/kubernetes.ts';
import { define, acceptedAndRefused, withDefinitions } from '../cluster/definitions.ts';
import { startCluster } from '../cluster/harness.ts';
import { waitFor } from '../cluster/watch.ts';
import { foreignDefinitions } from '../programs/definitions.ts';
import { heldToPodSecurity } from './pod-security.ts';
import { protects } from './protection.ts';
import { everyObject, takesAll } from './strict.ts';

const wanted = everyObject();

for (const version of [oldestKubernetes, kubernetes]) {
  void t.test(`Kubernetes ${version}`, async (t) => {
    const cluster = await startCluster({ apiServerOnly: version });
    t.teardown(() => cluster.stop());
    t.match(await cluster.get('/version'), { gitVersion: version });
    await cluster.createNamespace('archwright', { 'pod-security.kubernetes.io/enforce': 'privileged' });

    await t.test('others may not write our annotation or take our gate away', async (t) => {
      await protects(t, cluster);
    });
    await t.test('what the definitions of the custom resources take and refuse', async (t) => {
      // The chart's went with it, a moment later.
      for (const kind of ['clusterpodplacementconfigs', 'podplacementconfigs']) {
        const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${kind}.arch.example`;
        await waitFor(cluster.client, path, (definition) => definition === undefined);
      }
      await withDefinitions(cluster);
      await acceptedAndRefused(t, cluster);
    });
    await t.test('every object passes strict validation', async (t) => {
      for (const text of foreignDefinitions()) await define(cluster, text);
      await takesAll(t, cluster, wanted);
    });
    await t.test(
      'webhook, controller and Jobs pass Pod Security restricted; the agent does not',
      async (t) => {
        await heldToPodSecurity(t, cluster);
      },
    );
  });
}
