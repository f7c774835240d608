/** The node's CPU and kernel, from files as the kernel writes them. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readMachine } from '../../../daemon/machine/machine.ts';
import { like } from '../../support/like.ts';

interface Proc {
  readonly cpuinfo?: string;
  readonly pageSize?: number;
  /** Names in /proc/sys/vm. */
  readonly vm?: readonly string[];
}

async function procOf(t: Test, { cpuinfo, pageSize, vm = [] }: Proc): Promise<string> {
  const dir = t.testdir({ self: {}, sys: { vm: {} } });
  await mkdir(join(dir, 'self'), { recursive: true });
  await mkdir(join(dir, 'sys/vm'), { recursive: true });
  if (cpuinfo !== undefined) await writeFile(join(dir, 'cpuinfo'), cpuinfo);
  // AT_SYSINFO_EHDR, AT_PAGESZ, AT_NULL
  const words = new BigUint64Array([33n, 1n << 40n, 6n, BigInt(pageSize ?? 0), 0n, 0n]);
  if (pageSize !== undefined) await writeFile(join(dir, 'self/auxv'), new Uint8Array(words.buffer));
  for (const name of vm) await writeFile(join(dir, 'sys/vm', name), '28\n');
  return dir;
}

const base = 'fpu cx8 cmov mmx fxsr sse sse2 pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm';
const haswell = `${base} fma movbe xsave avx f16c abm bmi1 avx2 bmi2`;
const x86 = (...flags: readonly string[]): string =>
  flags
    .map(
      (each, at) => `processor\t: ${at}\nmodel name\t: Some CPU @ 2.60GHz\nflags\t\t: ${each}\nbugs\t\t:\n`,
    )
    .join('\n');
const arm = (part: string, implementer = '0x41', count = 2): string =>
  Array.from(
    { length: count },
    (_, at) =>
      `processor\t: ${at}\nFeatures\t: fp asimd\nCPU implementer\t: ${implementer}\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: ${part}\n`,
  ).join('\n');
const both = ['mmap_rnd_bits', 'mmap_rnd_compat_bits'];

t.test('amd64: the lowest level of all processors', async (t) => {
  const level = async (cpuinfo: string) =>
    (await readMachine('amd64', await procOf(t, { cpuinfo }))).amd64Level;
  t.equal(await level(x86(haswell, haswell)), 3);
  t.equal(await level(x86(haswell, base)), 2);
  t.equal(await level('nothing that it knows'), undefined);
});

t.test('arm64: 32-bit programs run if kernel and CPU support them', async (t) => {
  const cases: readonly (readonly [string, Proc, boolean | undefined])[] = [
    ['Neoverse N1', { cpuinfo: arm('0xd0c'), vm: both }, true],
    ['a kernel without 32 bits', { cpuinfo: arm('0xd0c'), vm: ['mmap_rnd_bits'] }, false],
    ['a CPU that is not listed', { cpuinfo: arm('0xd4f'), vm: both }, undefined],
    ['the part of another implementer', { cpuinfo: arm('0xd0c', '0x61'), vm: both }, undefined],
    ['two kinds of processors', { cpuinfo: `${arm('0xd05')}\n${arm('0xd4d')}`, vm: both }, undefined],
    ['no sysctl can be read', { cpuinfo: arm('0xd0c') }, undefined],
    ['nothing', {}, undefined],
  ];
  for (const [name, proc, expected] of cases) {
    const { aarch32 } = await readMachine('arm64', await procOf(t, proc));
    t.equal(aarch32, expected, name);
  }
});

t.test('arm: the variant that containerd detects', async (t) => {
  const variant = async (cpuinfo: string) =>
    (await readMachine('arm', await procOf(t, { cpuinfo }))).armVariant;
  t.equal(await variant('model name\t: ARMv7 Processor rev 4 (v7l)\nCPU architecture: 7\n'), 'v7');
  t.equal(await variant('model name\t: ARMv6-compatible processor rev 7 (v6l)\nCPU architecture: 7\n'), 'v6');
  t.equal(await variant('CPU architecture: 5TEJ\n'), 'v5');
  t.equal(await variant('CPU architecture: AArch64\n'), 'v8');
  t.equal(await variant('CPU architecture: 12\n'), undefined);
  const { armVariant } = await readMachine('arm64', await procOf(t, { cpuinfo: arm('0xd0c') }));
  t.equal(armVariant, 'v8');
});

t.test('the page size is read', async (t) => {
  t.strictSame(await readMachine('s390x', await procOf(t, { pageSize: 4096 })), { pageSize: 4096 });
  t.equal((await readMachine('arm64', await procOf(t, { pageSize: 65_536 }))).pageSize, 65_536);
});

t.test('this machine is read; oversized and missing files are ignored', async (t) => {
  like(t, await readMachine('amd64'), { pageSize: Number });
  t.strictSame(await readMachine('amd64', join(t.testdir(), 'none')), {});
  const cpuinfo = `${x86(haswell)}\n`.repeat(40_000);
  t.strictSame(await readMachine('amd64', await procOf(t, { cpuinfo })), {});
});
