import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createExecute } from '../../../../daemon/kubelet/run/execute.ts';
import { systemClock } from '../../../../src/async/clock.ts';
import { HostSemaphore } from '../../../../src/async/semaphore.ts';
import { answering, execV1, nodeDir, until, writePlugin } from '../support.ts';

const config = { name: 'p', matchImages: ['r.example'], apiVersion: execV1 };

t.test('runs are limited, and an abandoned run never starts', async (t) => {
  const { bin: binDir } = nodeDir(t, '');
  const log = join(binDir, 'log');
  const go = join(binDir, 'go');
  writePlugin(
    join(binDir, 'p'),
    answering(
      {},
      `const fs = process.getBuiltinModule('node:fs'); fs.appendFileSync(${JSON.stringify(log)}, 's');
       while (!fs.existsSync(${JSON.stringify(go)})) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);`,
    ),
  );
  const execute = createExecute(config, {
    hostRoot: '/',
    binDir,
    semaphore: new HostSemaphore(2),
    clock: systemClock,
    stop: new AbortController().signal,
    environment: () => Promise.resolve([]),
  });
  const waiting = [1, 2, 3].map((n) => execute({ image: `r.example/${n}` }, new AbortController().signal));
  const gone = new AbortController();
  const abandoned = execute({ image: 'r.example/4' }, gone.signal);
  t.ok(await until(() => existsSync(log) && readFileSync(log, 'utf8').length === 2));
  gone.abort();
  await t.rejects(abandoned, { code: 'stopped' });
  t.equal(readFileSync(log, 'utf8'), 'ss');
  writeFileSync(go, '');
  t.equal((await Promise.all(waiting)).length, 3);
  t.equal(readFileSync(log, 'utf8'), 'sss');
});

t.test('the request has the configured version', async (t) => {
  const { bin: binDir } = nodeDir(t, '');
  const log = join(binDir, 'log');
  writePlugin(join(binDir, 'p'), `cat > ${log}; echo "$@" >> ${log}`, '/bin/sh');
  const stop = new AbortController();
  const execute = createExecute(
    { ...config, apiVersion: 'credentialprovider.kubelet.k8s.io/v1alpha1', args: ['--v=5', 'a b'] },
    {
      hostRoot: '/',
      binDir,
      semaphore: new HostSemaphore(),
      clock: systemClock,
      stop: stop.signal,
      environment: () => Promise.resolve(['PATH=/bin:/usr/bin']),
    },
  );
  await t.rejects(execute({ image: 'r.example/a' }, stop.signal), {
    code: 'bad-response',
    message: /^error reading GVK from response/,
  });
  t.equal(
    readFileSync(log, 'utf8'),
    '{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1alpha1","image":"r.example/a"}\n--v=5 a b\n',
  );
});
