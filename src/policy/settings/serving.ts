/** Settings of the processes: where they listen, how they find each other, how they start and end. */
import { agentsLocation, listenAddress } from '../kinds/addresses.ts';
import { choice, duration, integer, listOf, text } from '../kinds/plain.ts';
import { optional, setting } from './setting.ts';
import { logLevels } from '../../telemetry/log.ts';

const servers = ['webhook', 'agent'] as const;
const minute = 60_000;

export const servingSettings = {
  listen: setting(listenAddress, {
    default: '127.0.0.1:8443',
    help: 'Address and port for requests; port 0 is any free port.',
    parts: servers,
    restart: true,
  }),
  metricsListen: setting(listenAddress, {
    default: '127.0.0.1:8080',
    help: 'Address and port for metrics and health checks; port 0 is any free port.',
    parts: [...servers, 'controller'],
    restart: true,
  }),
  tlsDir: optional(text('directory'), {
    help: 'Directory with `tls.crt` and `tls.key`, and `ca.crt` for the agent; read again when they change.',
    parts: servers,
    restart: true,
  }),
  inlineBudget: setting(duration(0, 10_000), {
    default: 150,
    help: 'How long an admission waits for an image that is not known yet.',
    parts: ['webhook'],
  }),
  agents: setting(listOf(agentsLocation), {
    default: [],
    help:
      'Where agents are: `https://HOST:PORT` for each of them, or one `dns:NAME:PORT` or ' +
      '`endpointslices:NAMESPACE/SERVICE`, a Service with a port named `api`. Empty: the webhook asks registries itself.',
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
      'A kubeconfig file, to read pull secrets, namespaces and nodes of its cluster, and for `serviceAccountTokens`. Not ' +
      'set: the service account of the pod that it runs in; outside of a cluster none, and for `explain` and `inspect` the ' +
      "user's own.",
    parts: ['agent', 'webhook', 'controller', 'explain', 'inspect', 'clean', 'probe'],
    restart: true,
  }),
  kubeContext: optional(text('context'), {
    help: 'A context of the kubeconfig. Not set: its current one.',
    parts: ['agent', 'webhook', 'controller', 'explain', 'inspect', 'clean', 'probe'],
    restart: true,
    shortFlag: 'context',
  }),
  drainTime: setting(duration(0, 10 * minute), {
    default: 20_000,
    help: 'How long requests in flight may take to end after the process was told to stop.',
    parts: servers,
  }),
  warmUpTime: setting(duration(0, 10 * minute), {
    default: 10_000,
    help: 'How long a starting webhook waits at most for what its agents know before it is ready.',
    parts: ['webhook'],
    restart: true,
  }),
  nodeName: optional(text('node name'), {
    help: 'Name of the node that the agent runs on. Not set: the host name.',
    parts: ['agent'],
    restart: true,
  }),
  agentConcurrency: setting(integer(1, 1000), {
    default: 16,
    help: 'Images of one request that an agent learns about at the same time; others wait.',
    parts: ['agent'],
    restart: true,
  }),
  logLevel: setting(choice(logLevels), {
    default: 'info',
    help: 'Which messages are logged.',
    parts: ['webhook', 'agent', 'controller', 'inspect', 'explain', 'clean', 'probe'],
  }),
};
