#!/usr/bin/env node
/**
 * Starts the program from a clone. Node 22.18 and later run its TypeScript source directly. An older Node
 * starts the Node that `npm ci` installed.
 */
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major > 22 || (major === 22 && minor >= 18)) await import('./archwright.ts');
else {
  const node = installedNode();
  if (node === undefined) {
    const advice = 'use Node 22.18 or newer, or run `npm ci`, which brings one along';
    process.stderr.write(`archwright: Node ${process.versions.node} is too old; ${advice}\n`);
    process.exitCode = 1;
  } else startWith(node);
}

/** @returns {string | undefined} */
function installedNode() {
  try {
    return createRequire(import.meta.url).resolve('node/bin/node');
  } catch {
    return undefined;
  }
}

/** @param {string} node */
function startWith(node) {
  const program = fileURLToPath(new URL('archwright.ts', import.meta.url));
  const child = spawn(node, [program, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    process.stderr.write(`archwright: ${node} cannot be run: ${error.message}\n`);
    process.exit(1);
  });
  // The exit code that a shell reports for a signal.
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (signal ? constants.signals[signal] : 0)));
}
