/** Files of the node's kernel and systemd. Their parsers read directories, so inputs are written to one. */
import { isDeepStrictEqual } from 'node:util';
import { readMachine } from '../../../daemon/machine/machine.ts';
import { parseCgroup, parseFailedExec, parseForks } from '../../../daemon/tracing/exec-errors.ts';
import { readServiceEnvironment } from '../../../daemon/systemd/service-environment.ts';
import { parseEnvironmentFile, parseUnit, wordsOf } from '../../../daemon/systemd/unit-file.ts';
import { readExecReport } from '../../../src/nodes/exec-report.ts';
import { words } from './inputs.ts';
import { Directory, must, type FuzzTarget } from './target.ts';

const unitExample =
  '[Unit]\nDescription=a\n[Service]\nEnvironment="HTTPS_PROXY=http://p:1" \\\n# comment\n  NO_PROXY=.corp\nEnvironmentFile=-/etc/default/k3s\nUnsetEnvironment=A B=1\n[Manager]\nDefaultEnvironment=A=a%%b\n';
const environmentExample =
  "# ours\nHTTPS_PROXY=\"http://p:1\"'x'y \nA=a\\\nb\n;B=1\r\nC = 'c\nd'\nexport D=1\n";
const node = new Directory();
const proc = new Directory();
const architectures = ['amd64', 'arm'];

export const machineFileTargets: readonly FuzzTarget[] = [
  {
    name: 'units of systemd',
    share: 20,
    examples: [unitExample, '[Service]\r\nEnvironment=A=\\x41\\s "B=b c" \'C="\'\r\nEnvironment=\r\n'],
    words: words('[Service] Environment= " \' \\ \\x00 \\x4 %% = ; # A=', '\n', '\r', ' ', '\\\n', '\u2028'),
    feed: (_, text) => {
      const found = parseUnit(text);
      // A space after a backslash at the end of a value; otherwise it would continue on the next line.
      const written = found.map(({ section, key, value }) => `[${section}]\n${key}=${value} \n`).join('');
      must(isDeepStrictEqual(parseUnit(written), found), 'other assignments when read again');
      // The name of a section is one string, however many assignments follow it.
      return [found.map(({ key, value }) => [key, value, wordsOf(value)]), wordsOf(text)];
    },
  },
  {
    name: 'environment files',
    share: 20,
    examples: [environmentExample, 'A="a\\"b\\\nc" "d" e\\ \nB='],
    words: words('" \' \\ = # ; A= $ `', '\n', '\r', ' ', '\\\n', '\u2028', '\0'),
    feed: (_, text) => {
      const found = parseEnvironmentFile(text);
      const quoted = (value: string): string => `"${value.replaceAll(/["\\`$]/g, String.raw`\$&`)}"`;
      const written = found.map(([name, value]) => `${name}=${quoted(value)}\n`).join('');
      must(isDeepStrictEqual(parseEnvironmentFile(written), found), 'other variables when read again');
      const behindComment = parseEnvironmentFile(`# ${text.replaceAll(/[\r\n]/g, ' ')}\r\nZ=1`);
      must(isDeepStrictEqual(behindComment, [['Z', '1']]), 'a comment that goes on');
      return found;
    },
  },
  {
    name: 'environments of services',
    share: 1,
    examples: [
      unitExample,
      environmentExample,
      '[Service]\nEnvironmentFile=/etc/../x\nEnvironmentFile=-/etc\n',
    ],
    words: words(
      '[Service] [Manager] Environment= EnvironmentFile= /etc/default/k3s - .. % " \\x00',
      '\n',
      '\0',
    ),
    feed: async (input) => {
      const root = node.write({
        'etc/systemd/system.conf': input,
        'etc/systemd/system/k3s.service': input,
        'etc/systemd/system/k3s.service.d/a.conf': '[Service]\nEnvironmentFile=-/etc/default/k3s\n',
        'etc/default/k3s': input,
      });
      const found = await readServiceEnvironment(root, ['k3s.service']);
      for (const text of [...(found?.variables ?? [])].flat())
        must(!text.includes('\0'), 'a variable that no process can have');
      return [...(found?.variables ?? []), found?.problems];
    },
    close: () => node.remove(),
  },
  {
    name: 'lines of the kernel’s trace',
    share: 20,
    examples: [
      '              sh-1234    [001] .....  4321.123456: sys_execve -> 0xfffffffffffffff8',
      '           <...>-7       (   1234) [000] d..2. 1.5: sched_process_fork: comm=a b pid=7 child_comm=a b child_pid=8',
    ],
    words: words(
      '<...> - [000] ..... 1.5: sched_process_fork: sys_execve -> child_pid= comm=',
      '\n',
      '                ',
    ),
    feed: (input) => {
      const text = input.toString('latin1');
      const line = parseFailedExec(text);
      must(Number.isSafeInteger(line?.pid ?? 0), `process ${line?.pid}`);
      must(/^[\x20-\x7e]{1,15}$/.test(line?.program ?? 'none'), `program ${line?.program}`);
      const processes = parseForks(text);
      for (const [pid, { pid: same }] of processes) must(pid === same, `process ${same} as ${pid}`);
      return [line, [...processes.keys()]];
    },
  },
  {
    name: 'control groups',
    share: 20,
    examples: [
      `0::/../../kubepods/burstable/pod0b6c4b9e-6f5d-4c1e-9d55-0f5f2a1d9a77/${'a'.repeat(64)}\n`,
      `12:memory:/kubepods-pod0b6c4b9e_6f5d_4c1e_9d55_0f5f2a1d9a77.slice/cri-containerd-${'a'.repeat(64)}.scope\n`,
    ],
    words: words('pod .slice .scope / : - _ crio- 0b6c4b9e', '\n', 'a'.repeat(64)),
    feed: (input) => {
      const found = parseCgroup(input.toString('latin1'));
      const read = readExecReport({ state: 'on', errors: [found] })?.errors;
      must(
        found === undefined || isDeepStrictEqual(read, [found]),
        'a container that the controller refuses',
      );
      return found;
    },
  },
  {
    name: 'files of the kernel',
    share: 1,
    examples: [
      'processor\t: 0\nmodel name\t: A CPU @ 2.60GHz\nflags\t\t: fpu cx8 cmov mmx fxsr sse sse2 pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm\n\nprocessor\t: 1\nflags\t\t: fpu\n',
      'processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n\n',
      'model name\t: ARMv6-compatible processor rev 7 (v6l)\nCPU architecture: 7\n',
      `\u0006${'\0'.repeat(8)}\u0010${'\0'.repeat(22)}`,
    ],
    words: words(
      'flags : CPU architecture part 0x41 AArch64 9 -1',
      '\n',
      '\n\n',
      '\t',
      '\0',
      '\u0006\0\0\0\0\0\0\0',
    ),
    feed: async (input) => {
      // Its sysctls are missing: they are not read, only looked for.
      const path = proc.write({ cpuinfo: input, 'self/auxv': input.subarray(0, 5000) });
      for (const architecture of architectures) {
        const { armVariant, amd64Level, pageSize } = await readMachine(architecture, path);
        must(armVariant === undefined || /^v[5-8]$/.test(armVariant), `variant ${armVariant}`);
        must(amd64Level === undefined || (amd64Level >= 1 && amd64Level <= 4), `level ${amd64Level}`);
        must(pageSize === undefined || Number.isSafeInteger(pageSize), `pages of ${pageSize} bytes`);
      }
    },
    close: () => proc.remove(),
  },
];
