/** The shape that the placement needs. The API server checks objects only after mutation. */
import type { Pod, PodTemplate } from '../kube/api/objects.ts';
import { isRecord } from '../names/values.ts';

export class InvalidObject extends Error {
  override readonly name = 'InvalidObject';
}

/** Finds what is wrong: the path from the value on, and what was expected there. */
type Check = (value: unknown) => readonly [path: string, expected: string] | undefined;

const text: Check = (value) => (typeof value === 'string' ? undefined : ['', 'a string']);

/** Labels, annotations, node selectors. */
const texts: Check = (value) => {
  if (!isRecord(value)) return ['', 'an object'];
  return Object.values(value).every((each) => typeof each === 'string')
    ? undefined
    : ['', 'an object of strings'];
};

function list(items: 'objects' | 'strings', check: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return ['', 'a list'];
    for (const item of value) {
      const [path, expected] = check(item) ?? [];
      if (path !== undefined && expected !== undefined)
        return path === '' ? ['', `a list of ${items}`] : [`[]${path}`, expected];
    }
    return undefined;
  };
}

/** @param required the field that must be there; others may be absent or null */
function object(fields: Readonly<Record<string, Check>>, required?: string): Check {
  const checks = Object.entries(fields);
  return (value) => {
    if (!isRecord(value)) return ['', 'an object'];
    for (const [name, check] of checks) {
      const field = value[name] ?? undefined;
      const wrong = field === undefined && name !== required ? undefined : check(field);
      if (wrong) return [`.${name}${wrong[0]}`, wrong[1]];
    }
    return undefined;
  };
}

const containers = list('objects', object({ name: text, image: text, imagePullPolicy: text }));
const requirements = list('objects', object({ key: text, operator: text, values: list('strings', text) }));
const term = object({ matchExpressions: requirements, matchFields: requirements });

/** What placement reads in a pod or a pod template. */
const template = object(
  {
    metadata: object({ labels: texts, annotations: texts }),
    spec: object(
      {
        containers,
        initContainers: containers,
        volumes: list(
          'objects',
          object({ name: text, image: object({ reference: text, pullPolicy: text }) }),
        ),
        imagePullSecrets: list('objects', object({ name: text })),
        nodeName: text,
        serviceAccountName: text,
        runtimeClassName: text,
        nodeSelector: texts,
        tolerations: list('objects', object({ key: text, operator: text, value: text, effect: text })),
        schedulingGates: list('objects', object({ name: text })),
        os: object({ name: text }),
        affinity: object({
          nodeAffinity: object({
            requiredDuringSchedulingIgnoredDuringExecution: object({
              nodeSelectorTerms: list('objects', term),
            }),
            preferredDuringSchedulingIgnoredDuringExecution: list('objects', object({ preference: term })),
          }),
        }),
      },
      'containers',
    ),
  },
  'spec',
);

/** @throws InvalidObject */
export function podOf(value: unknown): Pod {
  return templateOf(value, 'object');
}

/** @param where path of the value, for the error @throws InvalidObject */
export function templateOf(value: unknown, where: string): PodTemplate {
  const wrong = template(value);
  if (wrong) throw new InvalidObject(`${where}${wrong[0]} is not ${wrong[1]}`);
  return value as PodTemplate;
}
