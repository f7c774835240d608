/**
 * Certificates by the service CA of OpenShift, with the chart's annotations, Service and rights, a real API
 * server, and a stub of the service CA: it writes the webhook's Secret and `caBundle`, and replaces its CA.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import { stringify } from 'yaml';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { createCa, type TestCa } from '../../support/certificates.ts';
import { archIn, termsOf } from '../../support/placement-input.ts';
import { until } from '../../support/until.ts';
import { render } from '../chart/helm.ts';
import { objectsOf } from '../chart/rendered.ts';
import { ownNamespace, startController, startWebhook, tryPod } from './archwright/archwright.ts';
import { startImages } from './archwright/images.ts';
import { endpointSlice } from './archwright/issued.ts';
import { shortLease } from './archwright/start.ts';
import { freePort, ownAddress } from './control-plane/ports.ts';
import { startCluster, type Cluster } from './harness.ts';

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

const skip = ownAddress === undefined && 'this machine has no address that a Service could have';

void t.test('the service CA of OpenShift issues the certificate of the webhook', { skip }, async (t) => {
  const apiServerFlags = ['--enable-aggregator-routing=true'];
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 }, apiServerFlags }, t);
  await cluster.createNamespace(ownNamespace);
  const images = await startImages(cluster);
  const port = await freePort();
  const values = {
    certificates: 'serviceCa',
    failurePolicy: 'Fail',
    timeoutSeconds: 10,
    agent: { enabled: false },
  };
  const objects = objectsOf(render('helm4', values, ['--no-hooks']));
  const isWanted = ({ apiVersion, kind, metadata }: KubeObject): boolean =>
    apiVersion === 'rbac.authorization.k8s.io/v1' ||
    kind?.startsWith('ValidatingAdmissionPolicy') === true ||
    kind === 'MutatingWebhookConfiguration' ||
    (kind === 'Service' && metadata?.name === webhookName);
  await cluster.applyYaml(
    objects
      .filter(isWanted)
      .map((each) => stringify(each))
      .join('---\n'),
  );
  await cluster.applyYaml(endpointSlice(port));
  const config = join(cluster.directory, 'config');
  await mkdir(config);
  const webhooksFile = join(config, 'webhooks.yaml');
  const map = objects.find(({ data }) => data?.['webhooks.yaml'] !== undefined);
  await writeFile(webhooksFile, map?.data?.['webhooks.yaml'] ?? '');

  const [one, two] = [await createCa('service CA 1'), await createCa('service CA 2')];
  const serviceCa = await startServiceCa(t, cluster, one);
  const tls = { webhookCa: '', webhook: '', agent: '', webhookClient: '', controllerClient: '' };
  const accountOf = (part: string): Promise<string> => {
    const user = { cn: `system:serviceaccount:${ownNamespace}:archwright-${part}` };
    return cluster.identities.kubeconfig(user, cluster.server);
  };
  const settings = { 'on-unknown-image': 'allow' };
  const ofWebhook = {
    ...settings,
    ...images.settings,
    kubeconfig: await accountOf('webhook'),
    certificates: 'serviceCa',
    'inline-budget': '5s',
    listen: `${ownAddress}:${port}`,
  };
  await startWebhook(cluster, { tls, port, settings: ofWebhook });
  const controller = await startController(cluster, {
    tls,
    tuning: shortLease,
    settings: {
      ...settings,
      kubeconfig: await accountOf('controller'),
      certificates: 'serviceCa',
      'webhook-configuration': 'archwright',
      'webhooks-file': webhooksFile,
    },
  });

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

  let failed: unknown;
  const ending = new AbortController();
  const load = (async () => {
    while (!ending.signal.aborted) {
      await tryPod(cluster, { image }).catch((error: unknown) => (failed ??= error));
      await pause(20);
    }
  })();
  await serviceCa.replaceCa(two);
  await cluster.waitFor<Configuration>(configurationPath, injected);
  // The webhook gets the new certificate after two seconds, and reads it within another one.
  await pause(6000);
  const settled = await cluster.get<Configuration>(configurationPath);
  await pause(6000);
  ending.abort();
  await load;
  t.equal(failed, undefined, 'every pod is admitted while the CA is replaced');
  const now = await cluster.get<Configuration>(configurationPath);
  t.equal(now.metadata?.resourceVersion, settled.metadata?.resourceVersion, 'nobody writes again and again');
  t.ok(injected(now));
  const { data } = await cluster.get<{ readonly data: object }>(secretPath);
  t.strictSame(Object.keys(data).sort(), ['tls.crt', 'tls.key'], 'the controller leaves the Secret alone');
  t.ok(await cluster.get(paths.secrets(ownNamespace, 'archwright-ca')), 'it issues the others');
  t.notMatch(controller.process.log(), /"level":"(?:error|fatal)"/);
});
