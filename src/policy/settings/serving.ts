/** Settings of the processes: where they listen, how they find each other, how they start and end. */
import { agentsLocation, listenAddress } from '../value-kinds/addresses.ts';
import { choice, duration, listOf, text } from '../value-kinds/plain.ts';
import { parts, settingsOf } from './setting.ts';
import { logLevels } from '../../telemetry/log.ts';

const webhook = settingsOf('webhook');
const servers = settingsOf('webhook', 'agent');
const services = settingsOf('webhook', 'agent', 'controller');
const agentClients = settingsOf('webhook', 'controller', 'explain');
const everything = settingsOf(...parts);
const minute = 60_000;

export const servingSettings = {
  listen: servers.atStart(listenAddress, {
    default: '127.0.0.1:8443',
    help: 'Address and port for requests.',
  }),
  metricsListen: services.atStart(listenAddress, {
    default: '127.0.0.1:8080',
    help: 'Address and port for metrics and health checks.',
  }),
  tlsDir: servers.atStart(text('directory'), {
    help: 'Directory with `tls.crt` and `tls.key`, and `ca.crt` for the agent. Default: the webhook reads its own Secret from the cluster.',
  }),
  inlineBudget: webhook.live(duration(0, 10_000), {
    default: 150,
    help: 'How long an admission waits for an unknown image; at most half of the time limit of the call (`timeoutSeconds` of the webhook).',
  }),
  agents: agentClients.atStart(listOf(agentsLocation), {
    default: [],
    help: 'Locations of agents: one `https://HOST:PORT` per agent, or one `endpointslices:NAMESPACE/SERVICE` with a port named `api`. Empty: the webhook inspects images itself.',
  }),
  agentTlsDir: agentClients.atStart(text('directory'), {
    help: 'Directory with `tls.crt`, `tls.key` and `ca.crt` for connections to agents. Default: webhook and controller read their own Secrets from the cluster.',
  }),
  kubeconfig: everything.atStart(text('path'), {
    help: "Kubeconfig file. Default: the service account of the pod. Outside a cluster: none for the servers, the user's own for other commands.",
  }),
  kubeContext: everything.atStart(text('context'), {
    help: 'Context of the kubeconfig. Default: its current context.',
    shortFlag: 'context',
  }),
  drainTime: servers.live(duration(0, 10 * minute), {
    default: 20_000,
    help: 'How long requests in flight may take at shutdown.',
  }),
  logLevel: everything.live(choice(logLevels), { default: 'info', help: 'Lowest level of logged messages.' }),
};
