/**
 * The environment of a systemd service of the node, from its files: manager defaults, then `Environment=` of
 * the unit and its drop-ins, then `EnvironmentFile=` (systemd.exec(5)). systemd applies a change when the
 * service starts again.
 */
import type { Problem } from '../../src/credentials/credential.ts';
import { FileError, listDirectory, readText } from '../../src/files/read.ts';
import { parseEnvironmentFile, parseUnit, variableOf, wordsOf, type Assignment } from './unit-file.ts';

/** The strongest first (systemd.unit(5), system unit search path). */
const unitDirectories = [
  '/etc/systemd/system',
  '/run/systemd/system',
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
];
const managerFile = '/etc/systemd/system.conf';
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
  const ordered = [
    ...services.filter((name) => enabled.has(name)),
    ...services.filter((name) => !enabled.has(name)),
  ];
  for (const service of ordered) {
    const assignments = await reader.assignmentsOf(service);
    if (assignments === undefined) continue;
    const variables = await reader.variablesOf(service, assignments);
    return { service, variables, command: commandOf(assignments, variables), problems: reader.problems };
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
  readonly problems: Problem[] = [];
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** The `[Service]` section over the unit and its drop-ins; `undefined` if it has no files or is masked. */
  async assignmentsOf(service: string): Promise<readonly Assignment[] | undefined> {
    const unit = await this.#unitOf(service);
    // Other drop-ins are of services that this node need not have.
    const own = await this.#dropInsOf([`${service}.d`], unitDirectories);
    if (unit === false || (unit === undefined && own.length === 0)) return undefined;
    const dropIns = await this.#dropInsOf(dropInNames(service), unitDirectories);
    const texts = [unit ?? '', ...dropIns];
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
    const own = valuesOf('Environment').flatMap(wordsOf);
    const files = valuesOf('EnvironmentFile');
    const unset = valuesOf('UnsetEnvironment').flatMap(wordsOf);
    const variables = new Map(
      [...(await this.#managerVariables()), ...own].map(variableOf).filter((pair) => pair !== undefined),
    );
    for (const file of files.slice(0, maxEnvironmentFiles)) {
      for (const [name, value] of await this.#environmentFile(service, file)) variables.set(name, value);
    }
    for (const word of unset) {
      const [name = '', value] = variableOf(word) ?? [word];
      if (value === undefined || variables.get(name) === value) variables.delete(name);
    }
    return variables;
  }

  /** The names in a directory, none if it is missing. */
  async names(dir: string): Promise<readonly string[]> {
    return (await this.#try(dir, () => listDirectory(dir, { maxEntries, root: this.#root }))) ?? [];
  }

  /** `false` if it is masked. */
  async #unitOf(service: string): Promise<string | false | undefined> {
    for (const dir of unitDirectories) {
      const path = `${dir}/${service}`;
      try {
        // A masked unit is an empty file, or a link to /dev/null.
        return (await this.#read(path)) || false;
      } catch (error) {
        if (!(error instanceof FileError)) throw error;
        if (error.code === 'not-a-file') return false;
        if (error.code !== 'missing') this.#report(path, error.reason);
      }
    }
    return undefined;
  }

  /** Once for each file, which may be tried again. */
  #report(origin: string, message: string): void {
    if (this.problems.some((known) => known.origin === origin)) return;
    this.problems.push({ origin, message });
  }

  /** Files of one name replace each other; all are sorted by name. @param folders the strongest first */
  async #dropInsOf(folders: readonly string[], directories: readonly string[]): Promise<readonly string[]> {
    const paths = new Map<string, string>();
    for (const folder of folders) {
      for (const dir of directories.map((each) => `${each}/${folder}`)) {
        for (const name of await this.names(dir)) {
          if (name.endsWith('.conf') && !paths.has(name)) paths.set(name, `${dir}/${name}`);
        }
      }
    }
    const texts: string[] = [];
    for (const [, path] of [...paths].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const text = await this.#try(path, () => this.#read(path), ['not-a-file']);
      if (text !== undefined) texts.push(text);
    }
    return texts;
  }

  async #managerVariables(): Promise<readonly string[]> {
    const main = await this.#try(managerFile, () => this.#read(managerFile));
    const more = await this.#dropInsOf(
      ['system.conf.d'],
      ['/etc/systemd', '/run/systemd', '/usr/lib/systemd'],
    );
    return [main ?? '', ...more]
      .flatMap((text) => parseUnit(text))
      .filter(({ section, key }) => section === 'Manager' && key === 'DefaultEnvironment')
      .flatMap(({ value }) => wordsOf(value));
  }

  async #environmentFile(service: string, written: string): Promise<ReturnType<typeof parseEnvironmentFile>> {
    const isOptional = written.startsWith('-');
    const path = (isOptional ? written.slice(1) : written).replaceAll('%%', '%');
    try {
      return parseEnvironmentFile(await this.#read(path));
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      if (!isOptional || error.code !== 'missing') {
        const message = `${error.reason}; ${service} reads its variables there: mount its directory (agent.extraHostPaths)`;
        this.#report(path, message);
      }
      return [];
    }
  }

  async #read(path: string): Promise<string> {
    return await readText(path, { maxBytes: maxFileBytes, root: this.#root });
  }

  async #try<T>(
    path: string,
    act: () => Promise<T>,
    silent: readonly FileError['code'][] = [],
  ): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      if (error.code !== 'missing' && !silent.includes(error.code)) {
        this.#report(path, error.reason);
      }
      return undefined;
    }
  }
}

/** `k3s-agent.service.d`, `k3s-.service.d`, `service.d`: the strongest first. */
function dropInNames(service: string): readonly string[] {
  const stem = service.slice(0, -'.service'.length);
  const prefixes = [...stem.matchAll(/-/g)].map(({ index }) => stem.slice(0, index + 1)).reverse();
  return [stem, ...prefixes].map((name) => `${name}.service.d`).concat('service.d');
}
