/** Noe: the values of its chart, or the flags in the manifest of its Deployment. */
import { isRecord } from '../../src/names/values.ts';
import type { JsonObject } from '../../src/http/json.ts';
import {
  argumentsOf,
  convertEach,
  dropped,
  metadataValues,
  same,
  textsOf,
  usesImage,
  type Conversion,
  type Origin,
} from './conversion.ts';

/** Values of its chart that nothing else has in this combination. */
const marks = [
  'dockerConfigPathCandidates',
  'containerdConfigPathCandidates',
  'kubeletConfig',
  'proxies',
  'matchNodeLabels',
];

const values: Readonly<Record<string, Conversion>> = {
  dockerConfigPathCandidates: same('dockerConfigPathCandidates'),
  containerdConfigPathCandidates: (value, into) =>
    into.set('containerdConfigPathCandidates', textsOf(value).map(configFileOf)),
  proxies: same('proxies'),
  matchNodeLabels: same('matchNodeLabels'),
  privateRegistries: same('privateRegistries'),
  schedulableArchitectures: same('schedulableArchitectures'),
  preferredArchitecture: same('preferredArchitecture'),
  kubeletConfig: (value, into) => into.set('kubeletConfig', kubeletConfig(value)),
  image: dropped('archwright has an image of its own; set image.repository where you mirror it'),
  replicas: dropped('webhook.replicas is 2 by default'),
  ...Object.fromEntries(metadataValues.map((name) => [name, same(name)])),
};

const metrics = dropped('metrics are served on metricsListen, which the chart sets');

const flags: Readonly<Record<string, Conversion>> = {
  'preferred-arch': same('preferredArchitecture'),
  'cluster-schedulable-archs': list('schedulableArchitectures'),
  'registry-proxies': list('proxies'),
  'match-node-labels': list('matchNodeLabels'),
  'private-registries': list('privateRegistries'),
  'image-credential-provider-bin-dir': same('kubeletConfig.binDir'),
  'image-credential-provider-config': same('kubeletConfig.config'),
  'system-os': (value, into) => {
    if (value !== 'linux') into.note('is left out: the operating system is that of each pod (spec.os.name)');
  },
  'leader-elect': dropped('controllers always elect a leader'),
  'metrics-addr': metrics,
  'metrics-bind-address': metrics,
  'health-probe-bind-address': dropped('health is served beside the metrics'),
  'certs-dir': dropped('certificates come from Secrets that the controller or cert-manager writes'),
};

export const noe: Origin = {
  name: 'Noe',
  recognizes: (document) =>
    usesImage(document, /(?:^|\/)noe(?::|@|$)/) ||
    (document['kind'] === undefined && marks.some((mark) => Object.hasOwn(document, mark))),
  convert: (document) => {
    const label = {
      key: 'arch.noe.adevinta.com/preferred',
      text: 'on pods is honored with compat.labels=true, which is set; arch.example/preferred is its new name',
    };
    const { values: found, notes } = Object.hasOwn(document, 'kind')
      ? convertEach(argumentsOf(document), flags)
      : convertEach(document, values);
    const all = { ...nested(found), compat: { labels: true } };
    return { values: all, resources: [], notes: [...notes, label] };
  },
};

/** Its chart mounts the file `config` of `configDir`; ours takes the path of the file. */
function kubeletConfig(value: unknown): JsonObject {
  if (!isRecord(value)) return {};
  const { binDir, configDir, config } = value;
  const bin = binDir === undefined ? {} : { binDir };
  if (typeof config !== 'string') return { ...bin, ...(configDir !== undefined && { configDir }) };
  const isWhole = config.startsWith('/') || typeof configDir !== 'string';
  return { ...bin, config: isWhole ? config : `${configDir.replace(/\/$/, '')}/${config}` };
}

/** Its candidates are directories, ours are files. */
function configFileOf(path: string): string {
  return path.endsWith('.toml') ? path : `${path.replace(/\/$/, '')}/config.toml`;
}

function list(name: string): Conversion {
  const items = (value: unknown): readonly string[] =>
    String(value)
      .split(',')
      .filter((item) => item !== '');
  return (value, into) => into.set(name, items(value));
}

/** `kubeletConfig.binDir` as values files have it. */
function nested(flat: Readonly<Record<string, unknown>>): JsonObject {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(flat)) {
    const [table = '', field] = key.split('.');
    if (field === undefined) result[key] = value;
    else result[table] = { ...(result[table] as JsonObject | undefined), [field]: value };
  }
  return result;
}
