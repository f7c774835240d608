/** Settings of where registries are reached, and with which credentials. */
import { defaultPerHost } from '../../async/semaphore.ts';
import { registryHost, registryPattern, registryProxy } from '../value-kinds/addresses.ts';
import { duration, integer, listOf, text } from '../value-kinds/plain.ts';
import { optional, setting } from './setting.ts';

const parts = ['webhook', 'agent', 'inspect', 'explain'] as const;

export const registrySettings = {
  hostRoot: setting(text('directory'), {
    default: '/',
    help: 'Directory with the files of the node; `/host` if a container mounts them there.',
    parts: ['agent', 'inspect', 'explain'],
    restart: true,
  }),
  credsDir: optional(text('directory'), {
    help: 'Directory with one file per registry, `<registry>.toml`, with `user` and `secret`.',
    parts,
    restart: true,
  }),
  dockerConfigPathCandidates: optional(listOf(text('path')), {
    help:
      "Docker configuration files; the first readable one applies. Default: the kubelet's locations, and " +
      "on the command line the user's own docker login.",
    parts: ['agent', 'inspect', 'explain'],
    restart: true,
    shortFlag: 'docker-config',
  }),
  dockerConfigFile: optional(text('path'), {
    help:
      'Additional docker configuration, such as a mounted Secret of type ' +
      '`kubernetes.io/dockerconfigjson`. The path is not relative to `hostRoot`.',
    parts,
    restart: true,
  }),
  privateRegistries: setting(listOf(registryPattern), {
    default: [],
    help:
      'Registries, or paths in them, that never get anonymous requests. `*` matches one part of a host ' +
      'name.',
    parts,
  }),
  proxies: setting(listOf(registryProxy), {
    default: [],
    help: 'Mirrors that are tried before a registry, such as `docker.io=docker-proxy.example.com`.',
    parts,
  }),
  insecureRegistries: setting(listOf(registryHost), {
    default: [],
    help: 'Registries that need no trusted certificate. Plain HTTP is used if they do not support TLS.',
    parts,
  }),
  caFiles: setting(listOf(text('path')), {
    default: [],
    help: "Files with CA certificates for registries in PEM, in addition to the system's.",
    parts,
    restart: true,
  }),
  pullSecretCacheTime: setting(duration(0, 3_600_000), {
    default: 60_000,
    help: 'How long a pull secret is cached.',
    parts: ['webhook', 'controller'],
    restart: true,
  }),
  maxRequestsPerRegistry: setting(integer(1, 1000), {
    default: defaultPerHost,
    help: 'Concurrent requests to one registry host. Further requests wait.',
    parts,
    restart: true,
  }),
};
