/** `agent --check`: what an agent would find here, and what differs. It sends no request and runs no plugin. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import type { RuntimeName } from '../../src/nodes/node-report.ts';
import { fileError } from '../../src/files/read.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { describeTrust } from '../../src/http/tls/trust.ts';
import { ServingError } from '../../src/serving/address.ts';
import { loadTlsMaterial } from '../../src/serving/tls-files.ts';
import { part, type SourcePart } from '../../src/files/source-part.ts';
import { printable } from '../../src/names/printable.ts';
import { scrub } from '../../src/telemetry/scrub.ts';
import { openInspection } from '../wiring/inspection.ts';
import { close, createPlainLog, openCliContext } from '../program/context.ts';
import { exitCodes } from '../program/exit.ts';
import type { Flag } from '../program/flag.ts';
import type { Invocation } from '../program/subcommand.ts';
import { print } from '../program/table.ts';

interface CheckedSource {
  readonly source: string;
  readonly parts: readonly SourcePart[];
}

export async function checkNode(invocation: Invocation<{ output: Flag<'list' | 'json'> }>): Promise<number> {
  const { configuration } = await openCliContext(invocation);
  const { io, flags } = invocation;
  await using opened = new AsyncDisposableStack();
  const opening = openInspection({
    configuration: () => configuration,
    dockerConfigs: 'node',
    env: io.env,
    // The problems are printed, so they need no log.
    log: createPlainLog(io, 'silent'),
  });
  const inspection = opened.adopt(await opening, close);
  const checked: CheckedSource[] = [];
  for (const { source } of inspection.sources) {
    checked.push({ source: source.name, parts: await source.describe() });
  }
  const configured = new Set(checked.map(({ source }) => source));
  checked.push(...notConfigured.filter(({ source }) => !configured.has(source)));
  const { hostRoot, caFiles: extraFiles, stateDir, tlsDir } = configuration;
  const { name: runtime, reason } = inspection.foundRuntime;
  const state =
    stateDir === undefined
      ? part('stateDir', 'absent', 'not set; image facts do not survive a restart')
      : await describeDirectory(stateDir, constants.R_OK | constants.W_OK, 'image facts');
  const trust = await describeTrust({ environment: io.env, hostRoot, extraFiles });
  checked.push(
    { source: 'host-root', parts: [await describeDirectory(hostRoot, constants.R_OK, 'files of the node')] },
    { source: 'runtime', parts: [{ where: runtime, state: 'used', what: reason }] },
    { source: 'endpoints', parts: describeOwnEndpoints(configuration, runtime) },
    { source: 'trust', parts: trust },
    { source: 'proxies', parts: inspection.proxies?.describe() ?? [] },
    { source: 'state', parts: [state] },
    { source: 'tls', parts: [await describeTls(tlsDir)] },
  );
  const understood = checked.every(({ parts }) => parts.every(({ state }) => state !== 'left-out'));
  const parts = checked.flatMap(({ source, parts }) =>
    parts.map(({ where, state, what, differs = [] }) => ({ source, where, state, what, differs })),
  );
  const out = (text: string): void => io.out(scrub(text));
  print({ flags, io: { out } }, { understood, parts }, asList(checked));
  return understood ? exitCodes.success : exitCodes.failure;
}

const runsPlugins = 'a kubelet with --image-credential-provider-config runs plugins';

/** Sources that are off unless a setting names them. */
const notConfigured: readonly CheckedSource[] = [
  { source: 'registry-toml', parts: [part('credsDir', 'absent', 'not set')] },
  {
    source: 'credential-provider',
    parts: [
      part('kubeletConfig', 'absent', 'config and binDir are not set, no plugin is run', [runsPlugins]),
    ],
  },
];

const stateWidth = 'left-out'.length;
const maxLineBytes = 1024;

function asList(checked: readonly CheckedSource[]): string {
  return checked.map(({ source, parts }) => `${source}\n${parts.map(partLines).join('')}`).join('\n');
}

function partLines({ where, state, what, differs = [] }: SourcePart): string {
  const lines = [`${state.padEnd(stateWidth)}  ${what.startsWith(where) ? what : `${where}: ${what}`}`];
  for (const sentence of differs) lines.push(`${' '.repeat(stateWidth)}  differs: ${sentence}`);
  return lines.map((line) => `  ${printable(line, maxLineBytes)}\n`).join('');
}

function describeOwnEndpoints(
  { proxies, insecureRegistries }: Configuration,
  runtime: RuntimeName,
): SourcePart[] {
  const parts = [
    ...proxies.map(({ registry, endpoint }) =>
      part('proxies', 'used', `${registry}: ${withoutLogin(endpoint)} is tried first`, [
        `${runtime} pulls from the endpoints of its own configuration`,
      ]),
    ),
    ...insecureRegistries.map((registry) =>
      part('insecureRegistries', 'used', `${registry}: certificates are not verified`, [
        `${runtime} verifies certificates, unless its own configuration says otherwise`,
      ]),
    ),
  ];
  if (parts.length > 0) return parts;
  return [part('proxies, insecureRegistries', 'absent', 'not set')];
}

function withoutLogin(endpoint: string): string {
  return endpoint.replace(/^([a-z]+:\/\/)?[^/@]*@/i, '$1');
}

async function describeDirectory(where: string, mode: number, what: string): Promise<SourcePart> {
  try {
    if (!(await stat(where)).isDirectory()) return { where, state: 'left-out', what: 'is not a directory' };
    await access(where, mode | constants.X_OK);
    return { where, state: 'used', what };
  } catch (error) {
    return { where, state: 'left-out', what: fileError(where, error).message };
  }
}

async function describeTls(dir: string | undefined): Promise<SourcePart> {
  if (dir === undefined)
    return part('tlsDir', 'absent', 'not set; an agent does not start without tls.crt, tls.key and ca.crt');
  try {
    const { expires } = await loadTlsMaterial(dir, true);
    const until = new Date(expires).toISOString();
    if (expires < Date.now())
      return { where: dir, state: 'left-out', what: `the certificate expired at ${until}` };
    return { where: dir, state: 'used', what: `tls.crt, tls.key and ca.crt, valid until ${until}` };
  } catch (error) {
    if (error instanceof ServingError) return { where: dir, state: 'left-out', what: error.message };
    throw error;
  }
}
