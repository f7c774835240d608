/**
 * `archwright agent --check`: what an agent with these settings would find on this node, source by source, and what the
 * kubelet or containerd would do differently. It reads files as the agent does, but sends no request and runs no plugin.
 */
import type { SourcePart } from '../../src/files/source-part.ts';
import { printable } from '../../src/names/printable.ts';
import { scrub } from '../../src/telemetry/scrub.ts';
import { openInspection } from '../wiring/inspection.ts';
import { openCliContext, outputOf } from '../program/cli-context.ts';
import { createPlainLog } from '../program/plain-log.ts';
import { exitCodes, type Invocation } from '../program/subcommand.ts';
import { describeNode, type CheckedSource } from './node.ts';

/** Checks all sources and prints them. */
export async function checkNode(invocation: Invocation): Promise<number> {
  const output = outputOf('agent', invocation, ['list', 'json']);
  const { configuration } = await openCliContext(invocation);
  const { io } = invocation;
  const inspection = await openInspection({
    configuration: () => configuration,
    dockerConfigs: 'node',
    env: io.env,
    // The problems are printed, so they need no log.
    log: createPlainLog(io, 'silent'),
  });
  try {
    const checked: CheckedSource[] = [];
    for (const { source } of inspection.sources) {
      checked.push({ source: source.name, parts: await source.describe() });
    }
    const opened = new Set(checked.map(({ source }) => source));
    checked.push(...notConfigured.filter(({ source }) => !opened.has(source)));
    checked.push(...(await describeNode(configuration, io.env)));
    const understood = checked.every(({ parts }) => parts.every(({ state }) => state !== 'left-out'));
    const text = output === 'json' ? asJson(checked, understood) : asList(checked);
    io.out(scrub(text));
    return understood ? exitCodes.success : exitCodes.failure;
  } finally {
    await inspection.close();
  }
}

/** Sources that are off unless a setting names them. */
const notConfigured: readonly CheckedSource[] = [
  { source: 'registry-toml', parts: [{ where: 'credsDir', state: 'absent', what: 'not set' }] },
  {
    source: 'credential-provider',
    parts: [
      {
        where: 'kubeletConfig',
        state: 'absent',
        what: 'config and binDir are not set, no plugin is run',
        differs: ['a kubelet with --image-credential-provider-config runs plugins'],
      },
    ],
  },
];

function asJson(checked: readonly CheckedSource[], understood: boolean): string {
  const parts = checked.flatMap(({ source, parts }) =>
    parts.map(({ where, state, what, differs = [] }) => ({ source, where, state, what, differs })),
  );
  return `${JSON.stringify({ understood, parts }, undefined, 2)}\n`;
}

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
