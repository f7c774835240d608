/** Settings that are gone. Whoever still has one reads what to do, instead of the most similar name. */
import { didYouMean } from '../../names/suggestion.ts';

/** Names, and what to do instead. */
const removed: readonly (readonly [names: string, instead: string])[] = [
  ['agentAuthorityDir', 'use the flag --agent-authority-dir of archwright agent'],
  [
    'agentConcurrency',
    'an agent looks up 128 images at the same time; maxRequestsPerRegistry limits one registry',
  ],
  ['agentServiceAccount', 'use the flag --agent-service-account of archwright controller'],
  ['caTime', 'the built-in CA is valid for a year'],
  ['factsListen', 'use the flag --facts-listen of archwright controller'],
  ['gateWorkers', 'about 1,000 gated pods may wait for lookups at the same time'],
  ['kubeRequestsBurst kubeRequestsPerSecond', 'writes are limited to 400 per second, in bursts to 800'],
  [
    'leaseDuration leaseRenewDeadline leaseRetryPeriod',
    'the times of the leader election are those of client-go: 15, 10 and 2 seconds',
  ],
  ['metricsTlsDir', 'use the flag --metrics-tls: metrics have the certificate in tlsDir'],
  ['nodeName', 'use the flag --node-name of archwright agent'],
  ['movedPodsName', 'the leader remembers its evictions in memory'],
  ['pullSecretCacheTime', 'a pull secret is cached for a minute'],
  ['runningImagesMetric', 'running images are always counted'],
  ['warmUpTime', 'a starting webhook waits for image facts of agents for up to 10 seconds'],
  [
    'webhookAbsenceTime',
    'Fail stays Fail; set failurePolicy to Ignore if pods must be created while no webhook answers',
  ],
  ['webhookClientCa', 'use the flag --webhook-client-ca of archwright webhook'],
  ['webhookNames', 'the names in the webhook’s certificate are those in the file of --webhooks-file'],
  ['webhookPathDir', 'the webhook reads webhookPathSecret from the cluster'],
  ['webhookPathRotation', 'the webhook’s path is replaced every seven days'],
  ['webhooksFile', 'use the flag --webhooks-file of archwright controller'],
  [
    'agentTlsSecret brokenImagesName caSecret controllerClientTlsSecret driftName leaseName reportName ' +
      'webhookClientTlsSecret webhookTlsSecret',
    'this name follows from the setting name, which the chart sets to its full name',
  ],
];

/** The end of a message about an unknown setting. @param nameOf the name of a key, such as its variable */
export function hintAboutUnknown(
  name: string,
  known: Iterable<string>,
  nameOf: (key: string) => string = (key) => key,
): string {
  const [, instead] = removed.find(([names]) => names.split(' ').some((key) => nameOf(key) === name)) ?? [];
  return instead === undefined ? didYouMean(name, known) : `; it was removed: ${instead}`;
}
