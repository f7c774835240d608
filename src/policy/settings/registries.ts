/** Settings of where registries are reached, and with which credentials. */
import { defaultPerHost } from '../../async/semaphore.ts';
import { registryHost, registryPattern, registryProxy } from '../kinds/addresses.ts';
import { duration, integer, listOf, text } from '../kinds/plain.ts';
import { optional, setting } from './setting.ts';

const parts = ['webhook', 'agent', 'inspect', 'explain'] as const;

export const registrySettings = {
  hostRoot: setting(text('directory'), {
    default: '/',
    help: "Directory under which the node's own files are found; `/host` where a container mounts them there.",
    parts: ['agent', 'inspect', 'explain'],
    restart: true,
  }),
  credsDir: optional(text('directory'), {
    help: 'Directory with one file per registry, `<registry>.toml`, each with `user` and `secret`.',
    parts,
    restart: true,
  }),
  dockerConfigPathCandidates: optional(listOf(text('path')), {
    help:
      'Docker configuration files of which the first that can be read counts. Not set: where the kubelet looks, ' +
      "and on the command line the user's own docker login.",
    parts: ['agent', 'inspect', 'explain'],
    restart: true,
    shortFlag: 'docker-config',
  }),
  dockerConfigFile: optional(text('path'), {
    help:
      'A docker configuration besides those of the node, such as a mounted Secret of type `kubernetes.io/dockerconfigjson`; the ' +
      'path is not below `hostRoot`.',
    parts,
    restart: true,
  }),
  privateRegistries: setting(listOf(registryPattern), {
    default: [],
    help: 'Registries, or paths of them, that are never asked anonymously; `*` stands for one part of a host name.',
    parts,
  }),
  proxies: setting(listOf(registryProxy), {
    default: [],
    help: 'Mirrors that are asked before a registry, such as `docker.io=docker-proxy.example.com`.',
    parts,
  }),
  insecureRegistries: setting(listOf(registryHost), {
    default: [],
    help: 'Registries that need no trusted certificate, and are reached by plain HTTP where they speak no TLS.',
    parts,
  }),
  caFiles: setting(listOf(text('path')), {
    default: [],
    help: "Files with certificates in PEM that registries' certificates may be signed by, besides the system's.",
    parts,
    restart: true,
  }),
  pullSecretCacheTime: setting(duration(0, 3_600_000), {
    default: 60_000,
    help: "How long a pod's pull secret is remembered after it was read from the cluster.",
    parts: ['webhook', 'controller'],
    restart: true,
  }),
  maxRequestsPerRegistry: setting(integer(1, 1000), {
    default: defaultPerHost,
    help: 'Requests to one registry host at the same time; others wait.',
    parts,
    restart: true,
  }),
};
