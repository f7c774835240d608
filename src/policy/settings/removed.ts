/** Settings that are gone. Whoever still has one reads what to do, instead of the most similar name. */
import { didYouMean } from '../../names/suggestion.ts';

const derived = 'this name follows from the setting name, which the chart sets to its full name';
const election = 'the times of the leader election are those of client-go: 15, 10 and 2 seconds';
const writes = 'writes are limited to 400 per second, in bursts to 800';

const removed: Readonly<Record<string, string>> = {
  agentAuthorityDir: 'use the flag --agent-authority-dir of archwright agent',
  agentConcurrency:
    'an agent looks up 128 images at the same time; maxRequestsPerRegistry limits one registry',
  agentServiceAccount: 'use the flag --agent-service-account of archwright controller',
  agentTlsSecret: derived,
  brokenImagesName: derived,
  caSecret: derived,
  caTime: 'the built-in CA is valid for a year',
  controllerClientTlsSecret: derived,
  driftName: derived,
  factsListen: 'use the flag --facts-listen of archwright controller',
  gateWorkers: 'about 1,000 gated pods may wait for lookups at the same time',
  kubeRequestsBurst: writes,
  kubeRequestsPerSecond: writes,
  leaseDuration: election,
  leaseName: derived,
  leaseRenewDeadline: election,
  leaseRetryPeriod: election,
  metricsTlsDir: 'use the flag --metrics-tls: metrics have the certificate in tlsDir',
  movedPodsName: 'the leader remembers its evictions in memory',
  pullSecretCacheTime: 'a pull secret is cached for a minute',
  reportName: derived,
  runningImagesMetric: 'running images are always counted',
  warmUpTime: 'a starting webhook waits for image facts of agents for up to 10 seconds',
  webhookAbsenceTime:
    'Fail stays Fail; set failurePolicy to Ignore if pods must be created while no webhook answers',
  webhookClientCa: 'use the flag --webhook-client-ca of archwright webhook',
  webhookClientTlsSecret: derived,
  webhookNames: 'the names in the webhook’s certificate are those in webhooksFile',
  webhookPathDir: 'the webhook reads webhookPathSecret from the cluster',
  webhookPathRotation: 'the webhook’s path is replaced every seven days',
  webhookTlsSecret: derived,
};

/**
 * The end of a message about an unknown setting.
 * @param name as it is written
 * @param known such names
 * @param nameOf the name of a key, such as its variable. Default: the key
 */
export function hintAboutUnknown(
  name: string,
  known: Iterable<string>,
  nameOf: (key: string) => string = (key) => key,
): string {
  const [, instead] = Object.entries(removed).find(([key]) => nameOf(key) === name) ?? [];
  return instead === undefined ? didYouMean(name, known) : `; it was removed: ${instead}`;
}
