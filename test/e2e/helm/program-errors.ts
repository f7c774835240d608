/** Programs for another architecture that a shell, posix_spawn and a loop start in containers of the real node. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { watch } from '../cluster/control-plane/watch.ts';
import type { EventNow } from '../cluster/control-plane/pods.ts';
import { tarOf, unpackable, writeLayout } from '../layout.ts';
import type { Followed } from './logs.ts';
import { deletePart, untilReady } from './parts.ts';
import { realNode, type World } from './world.ts';

/** Controllers ask agents once a minute. */
const patienceMs = 150_000;
const tracefs = '/sys/kernel/tracing';
const instances = `${tracefs}/instances`;
/** `box.sh` shows the machine's processes there: the kernel's trace has their numbers, not those of the box. */
const machineProc = '/machine-proc';

const commands = {
  shell: ['/busybox', 'sh', '-c', 'while /busybox usleep 200000; do /foreign; done'],
  spawn: ['/spawner'],
  loop: ['/busybox', 'sh', '-c', 'while /busybox usleep 20000; do /foreign; /foreign; done'],
  quiet: ['/busybox', 'sleep', '100000'],
};

const spawner = `#include <spawn.h>
#include <unistd.h>
extern char **environ;
int main(void) {
  char *arguments[] = {"/foreign", 0};
  for (;;) {
    pid_t pid;
    posix_spawn(&pid, "/foreign", 0, 0, arguments, environ);
    usleep(200000);
  }
}
`;

/** Whether this is the machine itself, not a container of it, with the kernel's tracing. */
export function canTrace(): boolean {
  return existsSync(instances) && readFileSync(`${machineProc}/2/comm`, 'utf8') === 'kthreadd\n';
}

/** The chart's option `--post-renderer` of Helm 3: agents see the processes of the machine. */
export function postRenderer(): string {
  const path = '/tmp/machine-proc.sh';
  writeFileSync(path, `#!/bin/sh\nexec sed 's#path: /proc,#path: ${machineProc},#'\n`, { mode: 0o755 });
  return `--post-renderer=${path}`;
}

/** Starts them, and makes the instances that a killed agent leaves: the next one must remove them. */
export async function startPrograms({ cluster, registries, programs }: World): Promise<void> {
  for (const name of ['archwright-exec', 'archwright-forks'])
    mkdirSync(join(instances, name), { recursive: true });
  const directory = '/tmp/programs';
  mkdirSync(directory);
  copyFileSync(programs.busybox, join(directory, 'busybox'));
  writeFileSync(join(directory, 'foreign'), foreignProgram());
  chmodSync(join(directory, 'foreign'), 0o755);
  execFileSync(programs.gcc, ['-static', '-x', 'c', '-', '-o', join(directory, 'spawner')], {
    input: spawner,
  });
  writeLayout('/tmp/layouts/programs', unpackable('linux/amd64', tarOf(directory)));
  const image = await registries.copy('oci:/tmp/layouts/programs:1', 'public', 'app/programs:1');
  await cluster.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'programs', namespace: 'default' },
    spec: {
      nodeSelector: realNode,
      terminationGracePeriodSeconds: 0,
      containers: Object.entries(commands).map(([name, command]) => ({ name, image, command })),
    },
  });
}

/** Each container that starts the program has an event; the other has none. */
export async function expectProgramErrors({ cluster }: World): Promise<void> {
  const reason = 'ProgramExecFormatError';
  const events = await watch<EventNow>(cluster.client, '/api/v1/events', {
    fieldSelector: `reason=${reason},involvedObject.name=programs`,
  });
  const containersOf = (all: ReadonlyMap<string, EventNow>): ReadonlySet<string | undefined> =>
    new Set([...all.values()].map(({ message = '' }) => /^Container (\w+) /.exec(message)?.[1]));
  const found = await events
    .until(reason, (all) => (containersOf(all).size >= 3 ? containersOf(all) : undefined), patienceMs)
    .finally(() => events.close());
  assert.deepEqual(found, new Set(['loop', 'shell', 'spawn']));
  await cluster.delete('/api/v1/namespaces/default/pods/programs');
}

/** On a node without tracefs, the agent starts and names what is missing. */
export async function expectAgentWithoutTracefs({ cluster }: World, logs: Followed): Promise<void> {
  execFileSync('umount', [tracefs]);
  const before = logs.text().length;
  await deletePart(cluster, 'agent');
  await untilReady(cluster, 0);
  await untilReady(cluster);
  assert.match(logs.text().slice(before), /"state":"no-tracefs"/);
  execFileSync('mount', ['-t', 'tracefs', 'tracefs', tracefs]);
}

/** The kernel traces nothing for us any more. */
export function expectNoInstances(): void {
  const own = readdirSync(instances).filter((name) => name.startsWith('archwright'));
  assert.deepEqual(own, []);
}

/** A static program without code for Itanium, in the format of <elf.h>. The machine may run arm64 by QEMU. */
function foreignProgram(): Buffer {
  const bytes = Buffer.alloc(120);
  bytes.write('\x7fELF\x02\x01\x01', 'latin1');
  bytes.writeUInt16LE(2, 16); // e_type: ET_EXEC
  bytes.writeUInt16LE(50, 18); // e_machine: EM_IA_64
  bytes.writeUInt32LE(1, 20); // e_version
  bytes.writeUInt16LE(64, 52); // e_ehsize
  bytes.writeUInt16LE(56, 54); // e_phentsize
  bytes.writeUInt16LE(1, 56); // e_phnum
  return bytes;
}
