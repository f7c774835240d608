import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { examples, leavesNothing, start, tellsNoSecret } from './run.ts';

t.test('--stay', async (t) => {
  const demo = start(t, ['--stay']);
  const [line] = await demo.until(/^curl .*$/m);
  const [, logs = ''] = await demo.until(/^ {2}Logs: (.*)$/m);

  await t.test('the line it prints sends a review', async (t) => {
    if (!existsSync('/usr/bin/curl')) return t.comment('this machine has no curl');
    const { stdout } = await promisify(execFile)('sh', ['-c', line]);
    const body = readFileSync(/--data-binary @(\S+)/.exec(line)?.[1] ?? '', 'utf8');
    const { request } = JSON.parse(body) as { request: { uid: string } };
    t.match(JSON.parse(stdout), {
      kind: 'AdmissionReview',
      response: { uid: request.uid, allowed: true, patchType: 'JSONPatch', patch: String },
    });
  });

  t.same(
    readdirSync(join(logs, '..', 'reviews')).sort(),
    examples.map((name) => name.replace('.yaml', '.json')).sort(),
  );
  const names = readdirSync(logs).sort();
  t.same(names, ['agent-node-a.log', 'agent-node-b.log', 'webhook.log']);
  for (const name of names) tellsNoSecret(t, readFileSync(join(logs, name), 'utf8'));
  demo.child.kill('SIGTERM');
  const { code, err, out } = await demo.ended;
  t.same([code, err], [0, '']);
  tellsNoSecret(t, out);
  leavesNothing(t, demo);
});
