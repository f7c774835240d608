/**
 * The environment of a systemd service of the node, from its files: manager defaults, then `Environment=` of
 * the unit and its drop-ins, then `EnvironmentFile=` (systemd.exec(5)). systemd applies a change when the
 * service starts again.
 */
import type { Problem } from '../../src/credentials/credential.ts';
import type { FileErrorCode } from '../../src/files/read.ts';
import { NodeFiles, orBroken } from '../node-files.ts';
import { ConfigFileError } from '../toml.ts';
import { parseEnvironmentFile, parseUnit, variableOf, wordsOf, type Assignment } from './unit-file.ts';

/** The strongest first (systemd.unit(5), system unit search path). */
const unitDirectories = [
  '/etc/systemd/system',
  '/run/systemd/system',
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
];
const managerDirectories = ['/etc/systemd', '/run/systemd', '/usr/lib/systemd'];
const enabledDirectory = '/etc/systemd/system/multi-user.target.wants';

/** Units of distributions have some kilobytes. */
const maxFileBytes = 262_144;
/** Nodes have a handful of drop-ins for a service, and some dozens of enabled services. */
const maxEntries = 1000;
/** A service has one or two. */
const maxEnvironmentFiles = 16;

/**
 * The first enabled service, else the first with files: its environment and `command`, the program with its
 * arguments (`ExecStart=`).
 */
export async function readServiceEnvironment(hostRoot: string, services: readonly string[]) {
  const reader = new Reader(hostRoot);
  const enabled = new Set(await reader.names(enabledDirectory));
  for (const service of services.toSorted((a, b) => Number(enabled.has(b)) - Number(enabled.has(a)))) {
    const assignments = await reader.assignmentsOf(service);
    if (assignments === undefined) continue;
    const variables = await reader.variablesOf(service, assignments);
    const problems = [...reader.problems].map(([origin, message]): Problem => ({ origin, message }));
    return { service, variables, command: commandOf(assignments, variables), problems };
  }
  return undefined;
}

/** Command lines have some hundred characters, and so have the variables in them. */
const maxCommandLength = 4096;

/** The words of `ExecStart=`. `$NAME` as a word becomes the words of its value, `${NAME}` its text. */
function commandOf(
  assignments: readonly Assignment[],
  variables: ReadonlyMap<string, string>,
): readonly string[] {
  const written = assignments.findLast(({ key, value }) => key === 'ExecStart' && value !== '')?.value ?? '';
  const valueOf = (name = ''): string => variables.get(name)?.slice(0, maxCommandLength) ?? '';
  return wordsOf(written.replace(/^[-@:+!|]*/, '').slice(0, maxCommandLength)).flatMap((word) => {
    const [, name] = /^\$([A-Za-z_][A-Za-z0-9_]*)$/.exec(word) ?? [];
    if (name !== undefined) return valueOf(name).split(/\s+/).filter(Boolean);
    return word.replaceAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, each: string) => valueOf(each));
  });
}

class Reader {
  /** Keys: files. */
  readonly problems = new Map<string, string>();
  readonly #files: NodeFiles;

  constructor(root: string) {
    this.#files = new NodeFiles(root);
  }

