/**
 * Free ports of loopback, below the kernel's range for connections (32768 to 60999), which could take a port
 * before its use. A file reserves each for this process, so concurrent tests use different ports.
 */
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';

const first = 20_000;
const last = 32_000;
const reservations = join(tmpdir(), 'archwright-e2e-ports');

export async function freePorts(count: number): Promise<readonly number[]> {
  mkdirSync(reservations, { recursive: true });
  const ports: number[] = [];
  // Each process begins somewhere else; the files decide.
  const start = (process.pid * 37) % (last - first);
  for (let step = 0; ports.length < count && step < last - first; step++) {
    const port = first + ((start + step) % (last - first));
    if (reserve(port) && (await isFree(port))) ports.push(port);
  }
  if (ports.length < count) throw new Error(`there are no ${count} free ports from ${first} to ${last}`);
  return ports;
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

function reserve(port: number): boolean {
  const path = join(reservations, String(port));
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  if (isAlive(path)) return false;
  rmSync(path, { force: true });
  return false; // Two that find the same dead reservation must not both take it: the next round does.
}

function isAlive(path: string): boolean {
  try {
    process.kill(Number(readFileSync(path, 'utf8')), 0);
    return true;
  } catch {
    return false;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/** This machine's address, for servers that refuse loopback (EndpointSlices, proxies); `undefined`: none. */
export const ownAddress = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
