/** The measuring machine: its figures do not apply to others. */
import { execFile } from 'node:child_process';
import { cpus, loadavg, release, totalmem, type } from 'node:os';
import { promisify } from 'node:util';

/** A list in Markdown. The load is that of other work, before the first bench starts. */
export async function describeMachine(): Promise<string> {
  const processors = cpus();
  const gibibytes = Math.round(totalmem() / 1024 ** 3);
  const load = loadavg()
    .map((value) => value.toFixed(1))
    .join(', ');
  const { versions } = process;
  return [
    `- Date: ${new Date().toISOString().slice(0, 10)}`,
    `- Machine: ${processors.length} × ${processors[0]?.model ?? 'unknown processor'}, ${gibibytes} GiB, ${type()} ${release()}`,
    `- Load before (1, 5, 15 minutes): ${load}`,
    `- Node ${versions.node}, V8 ${versions.v8}, OpenSSL ${versions.openssl}; archwright ${await commit()}`,
  ].join('\n');
}

async function commit(): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)('git', ['rev-parse', '--short=12', 'HEAD']);
    return stdout.trim();
  } catch {
    return 'unknown';
  }
}
