/** Settings of the processes: where they listen, how they find each other, how they start and end. */
import { agentsLocation, listenAddress } from '../value-kinds/addresses.ts';
import { choice, duration, integer, listOf, text } from '../value-kinds/plain.ts';
import { parts, settingsOf } from './setting.ts';
import { logLevels } from '../../telemetry/log.ts';

const webhook = settingsOf('webhook');
const agent = settingsOf('agent');
const controller = settingsOf('controller');
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
  metricsTlsDir: servers.atStart(text('directory'), {
    help: 'Directory with `tls.crt` and `tls.key` for `metricsListen`. Default: no TLS.',
  }),
  tlsDir: servers.atStart(text('directory'), {
    help: 'Directory with `tls.crt` and `tls.key`, and `ca.crt` for the agent.',
  }),
  webhookPathDir: webhook.atStart(text('directory'), {
    help: 'Directory with the content of `webhookPathSecret`. Reviews at other paths are refused. Default: the path is `/mutate`.',
  }),
  webhookClientCa: webhook.atStart(text('path'), {
    help: "PEM file with the CA of the API server's client certificate (AdmissionConfiguration, `kubeConfigFile`). Reviews without such a certificate are refused.",
  }),
  inlineBudget: webhook.live(duration(0, 10_000), {
    default: 150,
    help: 'How long an admission waits for an unknown image.',
  }),
  agents: agentClients.atStart(listOf(agentsLocation), {
    default: [],
    help: 'Locations of agents: one `https://HOST:PORT` per agent, or one `endpointslices:NAMESPACE/SERVICE` with a port named `api`. Empty: the webhook inspects images itself.',
  }),
  agentAuthorityDir: agent.atStart(text('directory'), {
    help: 'Directory with `ca.crt`, and a `tls.crt` from the CA that signs now. The agent then requests its certificate from the cluster and writes it to `tlsDir`.',
  }),
  agentTlsDir: agentClients.atStart(text('directory'), {
    help: 'Directory with `tls.crt`, `tls.key` and `ca.crt` for connections to agents.',
  }),
  kubeconfig: everything.atStart(text('path'), {
    help: "Kubeconfig file. Default: the service account of the pod. Outside a cluster: none; for `explain` and `inspect` the user's own.",
  }),
  kubeContext: everything.atStart(text('context'), {
    help: 'Context of the kubeconfig. Default: its current context.',
    shortFlag: 'context',
  }),
  factsListen: controller.atStart(listenAddress, {
    help: 'Address and port for requests of `explain` and `report`, which arrive through the API server. Default: none.',
  }),
  drainTime: servers.live(duration(0, 10 * minute), {
    default: 20_000,
    help: 'How long requests in flight may take at shutdown.',
  }),
  warmUpTime: webhook.atStart(duration(0, 10 * minute), {
    default: 10_000,
    help: 'How long a starting webhook waits for image facts of agents.',
  }),
  nodeName: agent.atStart(text('node name'), {
    help: 'Name of the agent’s node. Default: the host name.',
  }),
  agentConcurrency: agent.atStart(integer(1, 1000), {
    default: 128,
    help: 'Images that an agent looks up concurrently. One busy namespace gets a third.',
  }),
  logLevel: everything.live(choice(logLevels), { default: 'info', help: 'Lowest level of logged messages.' }),
};