  /** The `[Service]` section over the unit and its drop-ins; `undefined` if it has no files or is masked. */
  async assignmentsOf(service: string): Promise<readonly Assignment[] | undefined> {
    const unit = await this.#unitOf(service);
    // Other drop-ins are of services that this node need not have.
    const own = await this.#dropInsOf([`${service}.d`], unitDirectories);
    if (unit === '' || (unit === undefined && own.length === 0)) return undefined;
    const texts = [unit ?? '', ...(await this.#dropInsOf(dropInNames(service), unitDirectories))];
    return texts.flatMap((text) => parseUnit(text).filter(({ section }) => section === 'Service'));
  }

  async variablesOf(
    service: string,
    assignments: readonly Assignment[],
  ): Promise<ReadonlyMap<string, string>> {
    // An empty value resets the list.
    const valuesOf = (wanted: string): readonly string[] => {
      const values = assignments.filter(({ key }) => key === wanted).map(({ value }) => value);
      return values.slice(values.lastIndexOf('') + 1);
    };
    const words = [...(await this.#managerVariables()), ...valuesOf('Environment').flatMap(wordsOf)];
    const variables = new Map(words.map(variableOf).filter((pair) => pair !== undefined));
    for (const file of valuesOf('EnvironmentFile').slice(0, maxEnvironmentFiles)) {
      for (const [name, value] of await this.#environmentFile(service, file)) variables.set(name, value);
    }
    for (const word of valuesOf('UnsetEnvironment').flatMap(wordsOf)) {
      const [name = '', value] = variableOf(word) ?? [word];
      if (value === undefined || variables.get(name) === value) variables.delete(name);
    }
    return variables;
  }

  /** The names in a directory, none if it is missing. */
  async names(dir: string): Promise<readonly string[]> {
    return (await this.#orProblem(dir, () => this.#files.names(dir, maxEntries))) ?? [];
  }

  /** Empty if it is masked: by an empty file, or a link to /dev/null. */
  async #unitOf(service: string): Promise<string | undefined> {
    for (const dir of unitDirectories) {
      const path = `${dir}/${service}`;
      const stats = await this.#orProblem(path, () => this.#files.stat(path));
      if (stats?.isFile() === false) return '';
      const unit = stats && (await this.#orProblem(path, () => this.#text(path)));
      if (unit !== undefined) return unit;
    }
    return undefined;
  }

  /** Files of one name replace each other; all are sorted by name. @param folders the strongest first */
  async #dropInsOf(folders: readonly string[], directories: readonly string[]): Promise<readonly string[]> {
    const paths = new Map<string, string>();
    for (const dir of folders.flatMap((folder) => directories.map((each) => `${each}/${folder}`))) {
      for (const name of await this.names(dir))
        if (name.endsWith('.conf') && !paths.has(name)) paths.set(name, `${dir}/${name}`);
    }
    const texts: string[] = [];
    for (const [, path] of [...paths].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const text = await this.#orProblem(path, () => this.#text(path, 'not-a-file'));
      if (text !== undefined) texts.push(text);
    }
    return texts;
  }

  async #managerVariables(): Promise<readonly string[]> {
    const file = '/etc/systemd/system.conf';
    const main = await this.#orProblem(file, () => this.#text(file));
    return [main ?? '', ...(await this.#dropInsOf(['system.conf.d'], managerDirectories))]
      .flatMap((text) => parseUnit(text))
      .filter(({ section, key }) => section === 'Manager' && key === 'DefaultEnvironment')
      .flatMap(({ value }) => wordsOf(value));
  }

  async #environmentFile(service: string, written: string): Promise<ReturnType<typeof parseEnvironmentFile>> {
    const path = written.replace(/^-/, '').replaceAll('%%', '%');
    const skipped = written.startsWith('-') ? (['missing'] as const) : [];
    const text = await orBroken(path, () => this.#files.text(path, maxFileBytes, ...skipped));
    if (!(text instanceof ConfigFileError)) return parseEnvironmentFile(text ?? '');
    const remedy = `${service} reads its variables there: mount its directory (agent.extraHostPaths)`;
    this.problems.set(path, `${text.reason}; ${remedy}`);
    return [];
  }

  async #text(path: string, ...skipped: readonly FileErrorCode[]): Promise<string | undefined> {
    return await this.#files.text(path, maxFileBytes, 'missing', ...skipped);
  }

  /** @returns `undefined` for a problem */
  async #orProblem<T>(where: string, read: () => Promise<T>): Promise<T | undefined> {
    const found = await orBroken(where, read);
    if (!(found instanceof ConfigFileError)) return found;
    this.problems.set(where, found.reason);
    return undefined;
  }
}

/** `k3s-agent.service.d`, `k3s-.service.d`, `service.d`: the strongest first. */
function dropInNames(service: string): readonly string[] {
  const stem = service.slice(0, -'.service'.length);
  const prefixes = [...stem.matchAll(/-/g)].map(({ index }) => stem.slice(0, index + 1)).reverse();
  return [stem, ...prefixes].map((name) => `${name}.service.d`).concat('service.d');
}
