/** Settings of the processes: where they listen, how they find each other, how they start and end. */
import { agentsLocation, listenAddress } from '../value-kinds/addresses.ts';
import { choice, duration, integer, listOf, text } from '../value-kinds/plain.ts';
import { optional, setting } from './setting.ts';
import { logLevels } from '../../telemetry/log.ts';

const servers = ['webhook', 'agent'] as const;
const minute = 60_000;

export const servingSettings = {
  listen: setting(listenAddress, {
    default: '127.0.0.1:8443',
    help: 'Address and port for requests. Port 0: any free port.',
    parts: servers,
    restart: true,
  }),
  metricsListen: setting(listenAddress, {
    default: '127.0.0.1:8080',
    help: 'Address and port for metrics and health checks. Port 0: any free port.',
    parts: [...servers, 'controller'],
    restart: true,
  }),
  tlsDir: optional(text('directory'), {
    help: 'Directory with `tls.crt` and `tls.key`, and `ca.crt` for the agent. Changes are read.',
    parts: servers,
    restart: true,
  }),
  inlineBudget: setting(duration(0, 10_000), {
    default: 150,
    help: 'How long an admission waits for an unknown image.',
    parts: ['webhook'],
  }),
  agents: setting(listOf(agentsLocation), {
    default: [],
    help:
      'Addresses of agents: `https://HOST:PORT` for each agent, one `dns:NAME:PORT`, or one ' +
      '`endpointslices:NAMESPACE/SERVICE`, a Service with a port named `api`. Empty: the webhook ' +
      'inspects images itself.',
    parts: ['webhook', 'controller', 'explain'],
    restart: true,
  }),
  agentTlsDir: optional(text('directory'), {
    help: 'Directory with `tls.crt`, `tls.key` and `ca.crt` for connections to agents.',
    parts: ['webhook', 'controller', 'explain'],
    restart: true,
  }),
  kubeconfig: optional(text('path'), {
    help:
      'Kubeconfig file of the cluster, for pull secrets, namespaces, nodes and `serviceAccountTokens`. ' +
      "Default: the service account of archwright's own pod; outside of a cluster none, and for " +
      "`explain` and `inspect` the user's own.",
    parts: ['agent', 'webhook', 'controller', 'explain', 'inspect', 'clean', 'probe'],
    restart: true,
  }),
  kubeContext: optional(text('context'), {
    help: 'Context of the kubeconfig. Default: its current context.',
    parts: ['agent', 'webhook', 'controller', 'explain', 'inspect', 'clean', 'probe'],
    restart: true,
    shortFlag: 'context',
  }),
  drainTime: setting(duration(0, 10 * minute), {
    default: 20_000,
    help: 'How long requests in flight may take after a shutdown begins.',
    parts: servers,
  }),
  warmUpTime: setting(duration(0, 10 * minute), {
    default: 10_000,
    help: 'How long a starting webhook waits for the image facts of its agents before it is ready.',
    parts: ['webhook'],
    restart: true,
  }),
  nodeName: optional(text('node name'), {
    help: 'Name of the node that the agent runs on. Default: the host name.',
    parts: ['agent'],
    restart: true,
  }),
  agentConcurrency: setting(integer(1, 1000), {
    default: 16,
    help: 'Images of one request that an agent inspects concurrently. Further images wait.',
    parts: ['agent'],
    restart: true,
  }),
  logLevel: setting(choice(logLevels), {
    default: 'info',
    help: 'Lowest level of logged messages.',
    parts: ['webhook', 'agent', 'controller', 'inspect', 'explain', 'clean', 'probe'],
  }),
};
