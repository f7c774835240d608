/** The environment of a service from the files of a node, some of them hostile. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readServiceEnvironment } from '../../../daemon/systemd/service-environment.ts';
import { writeFiles } from '../../support/write-files.ts';
import { like } from '../../support/like.ts';
import { parseEnvironmentFile, parseUnit, wordsOf } from '../../../daemon/systemd/unit-file.ts';
import { withUserMs } from '../../support/cpu-time.ts';

const etc = '/etc/systemd/system';
const usr = '/usr/lib/systemd/system';
const service = (...lines: string[]): string => ['[Service]', ...lines, ''].join('\n');

function nodeWith(t: Test, files: Readonly<Record<string, string>>): string {
  const root = t.testdir();
  writeFiles(root, files);
  return root;
}

async function read(root: string, services = ['containerd.service']) {
  const found = await readServiceEnvironment(root, services);
  if (found === undefined) return undefined;
  const { command: _, ...rest } = found;
  return { ...rest, variables: Object.fromEntries(found.variables) };
}

t.test('manager, unit, drop-ins and environment files: each overrides the one before', async (t) => {
  const HTTPS_PROXY = 'http://p:1';
  const root = nodeWith(t, {
    '/etc/systemd/system.conf': '[Manager]\nDefaultEnvironment=A=manager B=manager\n',
    '/etc/systemd/system.conf.d/a.conf':
      '[Manager]\nDefaultEnvironment=Z=manager\n[Other]\nDefaultEnvironment=Y=1\n',
    [`${usr}/containerd.service`]: service('Environment=B=unit C=unit', 'EnvironmentFile=-/etc/none'),
    [`${usr}/containerd.service.d/20.conf`]: service('Environment=D=replaced'),
    [`${etc}/containerd.service.d/20.conf`]: service('Environment="D=drop in" E=1'),
    [`${etc}/containerd.service.d/30.conf`]: service(
      'EnvironmentFile=/etc/proxy%%1',
      'UnsetEnvironment=E Z=o',
    ),
    [`${etc}/containerd.service.d/10-not.txt`]: service('Environment=X=1'),
    [`${etc}/service.d/00.conf`]: service('Environment=F=every'),
    [`${etc}/other.service`]: service('Environment=X=1'),
    '/etc/proxy%1': `C=file\nHTTPS_PROXY="${HTTPS_PROXY}"\n`,
  });
  t.strictSame(await read(root), {
    service: 'containerd.service',
    variables: { A: 'manager', B: 'unit', C: 'file', D: 'drop in', F: 'every', Z: 'manager', HTTPS_PROXY },
    problems: [],
  });
});

t.test('an empty value resets a list', async (t) => {
  const resets = ['Environment=', 'EnvironmentFile=', 'UnsetEnvironment='];
  const root = nodeWith(t, {
    [`${usr}/containerd.service`]: service('Environment=A=1', 'EnvironmentFile=/e', 'UnsetEnvironment=B'),
    [`${etc}/containerd.service.d/a.conf`]: service(...resets, 'Environment=B=2'),
    '/e': 'C=3',
  });
  t.strictSame((await read(root))?.variables, { B: '2' });
});

t.test('the enabled service is used, else the first existing one', async (t) => {
  const both = {
    [`${usr}/rke2-server.service`]: service('Environment=A=server'),
    [`${usr}/rke2-agent.service`]: service('Environment=A=agent'),
  };
  const names = ['k3s.service', 'rke2-server.service', 'rke2-agent.service'];
  like(t, await read(nodeWith(t, both), names), { service: 'rke2-server.service' }, 'the first');
  const enabled = nodeWith(t, both);
  mkdirSync(join(enabled, etc, 'multi-user.target.wants'), { recursive: true });
  symlinkSync(`${usr}/rke2-agent.service`, join(enabled, etc, 'multi-user.target.wants/rke2-agent.service'));
  like(t, await read(enabled, names), { variables: { A: 'agent' } }, 'the enabled one');
  t.equal(await read(nodeWith(t, {}), names), undefined, 'none');
  const forAll = nodeWith(t, { [`${etc}/service.d/a.conf`]: service('Environment=A=1') });
  t.equal(await read(forAll, names), undefined, 'drop-ins of every service');
  const masked = nodeWith(t, { ...both, [`${etc}/rke2-server.service`]: '' });
  symlinkSync('/dev/null', join(masked, etc, 'k3s.service'));
  mkdirSync(join(masked, 'dev'));
  execFileSync('mkfifo', [join(masked, 'dev/null')]);
  like(t, await read(masked, names), { service: 'rke2-agent.service' }, 'masked services are skipped');
  const prefix = nodeWith(t, {
    [`${etc}/rke2-agent.service.d/b.conf`]: service('Environment=A=own'),
    [`${etc}/rke2-.service.d/a.conf`]: service('Environment=A=prefix B=prefix'),
  });
  like(t, await read(prefix, names), { variables: { A: 'own', B: 'prefix' } }, 'drop-ins alone');
});

t.test('unusable files are reported, and the others apply', async (t) => {
  const root = nodeWith(t, {
    [`${usr}/containerd.service`]: service('Environment=A=1', 'EnvironmentFile=/etc/sysconfig/proxy'),
    [`${etc}/containerd.service.d/large.conf`]: `#${'x'.repeat(262_145)}`,
    [`${etc}/containerd.service.d/bytes.conf`]: '',
    [`${etc}/containerd.service.d/z.conf`]: service('Environment=B=2', 'EnvironmentFile=-/../../secret'),
  });
  const dir = join(root, etc, 'containerd.service.d');
  writeFileSync(join(dir, 'bytes.conf'), Buffer.from([0xff]));
  execFileSync('mkfifo', [join(dir, 'fifo.conf')]);
  symlinkSync('../../../../../../../secret', join(dir, 'outside.conf'));
  const found = await read(root);
  t.strictSame(found?.variables, { A: '1', B: '2' });
  const problems = found?.problems.map(
    ({ origin, message }) => `${origin.replace(`${etc}/`, '')}: ${message}`,
  );
  like(t, problems, [
    /bytes\.conf: is not UTF-8/,
    /large\.conf: is larger than/,
    /outside\.conf: leads out of/,
    /^\/etc\/sysconfig\/proxy: there is no such file; containerd\.service reads .*agent\.extraHostPaths/,
    /secret: leads out of/,
  ]);
});

t.test('too many drop-ins are ignored', async (t) => {
  const files: Record<string, string> = { [`${usr}/containerd.service`]: service('Environment=A=1') };
  for (let index = 0; index <= 1000; index += 1) files[`${etc}/containerd.service.d/${index}.conf`] = '';
  const root = nodeWith(t, files);
  like(t, await read(root), { variables: { A: '1' }, problems: [{ message: /more than 1000 entries/ }] });
});

t.test('the command has the words of variables', async (t) => {
  const root = nodeWith(t, {
    [`${usr}/crio.service`]: service(
      'EnvironmentFile=-/etc/sysconfig/crio',
      'ExecStart=/usr/bin/crio $CRIO_CONFIG_OPTIONS $CRIO_NOT_SET --log "${LEVEL} x"',
    ),
    '/etc/sysconfig/crio': 'CRIO_CONFIG_OPTIONS="--config /etc/a  -d=/etc/b"\nLEVEL=b c\n',
  });
  const found = await readServiceEnvironment(root, ['crio.service']);
  const wanted = ['/usr/bin/crio', '--config', '/etc/a', '-d=/etc/b', '--log', 'b c x'];
  t.strictSame(found?.command, wanted);
  writeFiles(root, { [`${etc}/crio.service.d/a.conf`]: service('ExecStart=', 'ExecStart=-/opt/crio') });
  t.strictSame((await readServiceEnvironment(root, ['crio.service']))?.command, ['/opt/crio']);
});

t.test('assignments of a unit file are read', async (t) => {
  const unit = String.raw`
# [Service]
[Unit]
Description = a=b
[Service]
Environment="HTTPS_PROXY=http://p:1" \
# a comment in between
; another
  NO_PROXY=.corp
 ExecStart = /usr/bin/containerd
no assignment
[Install]
WantedBy=multi-user.target
Broken \ `;
  t.strictSame(parseUnit(unit), [
    { section: 'Unit', key: 'Description', value: 'a=b' },
    { section: 'Service', key: 'Environment', value: '"HTTPS_PROXY=http://p:1"    NO_PROXY=.corp' },
    { section: 'Service', key: 'ExecStart', value: '/usr/bin/containerd' },
    { section: 'Install', key: 'WantedBy', value: 'multi-user.target' },
  ]);
});

t.test('two backslashes at the end of a line are one backslash, not a continuation', async (t) => {
  const section = '';
  t.strictSame(parseUnit('A=a\\\\\nB=b\\\\\\\nc'), [
    { section, key: 'A', value: 'a\\\\' },
    { section, key: 'B', value: 'b\\\\ c' },
  ]);
});

t.test('values are split into words', async (t) => {
  const cases: [string, string[]][] = [
    // The examples of systemd.exec(5).
    [
      String.raw`"VAR1=word1 word2" VAR2=word3 "VAR3=$word 5 6"`,
      ['VAR1=word1 word2', 'VAR2=word3', 'VAR3=$word 5 6'],
    ],
    [String.raw`ONE='one' "TWO='two two' too" THREE=`, ['ONE=one', "TWO='two two' too", 'THREE=']],
    [
      String.raw`A=a\x20b B=\"c\" C="d\"e" D=f\\g E=x\sy`,
      ['A=a b', 'B="c"', 'C=d"e', String.raw`D=f\g`, 'E=x y'],
    ],
    ['P=http://ann:p%%40ss@p:1', ['P=http://ann:p%40ss@p:1']],
    ['', []],
    ['  a  ', ['a']],
    ["it's", ["it's"]],
  ];
  for (const [value, words] of cases) t.strictSame(wordsOf(value), words, value);
});

t.test('environment files are read', async (t) => {
  const cases: [text: string, variables: Record<string, string>][] = [
    ['A=1\n# B=2\n;C=3\n\nD = 4 \n', { A: '1', D: '4' }],
    ['A=\'a b\'\nB="c \\"d\\" \\x"\nC=\'x\'"y"z\n', { A: 'a b', B: 'c "d" \\x', C: 'xyz' }],
    ['A=a\\\nb\nB=c\\ d\n', { A: 'ab', B: 'c d' }],
    ['A="a\nb"\nB=1', { A: 'a\nb', B: '1' }],
    ['export A=1\n1A=2\nno line\n=3\nB=', { B: '' }],
    ['A=it\'s "quoted"\n', { A: 'it\'s "quoted"' }],
    // The states of systemd's env-file.c at a carriage return, at the end of the file, and behind a
    // backslash.
    ['# comment\r\nA=1\r\n\r\nB="b"\r\n', { A: '1', B: 'b' }],
    ['A="b\nC=d\n', { A: 'b\nC=d\n' }],
    ["A='b", { A: 'b' }],
    ['A=b\\', { A: 'b' }],
    ['A=b\\  \nB= c \\\\ ', { A: 'b ', B: 'c \\' }],
    ['A=a\0b\nB=1', { B: '1' }],
    ['', {}],
  ];
  for (const [text, variables] of cases)
    t.strictSame(parseEnvironmentFile(text), Object.entries(variables), JSON.stringify(text));
});

t.test('files are read in linear time', async (t) => {
  // Half of the maximum size that is read. In quadratic time it would take 15 s.
  const bytes = 131_072;
  const quotes = ['"', `"'`, 'a="', "a='\n", 'a=\\"'];
  const files = ['a=\\\n', '\\\n', ...quotes, '=', ' ', '\n \n', '# \r', 'a', 'a ', '\\'];
  const [, ms] = await withUserMs(() => {
    for (const part of files) {
      const text = part.repeat(Math.floor(bytes / part.length) - 1);
      for (const each of [text, `${text}\\`, `A="${text}`, `A=${text}`]) {
        parseEnvironmentFile(each);
        parseUnit(each);
        wordsOf(each);
      }
    }
  });
  t.ok(ms < 10_000, `${ms} ms`);
});

t.test('only LF ends a line, not other Unicode line separators', async (t) => {
  const found = parseEnvironmentFile('# a\u2028b\nA=1 # a\u2028b\nB=2');
  t.strictSame(found, Object.entries({ A: '1 # a\u2028b', B: '2' }), 'environment files');
  const [unit] = parseUnit('A=a\u2028b');
  t.equal(unit?.value, 'a\u2028b', 'units');
});
