import t from 'tap';
import { parseCgroup, parseFailedExec, parseForks } from '../../../daemon/tracing/trace-lines.ts';

/** @param name each character is a byte, as in the kernel's text */
const line = (name: string, rest: string): string => `${name.padStart(16)}${rest}`;
const failed = 'sys_execve -> 0xfffffffffffffff8';
const uid = '0b6c4b9e-6f5d-4c1e-9d55-0f5f2a1d9a77';
const id = 'ab'.repeat(32);

t.test('a line of a trace', async (t) => {
  t.strictSame(parseFailedExec(line('sh', `-1234    [001] .....  4321.123456: ${failed}`)), {
    pid: 1234,
    program: 'sh',
  });
  // Global options of the kernel add the group of threads, and leave out the flags.
  t.equal(parseFailedExec(line('sh', `-7       (   1234) [12] d..2. 1.5: ${failed}`))?.pid, 7);
  t.equal(parseFailedExec(line('sh', `-7       (-------) [12] 1.5: ${failed}`))?.pid, 7);
  const after = `-7       [000] ..... 1.5: ${failed}`;
  t.strictSame(parseFailedExec(line('<...>', after))?.program, undefined);
  t.equal(parseFailedExec(line('my \xc3\xa4\x1b-app', after))?.program, 'my ???-app');
  for (const other of ['', '# tracer: nop', 'CPU:1 [LOST 12 EVENTS]', ` sh${after}`])
    t.equal(parseFailedExec(other), undefined, other);
});

t.test('a name cannot forge the thread', async (t) => {
  const after = `-1234    [001] ..... 4.1: `;
  // Fifteen bytes, as the kernel allows.
  t.equal(parseFailedExec(line('-1 [0] . 1.5: x', `${after}${failed}`))?.pid, 1234);
  // A line end in a name makes two lines.
  for (const part of line('a\n-1 [0] 1.5: x', `${after}${failed}`).split('\n'))
    t.equal(parseFailedExec(part), undefined, part);
  const name = 'x child_pid=1';
  const event = `sched_process_fork: comm=${name} pid=1234 child_comm=${name} child_pid=6`;
  t.strictSame(
    [...parseForks(line(name, `${after}${event}`))],
    [
      [1234, { pid: 1234 }],
      [6, { pid: 6, parent: { pid: 1234 } }],
    ],
  );
});

t.test('other events', async (t) => {
  const after = `-1234    [001] ..... 4.1: `;
  t.equal(parseFailedExec(line('sh', `${after}sys_execveat -> 0xfffffff8`))?.pid, 1234);
  t.equal(parseFailedExec(line('sh', `${after}sys_execve(filename: 1)`)), undefined);
  t.equal(parseForks(line('sh', `${after}${failed}`)).size, 0);
});

t.test('the container of a control group', async (t) => {
  const systemdUid = uid.replaceAll('-', '_');
  const found = { pod: uid, container: id };
  for (const path of [
    `/kubepods/burstable/pod${uid}/${id}`,
    `/kubepods/pod${uid}/${id}/init.scope`,
    `/kubepods.slice/kubepods-pod${systemdUid}.slice/cri-containerd-${id}.scope`,
    `/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod${systemdUid}.slice/crio-${id}.scope/container`,
    `/system.slice/containerd.service/kubepods-burstable-pod${systemdUid}.slice:cri-containerd:${id}`,
    // As a container sees it that has a namespace for control groups.
    `/../../pod${uid}/${id}`,
    // A runtime in the container.
    `/kubepods/pod${uid}/${id}/docker/${'c'.repeat(64)}`,
  ])
    t.strictSame(parseCgroup(`0::${path}\n`), found, path);
  t.strictSame(parseCgroup(`1:name=systemd:/\n12:memory:/kubepods/pod${uid}/${id}\n`), found, 'version 1');
  for (const path of [
    '/',
    '/init.scope',
    `/docker/${id}`,
    `/kubepods/pod${uid}`,
    `/kubepods/pod${'a'.repeat(32)}/${id}`,
  ])
    t.equal(parseCgroup(`0::${path}\n`), undefined, path);
});
