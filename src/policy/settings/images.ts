/**
 * Settings of image lookups: what is remembered, where registries are reached, with which credentials, and what
 * is taken over from the node of an agent: from its kubelet and its container runtime.
 */
import { registryGlob, registryHost, registryPattern, registryProxy } from '../value-kinds/addresses.ts';
import {
  choice,
  duration,
  flag,
  integer,
  listOf,
  matching,
  maxTimerMs,
  size,
  tableOf,
  text,
} from '../value-kinds/plain.ts';
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
    help: "Docker configuration files; the first readable file applies. Default: the kubelet's locations, and on the command line the user's own docker login.",
    shortFlag: 'docker-config',
  }),
  dockerConfigFile: registries.atStart(text('path'), {
    help: 'Additional docker configuration, such as a mounted Secret of type `kubernetes.io/dockerconfigjson`; not below `hostRoot`.',
  }),
  privateRegistries: registries.live(listOf(registryPattern), {
    default: [],
    help: 'Registries, or paths in them, that never get anonymous requests. `*` matches one part of a host name.',
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

/** Names that a process can have, in the usual form (POSIX, Base Definitions 8.1). */
const variableName = matching(
  '^[A-Za-z_][A-Za-z0-9_]*$',
  '{} is not a valid variable name: letters, digits and underscores, not beginning with a digit',
);

export const kubeletSettings = {
  'kubeletConfig.config': node.atStart(text('path'), {
    help: "Configuration file of the credential provider plugins, below `hostRoot`: the kubelet's flag `--image-credential-provider-config`. Needs `kubeletConfig.binDir`. With `kubeletConfig.configDir`: the name of a file there.",
  }),
  'kubeletConfig.configDir': node.atStart(text('directory'), {
    help: 'Directory of such configuration files (since Kubernetes 1.34). All of its `.json`, `.yaml` and `.yml` files are combined.',
  }),
  'kubeletConfig.binDir': node.atStart(text('directory'), {
    help: "Directory of the plugins' programs, below `hostRoot`: `--image-credential-provider-bin-dir`.",
  }),
  serviceAccountTokens: settingsOf('agent', 'inspect', 'explain', 'webhook', 'controller').atStart(flag, {
    default: false,
    help: 'Requests service account tokens for plugins with `tokenAttributes`. Without it, these plugins are left out. Webhook and controller need it too: facts may then depend on the account of a pod. Needs far-reaching rights: docs/install/kubelet.md.',
  }),
  kubeletEnvironment: node.atStart(tableOf(variableName, text('value')), {
    default: {},
    help: "Environment of the plugins, such as `AWS_REGION`, added to that of the node's kubelet.",
  }),
};

export const absolutePathRule = matching(
  '^/',
  'must be an absolute path, which is taken below hostRoot, not {}',
);
const absolutePath = text('path', absolutePathRule);

/** `auto`: as the files of the node say. */
export const runtimeChoices = ['auto', 'containerd', 'cri-o'] as const;

export const runtimeSettings = {
  runtime: node.atStart(choice(runtimeChoices), {
    default: 'auto',
    help: 'Container runtime of the node, whose configuration applies. `auto`: CRI-O if the kubelet names its socket, or its socket or files exist; otherwise containerd.',
  }),
  containerdConfigPathCandidates: node.atStart(listOf(absolutePath), {
    help: "Candidates for containerd's `config.toml` below `hostRoot`, or for its directory. The first that exists applies. Default: the locations of distributions. Empty: containerd's configuration is ignored.",
  }),
  containerdVersion: node.atStart(
    text('version', matching('^v?[0-9]+\\.[0-9]+', 'must be a version of containerd such as 2.1.4, not {}')),
    {
      help: "Version of containerd, which determines the rules of its configuration. Default: the version that the node's program reports, or the newest if it cannot be run.",
    },
  ),
  mirrorCredentials: node.live(flag, {
    default: true,
    help: 'Sends the credentials of a registry to the mirrors in containerd’s configuration, as containerd does.',
  }),
};
