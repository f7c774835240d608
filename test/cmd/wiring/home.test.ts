import { execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import t from 'tap';
import { homeDirectory } from '../../../cmd/wiring/inspection.ts';

const isRoot = process.getuid?.() === 0;

t.test('a user without a home directory', { skip: !isRoot && 'only root can start it' }, async (t) => {
  const file = JSON.stringify(new URL('../../../cmd/wiring/inspection.ts', import.meta.url));
  // It becomes that user only after the import: others may not read this directory.
  const become = 'process.setgid(54321); process.setuid(54321);';
  const script = `import { homeDirectory } from ${file}; ${become} process.stdout.write(homeDirectory());`;
  // By `env -i`, because tap adds variables to child processes.
  const args = ['-i', process.execPath, '--input-type=module', '-e', script];
  t.equal(execFileSync('env', args, { encoding: 'utf8' }), '/');
});

t.test('a user with one', async (t) => t.equal(homeDirectory(), homedir()));
