/**
 * What this node's CPU and kernel run, from files of the kernel. The agent's container sees the same files as
 * its node. A file that cannot be read, or has unusual content, leaves its field out.
 */
import { endianness } from 'node:os';
import { join } from 'node:path';
import { ifError } from '../../src/async/if-error.ts';
import { FileError, readBounded, statPath } from '../../src/files/read.ts';
import { levelOfFlags } from '../../src/nodes/amd64-level.ts';
import type { NodeReport } from '../../src/nodes/node-report.ts';

/** Some 2 KB for each of 1,000 logical CPUs. */
const maxCpuinfoBytes = 2 * 1024 * 1024;
/** Some twenty pairs of words. */
const maxAuxvBytes = 4096;

export type Machine = Pick<NodeReport, 'armVariant' | 'amd64Level' | 'aarch32' | 'pageSize'>;

/** @param architecture label value, such as `arm64` @param proc directory of procfs */
export async function readMachine(architecture: string, proc = '/proc'): Promise<Machine> {
  const cpus = cpusIn((await kernelText(join(proc, 'cpuinfo'), maxCpuinfoBytes)) ?? '');
  const aarch32 = architecture === 'arm64' ? await hasAarch32(cpus, proc) : undefined;
  const pageSize = pageSizeIn(await kernelText(join(proc, 'self/auxv'), maxAuxvBytes));
  return {
    ...(architecture === 'amd64' && amd64Of(cpus)),
    ...((architecture === 'arm' || architecture === 'arm64') && armVariantOf(cpus)),
    ...(aarch32 !== undefined && { aarch32 }),
    ...(pageSize !== undefined && { pageSize }),
  };
}

/** Fields of a processor in /proc/cpuinfo. */
type Cpu = ReadonlyMap<string, string>;

/** The distinct kinds of processors. */
function cpusIn(cpuinfo: string): readonly Cpu[] {
  const kinds = new Map<string, Cpu>();
  for (const block of cpuinfo.split('\n\n')) {
    const fields = block.split('\n').flatMap((line): (readonly [string, string])[] => {
      const colon = line.indexOf(':');
      const name = line.slice(0, colon).trim();
      return colon < 0 || !usedFields.has(name) ? [] : [[name, line.slice(colon + 1).trim()]];
    });
    if (fields.length > 0) kinds.set(JSON.stringify(fields), new Map(fields));
  }
  return [...kinds.values()];
}

const usedFields = new Set(['flags', 'model name', 'CPU architecture', 'CPU implementer', 'CPU part']);

/** A process may run on every processor, so the lowest level counts. */
function amd64Of(cpus: readonly Cpu[]): Pick<Machine, 'amd64Level'> {
  const levels = cpus.flatMap((cpu) => {
    const flags = cpu.get('flags');
    return flags === undefined ? [] : [levelOfFlags(new Set(flags.split(' ')))];
  });
  const [amd64Level] = levels.sort((a, b) => a - b);
  return amd64Level ? { amd64Level } : {};
}

/**
 * The variant that containerd takes for its own, by the first processor (containerd/platforms
 * `cpuinfo_linux.go`). A Raspberry Pi with an ARMv6 CPU states 7 (golang.org/issue/35555 names the model).
 */
function armVariantOf([cpu]: readonly Cpu[]): Pick<Machine, 'armVariant'> {
  const version = cpu?.get('CPU architecture') ?? '';
  if (version === '7' && cpu?.get('model name')?.startsWith('ARMv6-compatible') === true)
    return { armVariant: 'v6' };
  const variant = version === 'AArch64' ? '8' : /^[5-8]/u.exec(version)?.[0];
  return variant === undefined ? {} : { armVariant: `v${variant}` };
}

const armLimited = '0x41';
/**
 * Parts of Arm (MIDR_EL1) that run 32-bit programs: Cortex-A53, A35, A55, A57, A72, A73, A75, A76, Neoverse
 * N1, Cortex-A77, A78, X1 (technical reference manuals, "AArch32 at EL0".)
 */
const with32Bit: ReadonlySet<string> = new Set(
  ['d03', 'd04', 'd05', 'd07', 'd08', 'd09', 'd0a', 'd0b', 'd0c', 'd0d', 'd41', 'd44'].map(
    (part) => `0x${part}`,
  ),
);

/**
 * Without CONFIG_COMPAT the kernel runs no 32-bit program, and this sysctl does not exist (arch/Kconfig
 * HAVE_ARCH_MMAP_RND_COMPAT_BITS). With it, the CPU decides. CPUs that are not listed are not known.
 */
async function hasAarch32(cpus: readonly Cpu[], proc: string): Promise<boolean | undefined> {
  const exists = (name: string): Promise<boolean | undefined> =>
    statPath(join(proc, 'sys/vm', name), undefined).then(Boolean, () => undefined);
  if ((await exists('mmap_rnd_bits')) !== true) return undefined;
  const compat = await exists('mmap_rnd_compat_bits');
  if (compat !== true) return compat;
  const runs32Bit = cpus.every(
    (cpu) => cpu.get('CPU implementer') === armLimited && with32Bit.has(cpu.get('CPU part') ?? ''),
  );
  return cpus.length > 0 && runs32Bit ? true : undefined;
}

/** AT_PAGESZ of the auxiliary vector (getauxval(3)): pairs of words in the byte order of the CPU. */
function pageSizeIn(text = ''): number | undefined {
  const auxv = Buffer.from(text, 'latin1');
  const bytes = process.arch === 'arm' || process.arch === 'ia32' ? 4 : 8;
  // The types and the page size fit the low four bytes.
  const word = (at: number): number =>
    endianness() === 'LE' ? auxv.readUInt32LE(at) : auxv.readUInt32BE(at + bytes - 4);
  for (let at = 0; at + 2 * bytes <= auxv.length; at += 2 * bytes)
    if (word(at) === atPageSize) return word(at + bytes);
  return undefined;
}

const atPageSize = 6;

/** Each character is a byte (latin1). @returns `undefined` if there is no such file, or it cannot be read */
export async function kernelText(path: string, maxBytes: number): Promise<string | undefined> {
  const bytes = await readBounded(path, { maxBytes }).catch(ifError(FileError, () => undefined));
  return bytes?.toString('latin1');
}
