/** Settings of image lookups: what is remembered, where registries are reached, and with which credentials. */
import { registryGlob, registryHost, registryPattern, registryProxy } from '../value-kinds/addresses.ts';
import { duration, flag, integer, listOf, matching, maxTimerMs, size, text } from '../value-kinds/plain.ts';
import { settingsOf } from './setting.ts';

const minute = 60_000;
const day = 86_400_000;
const mebibyte = 1_048_576;

const services = settingsOf('webhook', 'agent', 'controller');
const registries = settingsOf('webhook', 'agent', 'inspect', 'explain');
const lookups = settingsOf('webhook', 'agent', 'controller', 'inspect', 'explain');
const node = settingsOf('agent', 'inspect', 'explain');
const agentClients = settingsOf('webhook', 'controller', 'explain');

export const imageSettings = {
  ifNotPresentCacheTime: services.live(duration(1000, 365 * day), {
    default: 7 * day,
    help: 'How long image facts of a tag are cached.',
  }),
  pullAlwaysCacheTime: services.live(duration(0, 365 * day), {
    help: 'How long they are cached for the pull policy `Always`. Default: not cached.',
  }),
  revalidateInterval: services.live(duration(1000, maxTimerMs), {
    default: 15 * minute,
    help: 'How often a cached tag in use is compared with its registry, by a `HEAD`.',
  }),
  cacheSize: services.atStart(size(mebibyte, 16 * 1024 * mebibyte), {
    default: 64 * mebibyte,
    help: 'Memory for image facts; the least recently used are removed first.',
  }),
  inspectTimeout: lookups.atStart(duration(100, 10 * minute), {
    default: 15_000,
    help: 'Time limit for one image, over all endpoints and credentials.',
  }),
  stateDir: settingsOf('agent').atStart(text('directory'), {
    help: 'Directory for the agent’s image facts, to survive restarts. Default: memory only.',
  }),
};

/** The API server checks the rest (kubernetes apimachinery pkg/labels/selector.go). */
const selector = matching(
  '^[A-Za-z0-9_./!=,() -]+$',
  'must be a label selector such as `pool=system`, not {}',
);

export const registrySettings = {
  allowedRegistries: lookups.live(listOf(registryGlob), {
    default: [],
    help: 'Registries or repositories that may be inspected, such as `ghcr.io/team/**`, with the patterns of `imageOverrides`. Other images are unknown. Empty: all.',
  }),
  deniedRegistries: lookups.live(listOf(registryGlob), {
    default: [],
    help: 'Registries or repositories that are never inspected, even if allowed. A host without a port means every port.',
  }),
  allowLoopbackRegistries: lookups.live(flag, {
    default: true,
    help: 'Inspects images of registries on the same machine, such as `localhost:5000/app`. Default in the chart: `false`, because the address could be any service of the node.',
  }),
  hostRoot: node.atStart(text('directory'), {
    default: '/',
    help: 'Directory with the files of the node; `/host` if a container mounts them there.',
  }),
  credsDir: registries.atStart(text('directory'), {
    help: 'Directory with one file per registry, `<registry>.toml`, with `user` and `secret`.',
  }),
  credsFiles: registries.atStart(listOf(text('name')), {
    default: [],
    help: 'Files that `credsDir` must have; missing ones are reported. The chart sets it.',
  }),
  dockerConfigPathCandidates: node.atStart(listOf(text('path')), {
    help:
      "Docker configuration files; the first readable file applies. Default: the kubelet's locations, and " +
      "on the command line the user's own docker login.",
    shortFlag: 'docker-config',
  }),
  dockerConfigFile: registries.atStart(text('path'), {
    help: 'Additional docker configuration, such as a mounted Secret of type `kubernetes.io/dockerconfigjson`; not below `hostRoot`.',
  }),
  privateRegistries: registries.live(listOf(registryPattern), {
    default: [],
    help:
      'Registries, or paths in them, that never get anonymous requests. `*` matches one part of a host ' +
      'name.',
  }),
  proxies: registries.live(listOf(registryProxy), {
    default: [],
    help: 'Mirrors that are tried before a registry, such as `docker.io=docker-proxy.example.com`.',
  }),
  insecureRegistries: registries.live(listOf(registryHost), {
    default: [],
    help: 'Registries without a trusted certificate. Plain HTTP is used if they have no TLS.',
  }),
  caFiles: registries.atStart(listOf(text('path')), {
    default: [],
    help: "PEM files with CA certificates for registries, in addition to the system's.",
  }),
  pullSecretNodes: agentClients.atStart(text('label selector', selector), {
    help: 'Selector of the nodes whose agents may receive pull secrets, such as `pool=system` or `!gpu,zone in (a,b)`. Agents by URL then receive none. Default: all nodes.',
  }),
  maxRequestsPerRegistry: registries.atStart(integer(1, 1000), {
    // Registries and their proxies throttle clients with many connections.
    default: 32,
    help: 'Images that an agent looks up concurrently at one registry host. One busy namespace gets a third.',
  }),
};
