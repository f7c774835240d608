/** What the bundle leaves out, because it costs memory in every process. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';

t.test('the bundle loads no part of Node or of libraries that only costs memory', (t) => {
  const dir = t.testdir();
  execFileSync(process.execPath, ['scripts/bundle.ts', dir], { stdio: 'pipe' });
  const files = readdirSync(dir).filter((name) => name.endsWith('.mjs'));
  for (const name of files) {
    const text = readFileSync(join(dir, name), 'utf8');
    t.notOk(/from ?"(?:node:)?(?:http|tls)"/.test(text), `${name}: undici, certificates`);
    t.notOk(/application\/vnd\.openxmlformats/.test(text), `${name}: media types`);
    // Letters of full width are those of `report --csv`, which no server loads.
    const letter = text.replaceAll(/[＝＋－＠]/g, '').match(/.{0,30}[\u0100-\uffff]/)?.[0];
    t.equal(letter, undefined, `${name}: one such letter doubles the memory of its text`);
  }
  t.end();
});
