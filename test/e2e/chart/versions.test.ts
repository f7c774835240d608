/** The chart and the API servers of the oldest and the newest supported Kubernetes. */
import t from 'tap';
import { kubernetes, oldestKubernetes } from '../programs/kubernetes.ts';
import {
  acceptedAndRefused,
  define,
  deleteKeptDefinitions,
  withDefinitions,
} from '../cluster/definitions.ts';
import { startCluster } from '../cluster/harness.ts';
import { foreignDefinitions } from '../programs/definitions.ts';
import { heldToPodSecurity, everyObject, takesAll } from './strict.ts';
import { ownRights } from './own-rights.ts';
import { protects } from './protection.ts';

const wanted = everyObject();

for (const version of [oldestKubernetes, kubernetes]) {
  void t.test(`Kubernetes ${version}`, async (t) => {
    const cluster = await startCluster({ apiServerOnly: version }, t);
    t.match(await cluster.get('/version'), { gitVersion: version });
    await cluster.createNamespace('archwright', { 'pod-security.kubernetes.io/enforce': 'privileged' });

    await t.test("users cannot write archwright's annotation or remove its gate", async (t) => {
      await protects(t, cluster);
    });
    await t.test("archwright's own accounts cannot do more than archwright does", async (t) => {
      await ownRights(t, cluster);
    });
    await t.test('the definitions of the custom resources accept and refuse objects', async (t) => {
      await deleteKeptDefinitions(cluster);
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
