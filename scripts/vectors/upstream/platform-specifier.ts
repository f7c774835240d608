/**
 * Platforms as one text: `os[(version+feature…)]`, `architecture`, or `os[(…)]/architecture[/variant]`.
 * Source: containerd/platforms `platforms.go` Parse, Format, FormatAll, with its message texts.
 */
import { formatPlatform, normalizeArchitecture, normalizeOs } from '../../../src/names/platform.ts';
import type { FullPlatform } from '../../../src/names/platform.ts';

/** A text that names no platform. `message` is upstream's. */
export class InvalidPlatform extends Error {
  readonly code = 'invalid-platform';
  readonly temporary = false;
  constructor(problem: string, cause = 'invalid argument') {
    super(`${problem}: ${cause}`);
    this.name = 'InvalidPlatform';
  }
}

/** Defaults for omitted parts of a specifier; upstream uses the running process's. */
export interface HostPlatform {
  readonly os: string;
  readonly architecture: string;
}

const componentPattern = /^[A-Za-z0-9_.-]+$/;
const osPattern = /^([A-Za-z0-9_-]+)(?:\(([A-Za-z0-9_.%-]*)((?:\+[A-Za-z0-9_.%-]+)*)\))?$/;

/** Names of `go/build/syslist.go` in containerd. */
const knownSystems: ReadonlySet<string> = new Set(
  'aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris windows zos'.split(
    ' ',
  ),
);
const knownArchitectures: ReadonlySet<string> = new Set(
  (
    '386 amd64 amd64p32 arm armbe arm64 arm64be ppc64 ppc64le loong64 mips mipsle mips64 mips64le mips64p32 ' +
    'mips64p32le ppc riscv riscv64 s390 s390x sparc sparc64 wasm'
  ).split(' '),
);

/**
 * Parses a specifier and normalizes its architecture. `arm` stays without variant; `arm64/v8` keeps its own.
 * @param host defaults of a specifier with only a system or only an architecture
 * @throws InvalidPlatform
 */
export function parsePlatform(
  specifier: string,
  host: HostPlatform = { os: 'linux', architecture: 'amd64' },
): SpecifiedPlatform {
  if (specifier.includes('*')) throw new InvalidPlatform(`${quote(specifier)}: wildcards not yet supported`);
  const parts = splitAtMost(specifier, '/', 4);
  const [first = '', second, third, fourth] = parts;
  const system = parseSystem(first, specifier, host);
  for (const part of parts.slice(1)) {
    if (componentPattern.test(part)) continue;
    throw new InvalidPlatform(
      `${quote(part)} is an invalid component of ${quote(specifier)}: platform specifier component must match ${quote(componentPattern.source)}`,
    );
  }
  if (fourth !== undefined) {
    throw new InvalidPlatform(`${quote(specifier)}: cannot parse platform specifier`);
  }
  if (second === undefined) return parseSingle(first, system, specifier, host);
  const { architecture, variant } = normalizeArchitecture(second, third);
  if (third === undefined) return build(system, architecture, impliedVariant(architecture, variant));
  return build(system, architecture, architecture === 'arm64' && variant === '' ? 'v8' : variant);
}

/** With features of the operating system, which no node of archwright has. */
export interface SpecifiedPlatform extends FullPlatform {
  readonly osFeatures?: readonly string[];
}

/** The specifier with version and features of the operating system; separators in them are escaped. */
export function formatFullPlatform(platform: SpecifiedPlatform): string {
  const features = [...(platform.osFeatures ?? [])].sort().map((feature) => `+${escape(feature)}`);
  const options = escape(platform.osVersion ?? '') + features.join('');
  if (platform.os === '' || options === '') return formatPlatform(platform);
  return formatPlatform({ ...platform, os: `${platform.os}(${options})` });
}

type System = Pick<SpecifiedPlatform, 'os' | 'osVersion' | 'osFeatures'>;

function parseSystem(text: string, specifier: string, host: HostPlatform): System {
  const match = osPattern.exec(text);
  if (match === null) {
    throw new InvalidPlatform(
      `${quote(text)} is an invalid OS component of ${quote(specifier)}: OSAndVersion specifier component must match ${quote(osPattern.source)}`,
    );
  }
  const [, os = '', version = '', features = ''] = match;
  const osVersion = unescape(version, `${quote(specifier)} has an invalid OS version ${quote(version)}`);
  return {
    os: normalizeOs(os, host.os),
    ...(osVersion === '' ? {} : { osVersion }),
    ...(features === ''
      ? {}
      : {
          osFeatures: features
            .slice(1)
            .split('+')
            .map((feature) =>
              unescape(feature, `${quote(specifier)} has an invalid OS feature ${quote(feature)}`),
            ),
        }),
  };
}

/** One word: a known operating system, else a known architecture. */
function parseSingle(text: string, system: System, specifier: string, host: HostPlatform): SpecifiedPlatform {
  if (knownSystems.has(system.os)) return build(system, host.architecture, '');
  const { architecture, variant } = normalizeArchitecture(text);
  if (!knownArchitectures.has(architecture)) {
    throw new InvalidPlatform(`${quote(specifier)}: unknown operating system or architecture`);
  }
  return build({ ...system, os: host.os }, architecture, impliedVariant(architecture, variant));
}

function impliedVariant(architecture: string, variant: string): string {
  return architecture === 'arm' && variant === 'v7' ? '' : variant;
}

function build(system: System, architecture: string, variant: string): SpecifiedPlatform {
  const { os, ...options } = system;
  return { os, architecture, ...(variant === '' ? {} : { variant }), ...options };
}

function escape(option: string): string {
  return option.replace(/[%+()/]/g, encodeSeparator);
}

function encodeSeparator(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

function unescape(option: string, problem: string): string {
  const broken = /%(?![0-9A-Fa-f]{2}).{0,2}/.exec(option)?.[0];
  if (broken !== undefined) throw new InvalidPlatform(problem, `invalid URL escape ${quote(broken)}`);
  try {
    return decodeURIComponent(option);
  } catch (error) {
    if (error instanceof URIError) throw new InvalidPlatform(problem, 'its escapes are not UTF-8');
    throw error;
  }
}

/** Splits into at most `limit` parts; the last one keeps the separators that are left. */
function splitAtMost(text: string, separator: string, limit: number): string[] {
  const parts = text.split(separator);
  return parts.length <= limit
    ? parts
    : [...parts.slice(0, limit - 1), parts.slice(limit - 1).join(separator)];
}

function quote(text: string): string {
  return JSON.stringify(text);
}
