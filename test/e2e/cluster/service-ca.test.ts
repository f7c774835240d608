/**
 * Certificates by the service CA of OpenShift, with the chart's annotations, Service and rights, a real API
 * server, and a stub of the service CA: it writes the webhook's Secret and `caBundle`, and replaces its CA.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { createCa, type TestCa } from '../../support/certificates.ts';
import { archIn, termsOf } from '../../support/placement-input.ts';
import { until } from '../../support/until.ts';
import { ownNamespace } from './archwright/archwright.ts';
import { skip, startByChart } from './archwright/by-chart.ts';
import { createPods } from './archwright/load.ts';
import type { Cluster } from './harness.ts';

const webhookName = 'archwright-webhook';
const secretName = 'archwright-webhook-serving-cert';
const prefix = 'service.beta.openshift.io';
const servicePath = paths.services(ownNamespace, webhookName);
const secretPath = paths.secrets(ownNamespace, secretName);
const configurationPath = paths.mutatingWebhookConfigurations('archwright');

type Configuration = KubeObject & {
  readonly webhooks?: readonly { readonly clientConfig: { readonly caBundle?: string } }[];
};

/** openshift/service-ca-operator: `secret_creating_controller.go`, `admissionwebhook.go`. */
async function startServiceCa(t: Test, cluster: Cluster, first: TestCa) {
  let authorities = [first];
  // Its bytes are its own: a program that writes the same certificates in another form would be overwritten.
  const bundle = (): string =>
    Buffer.from(`# service CA\n${authorities.map(({ cert }) => cert).join('\n')}`).toString('base64');
  const inject = async ({ metadata, webhooks = [] }: Configuration): Promise<void> => {
    const isWanted = metadata?.annotations?.[`${prefix}/inject-cabundle`] === 'true';
    const operations = webhooks.flatMap(({ clientConfig }, index) =>
      clientConfig.caBundle === bundle()
        ? []
        : [{ op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value: bundle() }],
    );
    if (!isWanted || operations.length === 0) return;
    await cluster.patch(configurationPath, { type: 'json', body: operations }).catch(() => undefined);
  };
  const configurations = await cluster.watch<Configuration>(paths.mutatingWebhookConfigurations(), t);
  configurations.onChange(({ object }) => void inject(object));
  const issue = async (): Promise<void> => {
    const { metadata: service } = await cluster.get(servicePath);
    if (service?.annotations?.[`${prefix}/serving-cert-secret-name`] !== secretName)
      throw new Error('the Service does not ask for a certificate');
    const [ca = first] = authorities;
    const host = `${webhookName}.${ownNamespace}.svc`;
    const { cert, key } = await ca.issue({ cn: host, dns: [host, `${host}.cluster.local`] });
    // The chain has the CA, and there is no ca.crt.
    const texts = { 'tls.crt': `${cert}\n${ca.cert}`, 'tls.key': key };
    const owner = { apiVersion: 'v1', kind: 'Service', name: webhookName, uid: service.uid };
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata: { name: secretName, namespace: ownNamespace, ownerReferences: [owner] },
      stringData: texts,
    };
    await cluster.patch(secretPath, { type: 'apply', body, fieldManager: 'service-ca' });
  };
  await issue();
  return {
    bundle,
    /** Trusts the next one first, as it does, and issues the certificate again. */
    replaceCa: async (next: TestCa): Promise<void> => {
      authorities = [next, ...authorities];
      for (const object of configurations.objects.values()) await inject(object);
      await issue();
    },
  };
}

void t.test('the service CA of OpenShift issues the certificate of the webhook', { skip }, async (t) => {
  const chart = await startByChart(t, { certificates: 'serviceCa', agent: { enabled: false } });
  const { cluster, images } = chart;
  const [one, two] = [await createCa('service CA 1'), await createCa('service CA 2')];
  const serviceCa = await startServiceCa(t, cluster, one);
  const { controller } = await chart.start({ 'on-unknown-image': 'allow', certificates: 'serviceCa' });

  const injected = (now: Configuration | undefined): boolean =>
    now?.webhooks?.every(({ clientConfig }) => clientConfig.caBundle === serviceCa.bundle()) ?? false;
  await cluster.waitFor<Configuration>(configurationPath, injected);
  const image = images.push('app', ['arm64']);
  const isInForce = async (): Promise<boolean> => {
    const pod = { metadata: { generateName: 'app-' }, spec: { containers: [{ name: 'app', image }] } };
    const { spec } = await cluster.post<Pod>(paths.pods('default'), pod);
    return isDeepStrictEqual(termsOf({ spec }), [{ matchExpressions: [archIn('arm64')] }]);
  };
  await until(isInForce, 'pods are placed: the API server trusts the webhook');

  const load = createPods(t, cluster);
  await serviceCa.replaceCa(two);
  await cluster.waitFor<Configuration>(configurationPath, injected);
  // The webhook gets the new certificate after two seconds, and reads it within another one.
  await pause(6000);
  const settled = await cluster.get<Configuration>(configurationPath);
  await pause(6000);
  await load.end();
  const now = await cluster.get<Configuration>(configurationPath);
  t.equal(now.metadata?.resourceVersion, settled.metadata?.resourceVersion, 'nobody writes again and again');
  t.ok(injected(now));
  const { data } = await cluster.get<{ readonly data: object }>(secretPath);
  t.strictSame(Object.keys(data).sort(), ['tls.crt', 'tls.key'], 'the controller leaves the Secret alone');
  t.ok(await cluster.get(paths.secrets(ownNamespace, 'archwright-ca')), 'it issues the others');
  t.notMatch(controller.process.log(), /"level":"(?:error|fatal)"/);
});
