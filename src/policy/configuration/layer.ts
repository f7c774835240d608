/**
 * Layers: the settings of the file, the environment or the flags. Overridden values are checked too. Each
 * problem has its position for a person to fix it.
 */
import { isTable } from '../value-kinds/plain.ts';
import { hintAboutUnknown } from '../settings/removed.ts';
import { flagName, variableName, type Path, type Settings } from '../settings/setting.ts';
import { formatKey, parseToml, TomlError, type TomlDocument } from './toml.ts';

export interface Place {
  readonly kind: 'file' | 'environment' | 'flag' | 'default';
  /** The origin, for people: `archwright.toml:12`, `ARCHWRIGHT_LISTEN`, `--listen`; empty for a default. */
  readonly where: string;
  /** Counted from 1. */
  readonly line?: number;
}

export interface Problem extends Place {
  /** The setting, or a path in its value: `tolerations[0].key`; empty: the whole source. */
  readonly key: string;
  /** Reads on from the key: `must be …`. */
  readonly message: string;
}

export function describeProblem(problem: Problem): string {
  return [problem.where === '' ? '' : `${problem.where}:`, problem.key, problem.message]
    .filter((part) => part !== '')
    .join(' ');
}

/** A path as people write it: `architectures.arm64.taintsToTolerate[0].key`. */
export function describePath(path: Path): string {
  return path
    .map((step, index) =>
      typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${formatKey(step)}`,
    )
    .join('');
}

export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[]) {
    super(problems.map(describeProblem).join('\n'));
    this.problems = problems;
  }
}

export interface Written {
  readonly value: unknown;
  /** The position of a path inside the value. Default: the value itself. */
  place(path?: Path): Place;
}

export interface Layer {
  /** Values that could be read, by TOML key. */
  readonly values: ReadonlyMap<string, Written>;
  readonly problems: readonly Problem[];
}

export const otherVariables: Readonly<Record<string, string>> = {
  ARCHWRIGHT_CONFIG: 'Path of the configuration file; `--config` wins over it.',
  ARCHWRIGHT_VECTORS: 'Directory of test vectors, for development.',
  ARCHWRIGHT_COMMIT: 'Commit that a bundle reports, for development.',
  ARCHWRIGHT_E2E_CACHE: 'Directory where end-to-end tests keep the programs they build, for development.',
};

/**
 * Kubernetes sets such variables for each Service of a container's namespace (kubernetes
 * pkg/kubelet/envvars/envvars.go), and the names of archwright's own Services begin with `archwright`.
 */
export const serviceVariable =
  /^ARCHWRIGHT_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;

export function fileLayer(settings: Settings, file: string, text: string): Layer {
  const collector = collectorOf(settings);
  let document: TomlDocument;
  try {
    document = parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const place: Place = { kind: 'file', where: `${file}:${error.where}`, line: error.where };
    return { values: new Map(), problems: [{ ...place, key: '', message: error.message }] };
  }
  const place = (path: Path): Place => {
    const line = document.lineOf(path);
    return { kind: 'file', where: `${file}:${line}`, line };
  };

  function walk(table: Readonly<Record<string, unknown>>, above: readonly string[]): void {
    for (const [step, value] of Object.entries(table)) {
      const path = [...above, step];
      const key = path.join('.');
      const isGroup = Object.keys(settings).some((known) => known.startsWith(`${key}.`));
      if (Object.hasOwn(settings, key)) collector.add(key, value, (inner = []) => place([...path, ...inner]));
      else if (isGroup && isTable(value)) walk(value, path);
      else {
        const message = isGroup
          ? 'must be a table'
          : `is not a known setting${hintAboutUnknown(key, Object.keys(settings))}`;
        collector.problem(place(path), key, message);
      }
    }
  }
  walk(document.value, []);
  return collector;
}

export function environmentLayer(
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
): Layer {
  const collector = collectorOf(settings);
  const keys = new Map(Object.keys(settings).map((key) => [variableName(key), key]));
  for (const [name, text] of Object.entries(env)) {
    if (text === undefined || !name.startsWith('ARCHWRIGHT_')) continue;
    if (Object.hasOwn(otherVariables, name) || serviceVariable.test(name)) continue;
    const place: Place = { kind: 'environment', where: name };
    const key = keys.get(name);
    if (key === undefined) {
      const hint = hintAboutUnknown(name, keys.keys(), variableName);
      collector.problem(place, '', `is not a known variable${hint}`);
    } else collector.addText(key, text, place);
  }
  return collector;
}

/** @param flags texts by TOML key; lists separated by commas, `true` and `false` for switches */
export function flagLayer(settings: Settings, flags: Readonly<Record<string, string>>): Layer {
  const collector = collectorOf(settings);
  for (const [key, text] of Object.entries(flags)) {
    collector.addText(key, text, { kind: 'flag', where: `--${flagName(key)}` });
  }
  return collector;
}

function collectorOf(settings: Settings) {
  const values = new Map<string, Written>();
  const problems: Problem[] = [];
  function problem(place: Place, key: string, message: string): void {
    problems.push({ ...place, key, message });
  }
  function add(key: string, raw: unknown, place: Written['place']): void {
    const value = settings[key]?.kind.read(raw, (message, path = []) =>
      problem(place(path), describePath([...key.split('.'), ...path]), message),
    );
    if (value !== undefined) values.set(key, { value, place });
  }
  function addText(key: string, text: string, place: Place): void {
    const before = problems.length;
    const raw = settings[key]?.kind.fromText(text, (message) => problem(place, key, message));
    if (problems.length === before) add(key, raw, () => place);
  }
  return { values, problems, problem, add, addText };
}
